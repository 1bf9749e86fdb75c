"""One function that connects: `dial`. Socket, jump hosts, host key, login; what paramiko gets wrong is put right here.

Measured against paramiko 5.1.0: no TCP_NODELAY (a command took 48 ms instead of 2.4), a rekey after 512 MB that kills
the connection (paramiko issues 822, 174), keepalives that never notice a dead peer, exit signals dropped.
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
    keepalive: float = 5.0  # an idle connection is asked for a sign of life this often
    silence: float = 15.0  # and given up when it owes an answer for so long: a dead peer is noticed within 20 s
    attempts: int = 6  # connections dropped before the login (MaxStartups) are tried again


class Connection(Struct, frozen=True, kw_only=True):
    """A connection that is logged in, and what it rests on."""

    transport: LiveTransport
    warnings: tuple[str, ...] = ()
    below: Connection | None = None  # to the jump host
    proxy: Proxy | None = None

    def close(self) -> None:
        """Close it and everything below it."""
        self.transport.close()
        if self.below is not None:
            self.below.close()
        if self.proxy is not None:
            self.proxy.close()


class LiveTransport(paramiko.Transport):
    """A paramiko connection that notices when its peer has gone silent, and that knows which signal ended a command."""

    def watch(self, timing: Timing, clock: Clock) -> None:
        """Begin to ask for signs of life."""
        self._timing, self._clock = timing, clock
        self._asked: float | None = None  # since when an answer is owed
        private: Any = (
            self  # paramiko offers no hook for these; test_ssh_faults and test_contract notice when they move
        )
        private._handler_table[MSG_REQUEST_SUCCESS] = self._answered
        private._handler_table[MSG_REQUEST_FAILURE] = self._answered
        private._channel_handler_table = {**private._channel_handler_table, MSG_CHANNEL_REQUEST: _channel_request}
        self.packetizer.set_keepalive(timing.keepalive, self._ask)

    def is_silent(self) -> bool:
        """Does the peer owe an answer for too long?"""
        return self._asked is not None and self._clock.monotonic() - self._asked > self._timing.silence

    def _ask(self) -> None:
        # runs in paramiko's reading thread, where an exception ends the connection with that as its reason
        if self.is_silent():
            raise paramiko.SSHException(f"no sign of life for {self._timing.silence:g} s")
        if not self.clear_to_send.is_set():
            return  # amid a key exchange this thread must read on, not wait to send
        if self._asked is None:
            self._asked = self._clock.monotonic()
        message = paramiko.Message()
        message.add_byte(cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)
        private: Any = (
            self  # the public global_request either asks for no answer or waits for it, which here is for ever
        )
        private._send_user_message(message)

    def _answered(self, _message: paramiko.Message) -> None:
        self._asked = None


def dial(target: SshTarget, timing: Timing, clock: Clock) -> Connection:
    """Connect and log in. Raises HostUnreachable with the reason and what to do about it."""
    # paramiko logs what it also raises, and without a handler that goes to the user's terminal
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
    for attempt in range(timing.attempts):
        began = clock.monotonic()
        try:
            return _dial_once(target, timing, clock)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise unreachable(target, error) from error
        except _Dropped as error:
            late = clock.monotonic() - began > timing.connect
            if late or attempt + 1 == timing.attempts:
                raise HostUnreachable(
                    f"{target.address}:{target.port} ends the connection before the login: {error}",
                    where=target.name,
                    hint=target.command("-v"),
                ) from error
            # MaxStartups drops a share of what comes at once: come back apart from the others
            clock.sleep(0.15 * 2**attempt * random.uniform(0.5, 1.5))
    raise AssertionError("attempts is at least 1")


def unreachable(target: SshTarget, error: BaseException | None) -> LauncherError:
    """A paramiko or socket error in the words of this project."""
    place = f"{target.address}:{target.port}"
    match error:
        case LauncherError():
            return error
        case socket.gaierror():
            message = f"the address `{target.address}` cannot be resolved: {error.strerror}"
        case ConnectionRefusedError():
            message = f"{place} refuses connections: no sshd listens there"
        case TimeoutError():
            message = f"{place} does not answer"
        case EOFError() | None:
            message = f"the connection to {place} is gone: the other side ended it"
        case _:
            message = f"the connection to {place} failed: {error}"
    return HostUnreachable(message, where=target.name, hint=target.command())


class _Dropped(Exception):
    """Ended by the server before the key exchange was over."""


def _dial_once(target: SshTarget, timing: Timing, clock: Clock) -> Connection:
    with contextlib.ExitStack() as undo:
        below, proxy, stream = _reach(target, timing, clock)
        undo.callback(stream.close)
        if below is not None:
            undo.callback(below.close)
        if proxy is not None:
            undo.callback(proxy.close)
        transport = LiveTransport(stream)
        undo.callback(transport.close)
        # the instance's attributes: the class is shared with whoever else uses paramiko here
        transport.packetizer.REKEY_BYTES = transport.packetizer.REKEY_PACKETS = 1 << 45
        warnings = _handshake(transport, target, timing, proxy)
        transport.watch(timing, clock)
        authenticate(transport, target)
        undo.pop_all()
        return Connection(transport=transport, warnings=warnings, below=below, proxy=proxy)


def _reach(target: SshTarget, timing: Timing, clock: Clock) -> tuple[Connection | None, Proxy | None, Any]:
    """A byte stream to the server: through a jump host, a ProxyCommand, or plain TCP."""
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
        tcp = _PromptSocket(socket.create_connection((target.address, target.port), timing.connect))
        _tune(tcp, timing)
    except UnicodeError as error:  # a name that cannot even be asked for
        raise unreachable(target, socket.gaierror(0, str(error))) from error
    except OSError as error:
        raise unreachable(target, error) from error
    return None, None, tcp


class _PromptSocket(socket.socket):
    """A TCP socket that acknowledges at once, for the life of the connection.

    The kernel delays acknowledgements by 40 ms, and sshd (Nagle) holds back small packets until it has one: the first
    event of a stream came 43 ms late through a loopback sshd, 1 ms with this. Linux forgets TCP_QUICKACK at will, so
    it is said again after each read.
    """

    def __init__(self, tcp: socket.socket) -> None:
        limit = tcp.gettimeout()
        super().__init__(tcp.family, tcp.type, tcp.proto, fileno=tcp.detach())
        self.settimeout(limit)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """As of any socket."""
        data = super().recv(size, flags)
        if hasattr(socket, "TCP_QUICKACK"):
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data


def _tune(stream: socket.socket, timing: Timing) -> None:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; elsewhere LiveTransport's own questions have to do
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timing.silence * 1000))


def _handshake(transport: LiveTransport, target: SshTarget, timing: Timing, proxy: Proxy | None) -> tuple[str, ...]:
    """Key exchange and host key. Gives warnings about known_hosts."""
    keys = known_hosts.keys_for(target.host_key_name, _texts(target))
    _prefer(transport, known_hosts.preferred_types(keys))
    transport.banner_timeout = transport.handshake_timeout = timing.connect
    transport.auth_timeout = 2 * timing.connect
    transport.channel_timeout = timing.channel
    try:
        transport.start_client(timeout=2 * timing.connect)
    except (EOFError, ConnectionResetError, BrokenPipeError) as error:
        raise _Dropped(_said(proxy) or "no SSH greeting") from error
    except paramiko.SSHException as error:
        if "banner" in str(error):
            raise _Dropped(_said(proxy) or str(error)) from error
        raise unreachable(target, error) from error
    except OSError as error:
        raise unreachable(target, error) from error
    if not transport.initial_kex_done:
        raise unreachable(target, TimeoutError())
    _check_host_key(transport.get_remote_server_key(), keys, target)
    return tuple(
        f"{key.where}: `{key.marker}` lines are not used; the host's plain key counts"
        for key in keys
        if key.marker == "@cert-authority"
    )


def _said(proxy: Proxy | None) -> str:
    return f"ProxyCommand: {proxy.complaint()}" if proxy is not None and proxy.complaint() else ""


def _texts(target: SshTarget) -> list[tuple[str, str]]:
    return [(str(path), path.read_text(errors="replace")) for path in target.known_hosts if path.is_file()]


def _prefer(transport: LiveTransport, types: tuple[str, ...]) -> None:
    options = transport.get_security_options()
    wanted = [
        name for name in options.key_types if name in types or (name.startswith("rsa-sha2-") and "ssh-rsa" in types)
    ]
    options.key_types = (*wanted, *(name for name in options.key_types if name not in wanted))


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
            message = f"the host key of {target.host_key_name} is not known here ({shown})"
            message += f"; listed for it, but of no use: {lines}" if lines else ""
            hint = "compare the fingerprint and accept it: " + target.command("-o", "StrictHostKeyChecking=ask")
        case Trust.CHANGED:
            message = f"the host key of {target.host_key_name} has CHANGED ({shown}); another one stands in {lines}"
            file, _, _ = judgement.lines[0].rpartition(":")
            hint = (
                f"reinstalled, or somebody in between? If it is right: ssh-keygen -f {file} -R '{target.host_key_name}'"
            )
        case Trust.REVOKED:
            message = f"the host key of {target.host_key_name} is revoked by {lines} ({shown})"
            hint = "do not connect; ask whoever runs the host"
    raise HostUnreachable(message, where=target.name, hint=hint)


def _channel_request(channel: Any, message: paramiko.Message) -> None:
    request = paramiko.Message(message.get_remainder())
    if request.get_text() == "exit-signal":
        request.get_boolean()
        channel.exit_signal = request.get_text()
    channel._handle_request(message)
