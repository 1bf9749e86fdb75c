"""Connects to a Host: the one place that chooses between local, SSH and recorded.

paramiko is loaded only for a remote host. Which machine a name means is decided in `inventory`.
"""

from __future__ import annotations

from launcher.transport.base import Transport
from launcher.transport.inventory import Host
from launcher.transport.local import LocalTransport
from launcher.transport.recorded import ReplayTransport


def connect(host: Host) -> Transport:
    """Return an open connection to the host. Raises HostUnreachable, and UsageError for a folder without a run."""
    if host.replay is not None:
        return ReplayTransport(host.replay)
    if host.ssh is None:
        return LocalTransport(host.name)
    from launcher.transport.ssh import SshTransport  # takes 170 ms, which `--host local` does not need

    transport = SshTransport(host.ssh)
    transport.open()
    return transport
