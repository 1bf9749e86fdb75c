"""Options that several commands share, and what they resolve to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from launcher.errors import UsageError

if TYPE_CHECKING:  # a command that needs no host must not pay for what reaches one
    from launcher.transport.base import Transport
    from launcher.transport.inventory import Host


def release(text: str) -> str:
    """A release number as it was typed. Raises UsageError for what is none: every rule would hold for it."""
    from checks.vocabulary import parse_version  # it loads `packaging`, which few commands need

    if text and parse_version(text) is None:
        raise UsageError(
            f"`{text}` is no release of the engine", hint="e.g. 0.5.11; `launch engines list` has them all"
        )
    return text


HostName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--host", "-H", help="host: a name of ssh_config or hosts.yaml, user@name:port, `local`, `replay:RUNDIR`"
    ),
]
HostsFile: TypeAlias = Annotated[Path | None, typer.Option("--hosts-file", help="inventory instead of ./hosts.yaml")]
ProfilesFolder: TypeAlias = Annotated[
    Path | None, typer.Option("--profiles", help="folder to look for profiles in first")
]
Sets: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", help="flag=value on top of the profile; repeatable")
]
Unsets: TypeAlias = Annotated[list[str] | None, typer.Option("--unset", help="flag to leave out; repeatable")]
Envs: TypeAlias = Annotated[
    list[str] | None, typer.Option("--env", help="NAME=VALUE for the engine; NAME alone takes a secret from here")
]
Report: TypeAlias = Annotated[Path | None, typer.Option("--html", help="write a report of the verdict into this file")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="one JSON document on standard output")]


def host_of(name: str, hosts_file: Path | None) -> Host:
    """The host. Raises UsageError, ProfileError."""
    if not name:
        raise UsageError("which host?", hint="--host NAME, or `--host local` for this machine")
    from launcher.transport.inventory import resolve

    return resolve(name, hosts_file=hosts_file)


@contextmanager
def connected(host: Host) -> Iterator[Transport]:
    """A connection for as long as the block runs."""
    from launcher.transport.connect import connect

    transport = connect(host)
    try:
        yield transport
    finally:
        transport.close()
