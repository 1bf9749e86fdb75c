"""Resolves a host name to a machine: an entry of `hosts.yaml`, completed by OpenSSH's own configuration.

The inventory is optional and holds what ssh cannot know: the engine's Python, the folder of the runs. How to reach the
machine is left to OpenSSH (`transport.ssh_config`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from launcher.transport.hosts_file import DEFAULT_WORK_DIR, LOCAL, HostEntry, HostsFile
from launcher.transport.ssh_config import SshRequest, resolve_target
from launcher.transport.target import Destination, SshTarget, parse_destination

REPLAY = "replay:"
INVENTORY = "hosts.yaml"


class Host(Struct, frozen=True, kw_only=True):
    """One machine: how to reach it, and its settings from the inventory."""

    name: str  # the name that the user gave
    ssh: SshTarget | None = None  # None: this machine
    python: str = ""  # the interpreter of the engine's environment; empty: not set
    work_dir: str = DEFAULT_WORK_DIR  # `~` is the home directory on the host
    env: Mapping[str, str] = field(default_factory=dict)  # environment of every server on this host
    replay: Path | None = None  # folder of the recorded run that answers in place of a machine


def resolve(name: str, *, hosts_file: Path | None = None) -> Host:
    """Return the host that `[user@]name[:port]`, `local` or `replay:RUNDIR` names.

    Raises UsageError for an invalid name, ProfileError for an invalid inventory or ssh_config. It does not check that
    the machine exists: `connect` does.
    """
    if name.startswith(REPLAY):
        return Host(name=name, replay=Path(name.removeprefix(REPLAY)))
    destination = parse_destination(name)
    path = inventory_path(hosts_file)
    entry = HostsFile(path).entry(destination.name) if path is not None else None
    ssh = None if destination.name == LOCAL else resolve_target(_ssh_request(name, destination, entry))
    if entry is None:
        return Host(name=name, ssh=ssh)
    return Host(name=name, ssh=ssh, python=entry.python, work_dir=entry.work_dir, env=entry.env)


def inventory_path(hosts_file: Path | None = None) -> Path | None:
    """Return the inventory to use: `hosts_file`, else ./hosts.yaml, else the one in the user's configuration folder."""
    if hosts_file is not None:
        return hosts_file
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    places = (Path(INVENTORY), configuration / "sglang-launcher" / INVENTORY)
    return next((place for place in places if place.is_file()), None)


def names(*, hosts_file: Path | None = None) -> tuple[str, ...]:
    """Return the host names in the inventory; empty without one. Raises ProfileError."""
    path = inventory_path(hosts_file)
    return HostsFile(path).names if path is not None else ()


def _ssh_request(name: str, typed: Destination, entry: HostEntry | None) -> SshRequest:
    """Merge the destination that the user typed with the inventory entry; the command line takes precedence."""
    if entry is None:
        return SshRequest(destination=typed, shown_as=name)
    destination = Destination(
        name=entry.address or typed.name,
        user=typed.user or entry.user,
        port=typed.port or entry.port,
    )
    return SshRequest(
        destination=destination,
        shown_as=name,
        identity_files=entry.identity_files,
        proxy_jump=entry.proxy_jump,
        proxy_command=entry.proxy_command,
    )
