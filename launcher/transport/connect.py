"""A Host becomes a Transport. paramiko is loaded only for a remote one."""

from __future__ import annotations

from launcher.transport.base import Transport
from launcher.transport.inventory import Host
from launcher.transport.local import LocalTransport
from launcher.transport.recorded import ReplayTransport


def connect(host: Host) -> Transport:
    """Connect now. Raises HostUnreachable."""
    if host.replay is not None:
        return ReplayTransport(host.replay)
    if host.ssh is None:
        return LocalTransport(host.name)
    from launcher.transport.ssh import SshTransport  # 170 ms that `--host local` need not pay

    transport = SshTransport(host.ssh)
    transport.open()
    return transport
