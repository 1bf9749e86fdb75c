"""Logs in to an SSH server: with the identity files first, one by one, then with the agent. Never with a password.

The order matters: a server closes the connection after MaxAuthTries (6) keys, so an agent with many keys must be last.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.pkey import PublicBlob, UnknownKeyType

from launcher.errors import HostUnreachable
from launcher.transport.target import SshTarget

_AGENT_TIMEOUT = 30.0  # seconds; a hardware key may wait for a touch


def authenticate(transport: paramiko.Transport, target: SshTarget) -> None:
    """Log in. Raises HostUnreachable, which lists every key that was tried and why it failed."""
    agent, agent_keys = _agent(target.identity_agent)
    notes: list[str] = []
    try:
        if _needs_no_key(transport, target):
            return
        for label, key in _candidates(target, agent_keys, notes):
            if _accepted(transport, target, key, label, notes):
                return
            if not transport.is_active():
                notes.append("the server then closed the connection (MaxAuthTries): set IdentityFile to the right key")
                break
    finally:
        if agent is not None:
            agent.close()
    tried = "".join(f"\n  {note}" for note in notes) or "\n  there is no key on this machine to try"
    raise HostUnreachable(
        f"login to {target.user}@{target.address} failed:{tried}",
        where=target.name,
        hint=target.command("-v", "-o", "BatchMode=yes"),
    )


def _needs_no_key(transport: paramiko.Transport, target: SshTarget) -> bool:
    """Return whether the server accepts the user without a key, as Tailscale does.

    OpenSSH does not count this request as a failed attempt.
    """
    try:
        transport.auth_none(target.user)
    except paramiko.BadAuthenticationType as error:
        if "publickey" in error.allowed_types:
            return False
        raise HostUnreachable(
            f"{target.user}@{target.address} does not accept keys, only: {', '.join(error.allowed_types)}",
            where=target.name,
            hint=f"ssh-copy-id -p {target.port} {target.user}@{target.address}",
        ) from error
    except paramiko.AuthenticationException:
        return False
    return True


def _candidates(
    target: SshTarget, agent_keys: Sequence[paramiko.AgentKey], notes: list[str]
) -> Iterator[tuple[str, paramiko.PKey]]:
    agent_by_blob = {key.asbytes(): key for key in agent_keys}
    tried: set[bytes] = set()
    for path in target.identity_files:
        public = _public_blob(path)
        in_agent = agent_by_blob.get(public) if public else None
        if in_agent is not None:
            tried.add(in_agent.asbytes())
            yield f"{path} (in the agent)", in_agent
            continue
        key = _load(path, notes)
        if key is not None:
            tried.add(key.asbytes())
            yield str(path), key
    if target.identities_only:
        return
    for agent_key in agent_keys:
        if agent_key.asbytes() not in tried:
            yield f"agent key {agent_key.comment or agent_key.get_name()}", agent_key


def _load(path: Path, notes: list[str]) -> paramiko.PKey | None:
    """Return a private key, with the certificate next to it if any; None, and a note, when it cannot be used."""
    if not path.exists():
        return None
    try:
        return paramiko.PKey.from_path(path)
    except paramiko.PasswordRequiredException:
        notes.append(f"{path}: protected by a passphrase and not in an agent; run `ssh-add {path}`")
    except TypeError:  # what cryptography raises for a missing passphrase
        notes.append(f"{path}: protected by a passphrase and not in an agent; run `ssh-add {path}`")
    except (paramiko.SSHException, OSError, ValueError, UnsupportedAlgorithm) as error:
        notes.append(f"{path}: unreadable: {error}")
    except UnknownKeyType:
        notes.append(f"{path}: a key type that can only be used through an agent; run `ssh-add {path}`")
    return None


def _public_blob(path: Path) -> bytes:
    """Return the public key from `path`.pub, or from `path` itself when IdentityFile names a public key; else b""."""
    for place in (path.with_name(path.name + ".pub"), path):
        with contextlib.suppress(OSError, ValueError, IndexError, paramiko.SSHException):
            blob = PublicBlob.from_string(place.read_text(encoding="ascii", errors="strict").strip())
            return bytes(blob.key_blob)
    return b""


def _accepted(
    transport: paramiko.Transport, target: SshTarget, key: paramiko.PKey, label: str, notes: list[str]
) -> bool:
    try:
        missing_methods = transport.auth_publickey(target.user, key)
    except paramiko.AuthenticationException as error:
        notes.append(f"{label}: rejected" if transport.is_active() else f"{label}: rejected, {error}")
        return False
    except (paramiko.SSHException, OSError, EOFError) as error:
        notes.append(f"{label}: {error or 'the connection was closed'}")
        return False
    if missing_methods:
        notes.append(f"{label}: accepted, but the server also requires {' or '.join(missing_methods)}")
    return not missing_methods


def _agent(path: str) -> tuple[_SocketAgent | None, Sequence[paramiko.AgentKey]]:
    """Return the agent at a socket and its keys. paramiko's Agent supports only $SSH_AUTH_SOCK, not IdentityAgent."""
    if not path:
        return None, ()
    try:
        return _SocketAgent.at(path)
    except (OSError, paramiko.SSHException):
        return None, ()  # no agent at this socket: continue without one, as ssh does


class _SocketAgent(paramiko.agent.AgentSSH):
    @classmethod
    def at(cls, path: str) -> tuple[_SocketAgent, Sequence[paramiko.AgentKey]]:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_AGENT_TIMEOUT)
        try:
            connection.connect(path)
            agent = cls()
            agent._connect(connection)  # type: ignore[attr-defined]
        except (OSError, paramiko.SSHException):
            connection.close()
            raise
        return agent, agent.get_keys()

    def close(self) -> None:
        self._close()  # type: ignore[attr-defined]
