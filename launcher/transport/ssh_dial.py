"""Opens an SSH connection with one function, `dial`: socket, jump hosts, host key, login, and fixes for paramiko.

Measured with paramiko 5.1.0: no TCP_NODELAY (a command took 48 ms instead of 2.4 ms), a rekey after 512 MB that kills
the connection (paramiko issues 822, 174), keepalives that never notice a dead peer, dropped exit signals.
"""

from __future__ import annotations

import contextlib
import logging
import random
import socket
from typing import Any

import paramiko
from msgspec import Struct
from paramiko.common import MSG_CHANNEL_REQUEST, MSG_REQUEST_FAILURE, MSG_REQUEST_SUCCESS, cMSG_GLOBAL_REQUEST

from launcher.clock import Clock
from launcher.errors import HostUnreachable, LauncherError
from launcher.transport import known_hosts
from launcher.transport.known_hosts import KnownKey, Trust
from launcher.transport.local import Proxy, start_proxy
from launcher.transport.ssh_auth import authenticate
from launcher.transport.target import SshTarget


class Timing(Struct, frozen=True, kw_only=True):
    """Limits of one connection, in seconds."""

    connect: float = 15.0  # for the TCP connection, and again for the key exchange
    channel: float = 15.0  # for opening a channel
    keepalive: float = 5.0  # interval of keepalive requests on an idle connection
    silence: float = 15.0  # without a keepalive answer before the connection counts as lost (noticed within 20 s)
    attempts: int = 6  # in total; a connection that is dropped before the login (MaxStartups) is retried


class Connection(Struct, frozen=True, kw_only=True):
    """A logged-in connection, and the jump host or ProxyCommand that carries it."""

    transport: LiveTransport
    warnings: tuple[str, ...] = ()
    below: Connection | None = None  # the connection to the jump host
    proxy: Proxy | None = None

    def close(self) -> None:
        """Close the connection and everything that carries it."""
        self.transport.close()
        if self.below is not None:
            self.below.close()
        if self.proxy is not None:
            self.proxy.close()


class LiveTransport(paramiko.Transport):
    """A paramiko connection that notices a silent peer and records which signal ended a command."""

    def watch(self, timing: Timing, clock: Clock) -> None:
        """Start sending keepalive requests."""
        self._timing, self._clock = timing, clock
        self._unanswered_since: float | None = None  # time of the keepalive that has no answer yet
        private: Any = self  # paramiko has no hook for these; test_ssh_faults and test_contract fail when they move
        private._handler_table[MSG_REQUEST_SUCCESS] = self._on_answer
        private._handler_table[MSG_REQUEST_FAILURE] = self._on_answer
        private._channel_handler_table = {**private._channel_handler_table, MSG_CHANNEL_REQUEST: _channel_request}
        self.packetizer.set_keepalive(timing.keepalive, self._send_keepalive)

    def is_silent(self) -> bool:
        """Return whether a keepalive has been unanswered for longer than the limit."""
        since = self._unanswered_since
        return since is not None and self._clock.monotonic() - since > self._timing.silence

    def _send_keepalive(self) -> None:
        # runs in paramiko's reader thread, where an exception ends the connection and becomes its reason
        if self.is_silent():
            raise paramiko.SSHException(f"no answer to keepalives for {self._timing.silence:g} s")
        if not self.clear_to_send.is_set():
            return  # during a key exchange this thread must keep reading, not wait to send
        if self._unanswered_since is None:
            self._unanswered_since = self._clock.monotonic()
        message = paramiko.Message()
        message.add_byte(cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)
        private: Any = (
            self  # the public global_request requests no answer, or waits for it, which would deadlock this thread
        )
        private._send_user_message(message)

    def _on_answer(self, _message: paramiko.Message) -> None:
        self._unanswered_since = None


def dial(target: SshTarget, timing: Timing, clock: Clock) -> Connection:
    """Connect and log in. Raises HostUnreachable with the reason and a command that helps."""
    # paramiko also logs what it raises, and without a handler the log goes to the user's terminal
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
    for attempt in range(timing.attempts):
        began = clock.monotonic()
        try:
            return _dial_once(target, timing, clock)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise unreachable(target, error) from error
        except _Dropped as error:
            timed_out = clock.monotonic() - began > timing.connect
            if timed_out or attempt + 1 == timing.attempts:
                raise HostUnreachable(
                    f"{target.address}:{target.port} closed the connection before the login: {error}",
                    where=target.name,
                    hint=target.command("-v"),
                ) from error
            # MaxStartups drops a share of simultaneous connections: retry at a random time
            clock.sleep(0.15 * 2**attempt * random.uniform(0.5, 1.5))
    raise AssertionError("Timing.attempts must be at least 1")


def unreachable(target: SshTarget, error: BaseException | None) -> LauncherError:
    """Return a paramiko or socket error as an error that a user can act on."""
    place = f"{target.address}:{target.port}"
    match error:
        case LauncherError():
            return error
        case socket.gaierror():
            message = f"the address `{target.address}` cannot be resolved: {error.strerror}"
        case ConnectionRefusedError():
            message = f"{place} refuses connections: no sshd is listening there"
        case TimeoutError():
            message = f"{place} did not answer"
        case EOFError() | None:
            message = f"the connection to {place} was closed by the other side"
        case _:
            message = f"the connection to {place} failed: {error}"
    return HostUnreachable(message, where=target.name, hint=target.command())


class _Dropped(Exception):
    """The server closed the connection before the end of the key exchange."""


def _dial_once(target: SshTarget, timing: Timing, clock: Clock) -> Connection:
    with contextlib.ExitStack() as undo:
        below, proxy, stream = _open_stream(target, timing, clock)
        undo.callback(stream.close)
        if below is not None:
            undo.callback(below.close)
        if proxy is not None:
            undo.callback(proxy.close)
        transport = LiveTransport(stream)
        undo.callback(transport.close)
        # set on the instance: other users of paramiko in this process share the class
        transport.packetizer.REKEY_BYTES = transport.packetizer.REKEY_PACKETS = 1 << 45
        warnings = _handshake(transport, target, timing, proxy)
        transport.watch(timing, clock)
        authenticate(transport, target)
        undo.pop_all()
        return Connection(transport=transport, warnings=warnings, below=below, proxy=proxy)


def _open_stream(target: SshTarget, timing: Timing, clock: Clock) -> tuple[Connection | None, Proxy | None, Any]:
    """Open a byte stream to the server: through a jump host, a ProxyCommand, or plain TCP."""
    if target.via is not None:
        below = dial(target.via, timing, clock)
        try:
            stream = below.transport.open_channel(
                "direct-tcpip", (target.address, target.port), ("127.0.0.1", 0), timeout=timing.connect
            )
        except (paramiko.SSHException, OSError, EOFError) as error:
            below.close()
            raise HostUnreachable(
                f"the jump host `{target.via.name}` cannot reach {target.address}:{target.port}: {error}",
                where=target.name,
                hint=target.via.command(),
            ) from error
        return below, None, stream
    if target.proxy_command:
        proxy = start_proxy(target.proxy_command)
        return None, proxy, proxy.stream
    try:
        tcp = _QuickAckSocket(socket.create_connection((target.address, target.port), timing.connect))
        _tune(tcp, timing)
    except UnicodeError as error:  # a name that IDNA cannot encode
        raise unreachable(target, socket.gaierror(0, str(error))) from error
    except OSError as error:
        raise unreachable(target, error) from error
    return None, None, tcp


class _QuickAckSocket(socket.socket):
    """A TCP socket that sends acknowledgements immediately, for the life of the connection.

    The kernel delays acknowledgements by 40 ms, and sshd (Nagle) holds back small packets until it receives one: the
    first event of a stream arrived 43 ms late through a loopback sshd, 1 ms late with this socket. Linux may clear
    TCP_QUICKACK at any time, so it is set again after each read.
    """

    def __init__(self, tcp: socket.socket) -> None:
        limit = tcp.gettimeout()
        super().__init__(tcp.family, tcp.type, tcp.proto, fileno=tcp.detach())
        self.settimeout(limit)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive as any socket does."""
        data = super().recv(size, flags)
        if hasattr(socket, "TCP_QUICKACK"):
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data


def _tune(stream: socket.socket, timing: Timing) -> None:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; elsewhere the keepalives of LiveTransport have to suffice
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timing.silence * 1000))


def _handshake(transport: LiveTransport, target: SshTarget, timing: Timing, proxy: Proxy | None) -> tuple[str, ...]:
    """Exchange keys and check the host key. Returns warnings about known_hosts."""
    keys = known_hosts.keys_for(target.host_key_name, _texts(target))
    _prefer(transport, known_hosts.preferred_types(keys))
    transport.banner_timeout = transport.handshake_timeout = timing.connect
    transport.auth_timeout = 2 * timing.connect
    transport.channel_timeout = timing.channel
    try:
        transport.start_client(timeout=2 * timing.connect)
    except (EOFError, ConnectionResetError, BrokenPipeError) as error:
        raise _Dropped(_complaint(proxy) or "no SSH banner was received") from error
    except paramiko.SSHException as error:
        if "banner" in str(error):
            raise _Dropped(_complaint(proxy) or str(error)) from error
        raise unreachable(target, error) from error
    except OSError as error:
        raise unreachable(target, error) from error
    if not transport.initial_kex_done:
        raise unreachable(target, TimeoutError())
    _check_host_key(transport.get_remote_server_key(), keys, target)
    return tuple(
        f"{key.where}: `{key.marker}` lines are ignored; only the host's plain key is checked"
        for key in keys
        if key.marker == "@cert-authority"
    )


def _complaint(proxy: Proxy | None) -> str:
    return f"ProxyCommand: {proxy.complaint()}" if proxy is not None and proxy.complaint() else ""


def _texts(target: SshTarget) -> list[tuple[str, str]]:
    return [(str(path), path.read_text(errors="replace")) for path in target.known_hosts if path.is_file()]


def _prefer(transport: LiveTransport, types: tuple[str, ...]) -> None:
    options = transport.get_security_options()
    listed = [
        name for name in options.key_types if name in types or (name.startswith("rsa-sha2-") and "ssh-rsa" in types)
    ]
    options.key_types = (*listed, *(name for name in options.key_types if name not in listed))


def _check_host_key(key: paramiko.PKey, keys: tuple[KnownKey, ...], target: SshTarget) -> None:
    judgement = known_hosts.judge(keys, key.get_name(), key.asbytes())
    shown = f"{key.get_name()} {known_hosts.fingerprint(key.asbytes())}"
    lines = ", ".join(judgement.lines)
    match judgement.trust:
        case Trust.KNOWN:
            return
        case Trust.UNKNOWN if target.accept_unknown:
            return
        case Trust.UNKNOWN:
            message = f"the host key of {target.host_key_name} is not in known_hosts ({shown})"
            message += f"; known_hosts lines for this host that do not confirm it: {lines}" if lines else ""
            hint = "compare the fingerprint, then accept the key: " + target.command("-o", "StrictHostKeyChecking=ask")
        case Trust.CHANGED:
            message = f"the host key of {target.host_key_name} has CHANGED ({shown}); {lines} lists another key"
            file, _, _ = judgement.lines[0].rpartition(":")
            hint = (
                f"if the host was reinstalled: ssh-keygen -f {file} -R '{target.host_key_name}'; "
                "if not, someone may be intercepting the connection"
            )
        case Trust.REVOKED:
            message = f"the host key of {target.host_key_name} is revoked by {lines} ({shown})"
            hint = "do not connect; ask the administrator of the host"
    raise HostUnreachable(message, where=target.name, hint=hint)


def _channel_request(channel: Any, message: paramiko.Message) -> None:
    request = paramiko.Message(message.get_remainder())
    if request.get_text() == "exit-signal":
        request.get_boolean()
        channel.exit_signal = request.get_text()
    channel._handle_request(message)
