"""Options that several commands share, and the host and connection that they resolve to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from launcher.errors import UsageError

if TYPE_CHECKING:  # commands without a host must not pay for importing the transport
    from launcher.transport.base import Transport
    from launcher.transport.inventory import Host


def release(text: str) -> str:
    """Return the release as it was typed. Raises UsageError if it is not a release: every rule would hold for it."""
    from checks.vocabulary import parse_version  # loads `packaging`, which few commands need

    if text and parse_version(text) is None:
        raise UsageError(
            f"`{text}` is not an SGLang release", hint="e.g. 0.5.11; `launch engines list` lists all releases"
        )
    return text


HostName: TypeAlias = Annotated[
    str,
    typer.Option("--host", "-H", help="name in ssh_config or hosts.yaml, user@name:port, `local` or `replay:RUNDIR`"),
]
HostsFile: TypeAlias = Annotated[Path | None, typer.Option("--hosts-file", help="inventory in place of ./hosts.yaml")]
ProfilesFolder: TypeAlias = Annotated[
    Path | None, typer.Option("--profiles", help="folder to search for profiles first")
]
Sets: TypeAlias = Annotated[list[str] | None, typer.Option("--set", help="FLAG=VALUE to add or override; repeatable")]
Unsets: TypeAlias = Annotated[list[str] | None, typer.Option("--unset", help="flag to remove; repeatable")]
Envs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--env", help="NAME=VALUE for the engine; NAME alone passes a local variable as secret"),
]
Report: TypeAlias = Annotated[Path | None, typer.Option("--html", help="write the validation report to this file")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="print one JSON document to standard output")]


def host_of(name: str, hosts_file: Path | None) -> Host:
    """Return the host of that name. Raises UsageError for an empty name, ProfileError for a faulty inventory."""
    if not name:
        raise UsageError("no host given", hint="add --host NAME, or --host local for this machine")
    from launcher.transport.inventory import resolve

    return resolve(name, hosts_file=hosts_file)


@contextmanager
def connected(host: Host) -> Iterator[Transport]:
    """Connect to the host, and close the connection when the block ends."""
    from launcher.transport.connect import connect

    transport = connect(host)
    try:
        yield transport
    finally:
        transport.close()


def seconds_of(option: str, text: str) -> float:
    """Return the duration that an option gives, in seconds; 0 if it is empty. Raises UsageError."""
    from checks.after.probes.expectations import ExpectError, duration

    try:
        return duration(text) if text else 0.0
    except ExpectError as error:
        raise UsageError(f"{option}: {error}") from error


def check_output(option: str, path: Path | None, *, creates_folders: bool = False) -> None:
    """Check before hours of work that a file can be written to this path. Raises UsageError if it cannot."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} `{path}` is a folder", hint=f"name a file in it: {option} {path}/NAME")
    folder = path.resolve().parent
    if creates_folders:
        folder = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not folder.is_dir():
        problem = f"`{folder}` is a file, not a folder" if folder.exists() else "its folder does not exist"
        raise UsageError(f"{option} `{path}`: {problem}", hint="" if folder.exists() else f"mkdir -p {folder}")
