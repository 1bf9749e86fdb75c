"""Which machine is meant by a name: an entry of `hosts.yaml`, and OpenSSH's own configuration behind it.

The inventory is optional and says what ssh cannot know: the engine's Python, where runs are kept. The way there is
OpenSSH's business (`transport.ssh_config`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from launcher.transport.hosts_file import DEFAULT_WORK_DIR, LOCAL, HostEntry, HostsFile
from launcher.transport.ssh_config import Wish, resolve_target
from launcher.transport.target import Destination, SshTarget, parse_destination

REPLAY = "replay:"
INVENTORY = "hosts.yaml"


class Host(Struct, frozen=True, kw_only=True):
    """One machine: how to get there and what the inventory says of it."""

    name: str  # as the user named it
    ssh: SshTarget | None = None  # None: this machine
    python: str = ""  # the Python that has the engine; empty: not said
    work_dir: str = DEFAULT_WORK_DIR  # `~` is the home directory on the host
    env: Mapping[str, str] = field(default_factory=dict)  # for everything that is started there
    replay: Path | None = None  # a run's folder that answers in place of a machine


def resolve(name: str, *, hosts_file: Path | None = None) -> Host:
    """The host that `[user@]name[:port]`, `local` or `replay:RUNDIR` means.

    Raises UsageError for an invalid name, ProfileError for a faulty inventory or ssh_config. Whether such a machine
    exists shows when connecting.
    """
    if name.startswith(REPLAY):
        return Host(name=name, replay=Path(name.removeprefix(REPLAY)))
    to = parse_destination(name)
    path = inventory_path(hosts_file)
    entry = HostsFile(path).entry(to.name) if path is not None else None
    ssh = None if to.name == LOCAL else resolve_target(_wish(name, to, entry))
    if entry is None:
        return Host(name=name, ssh=ssh)
    return Host(name=name, ssh=ssh, python=entry.python, work_dir=entry.work_dir, env=entry.env)


def inventory_path(hosts_file: Path | None = None) -> Path | None:
    """The inventory in use: the one asked for, else ./hosts.yaml, else the one in the user's configuration."""
    if hosts_file is not None:
        return hosts_file
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    places = (Path(INVENTORY), configuration / "sglang-launcher" / INVENTORY)
    return next((place for place in places if place.is_file()), None)


def names(*, hosts_file: Path | None = None) -> tuple[str, ...]:
    """Host names in the inventory. Raises ProfileError."""
    path = inventory_path(hosts_file)
    return HostsFile(path).names if path is not None else ()


def _wish(name: str, to: Destination, entry: HostEntry | None) -> Wish:
    """What the command line and the inventory say of the way there; the command line takes precedence."""
    if entry is None:
        return Wish(destination=to, shown_as=name)
    destination = Destination(
        name=entry.address or to.name,
        user=to.user or entry.user,
        port=to.port or entry.port,
    )
    return Wish(
        destination=destination,
        shown_as=name,
        identity_files=entry.identity_files,
        proxy_jump=entry.proxy_jump,
        proxy_command=entry.proxy_command,
    )
