"""A real sshd on loopback, with its own keys and client configuration. It is started per test session, never shared."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.ports import free_port

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Sshd:
    """One running server. `alias` is the host name that `config` resolves to it."""

    alias: str
    port: int
    directory: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def config(self) -> Path:
        return self.directory / "ssh_config"

    @property
    def client_key(self) -> Path:
        return self.directory / "id"

    @property
    def known_hosts(self) -> Path:
        return self.directory / "known_hosts"

    @property
    def log(self) -> str:
        return (self.directory / "sshd.log").read_text(errors="replace")

    @property
    def host_key(self) -> str:
        """Type and base64 of the host key, in the form of known_hosts."""
        return " ".join((self.directory / "hostkey.pub").read_text().split()[:2])

    @property
    def known_hosts_name(self) -> str:
        return f"[{LOOPBACK}]:{self.port}"

    def kill_sessions(self, number: int = signal.SIGKILL) -> None:
        """Signal every process that serves a connection, but not the listener."""
        for pid in descendants(self.process.pid):
            if _command(pid).startswith("sshd"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def stop(self) -> None:
        self.kill_sessions()
        self.process.kill()
        self.process.wait()


def missing() -> str:
    """Return why sshd cannot be started on this machine; empty when it can."""
    if sshd_path() is None or shutil.which("ssh-keygen") is None:
        return "needs an OpenSSH server (apt-get install openssh-server)"
    return ""


def sshd_path() -> str | None:
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def start(directory: Path, alias: str, settings: Iterable[str] = (), authorized: str = "") -> Sshd:
    """Start a server and wait until it listens. `settings` are sshd_config lines that override the defaults."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o755)
    keygen(directory / "hostkey")
    keygen(directory / "id")
    port = free_port()
    (directory / "authorized_keys").write_text(authorized or (directory / "id.pub").read_text())
    (directory / "known_hosts").write_text(
        f"[{LOOPBACK}]:{port} {' '.join((directory / 'hostkey.pub').read_text().split()[:2])}\n"
    )
    overrides = tuple(settings)
    # for most keywords sshd uses the first line, for MaxStartups the last
    keywords = {line.split()[0] for line in overrides} - {"HostKey"}
    lines = (*overrides, *(line for line in _server_lines(directory, port) if line.split()[0] not in keywords))
    (directory / "sshd_config").write_text("\n".join(lines) + "\n")
    (directory / "ssh_config").write_text(client_config(alias, port, directory))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd's privilege separation requires this folder
    process = subprocess.Popen(  # -D: do not detach; absolute paths, because sshd re-executes itself from /
        [str(sshd_path()), "-D", "-f", str(directory / "sshd_config"), "-E", str(directory / "sshd.log")],
        stdin=subprocess.DEVNULL,
    )
    server = Sshd(alias=alias, port=port, directory=directory, process=process)
    _wait_until_listening(server)
    return server


def client_config(alias: str, port: int, directory: Path, *extra: str) -> str:
    """Return a `Host` block that resolves to a server on loopback."""
    lines = (
        *extra,
        f"HostName {LOOPBACK}",
        f"Port {port}",
        f"User {getpass.getuser()}",
        f"IdentityFile {directory / 'id'}",
        "IdentitiesOnly yes",
        f"UserKnownHostsFile {directory / 'known_hosts'}",
        "GlobalKnownHostsFile none",
    )
    return f"Host {alias}\n" + "".join(f"    {line}\n" for line in lines)


def keygen(path: Path, *options: str) -> None:
    """Create a key pair, without a passphrase unless `options` set one."""
    if not path.exists():
        passphrase = () if "-N" in options else ("-N", "")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-f", str(path), *passphrase, *options], check=True)


def descendants(pid: int) -> list[int]:
    """Return the process ids of all descendants of a process, from /proc."""
    try:
        children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # the process is gone
        return []
    return [process for child in children for process in (child, *descendants(child))]


def _server_lines(directory: Path, port: int) -> tuple[str, ...]:
    return (
        f"ListenAddress {LOOPBACK}:{port}",
        f"HostKey {directory / 'hostkey'}",
        f"AuthorizedKeysFile {directory / 'authorized_keys'}",
        "PidFile none",
        "StrictModes no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "UsePAM no",
        "MaxStartups 200:30:400",
        "LogLevel VERBOSE",
    )


def _wait_until_listening(server: Sshd) -> None:
    """Wait for the line in sshd's log; a connection would count as a login attempt."""
    log = server.directory / "sshd.log"
    for _ in range(500):
        if log.exists() and "Server listening" in log.read_text(errors="replace"):
            return
        try:
            code = server.process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
        raise RuntimeError(f"sshd ended with {code}: {log.read_text(errors='replace') if log.exists() else ''}")
    raise RuntimeError("sshd does not listen after 5 s")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
