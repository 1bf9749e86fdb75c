"""`launch engines list|show|diff|capture|fetch`: the server args and the source of each SGLang release."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from checks.before.release_changes import Change, diff
from checks.engine.flag_schema import Flag, FlagSchema, available, load
from launcher.cli.options import HostName, HostsFile, Json, ProfilesFolder, connected, host_of, release
from launcher.errors import UsageError
from launcher.profile.resolve import resolve, search_path

ACTIONS = {
    "list": (0, 0),
    "show": (1, 2),
    "diff": (2, 2),
    "capture": (0, 0),
    "fetch": (1, 1),
}  # action → least and most arguments
_USAGE = {
    "list": "launch engines list",
    "show": "launch engines show VERSION [FLAG]",
    "diff": "launch engines diff OLD NEW [--profile PROFILE]",
    "capture": "launch engines capture --host HOST, or launch engines capture --wheel FILE",
    "fetch": "launch engines fetch VERSION [--wheel FILE_OR_FOLDER] [--python PYTHON]",
}


def main(
    action: Annotated[str, typer.Argument(metavar="list|show|diff|capture|fetch")] = "list",
    words: Annotated[list[str] | None, typer.Argument(metavar="[VERSION] [VERSION|FLAG]")] = None,
    profile: Annotated[str, typer.Option("--profile", help="diff: only what affects this profile")] = "",
    wheel: Annotated[
        Path | None, typer.Option("--wheel", help="capture, fetch: read this wheel or source folder")
    ] = None,
    python: Annotated[str, typer.Option("--python", help="fetch: an interpreter that has torch")] = "",
    host: HostName = "",
    profiles: ProfilesFolder = None,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Show the server args of each SGLang release, and what changes between two releases."""
    arguments = words or []
    if action not in ACTIONS:
        raise UsageError(f"unknown action `launch engines {action}`", hint=f"use one of: {', '.join(ACTIONS)}")
    least, most = ACTIONS[action]
    if not least <= len(arguments) <= most:
        raise UsageError(f"wrong number of arguments for `launch engines {action}`", hint=_USAGE[action])
    match action:
        case "list":
            return _list(as_json)
        case "show":
            return _show(load(release(arguments[0])), arguments[1] if len(arguments) > 1 else "", as_json)
        case "diff":
            old, new = (load(release(text)) for text in arguments)
            return _diff(old, new, profile, profiles, as_json)
        case "fetch":
            return _fetch(arguments[0], wheel, python)
        case _:
            return _capture(host, wheel, hosts_file)


def _list(as_json: bool) -> int:
    rows = [{"version": version, "flags": len(load(version).by_name)} for version in available()]
    if as_json:
        sys.stdout.write(json.dumps(rows) + "\n")
    else:
        sys.stdout.write("".join(f"{row['version']:<12} {row['flags']} flag names\n" for row in rows))
    return 0


def _show(schema: FlagSchema, name: str, as_json: bool) -> int:
    if schema.note:
        sys.stderr.write(f"note: {schema.note}\n")
    if not name:
        rows = [flag_json(flag) for flag in schema.flags]
        sys.stdout.write(json.dumps(rows) + "\n" if as_json else "".join(_line(flag) for flag in schema.flags))
        return 0
    lookup = schema.find(name.lstrip("-"))
    if lookup.flag is None:
        near = ", ".join(f"--{item}" for item in schema.suggestions(name.lstrip("-")))
        message = f"SGLang {schema.version} has no flag `--{name.lstrip('-')}`"
        raise UsageError(message, hint=f"similar flags: {near}" if near else "")
    sys.stdout.write(json.dumps(flag_json(lookup.flag)) + "\n" if as_json else _page(lookup.flag, schema))
    return 0


def flag_json(flag: Flag) -> dict[str, Any]:
    """Return a server arg as JSON values."""
    return {
        name: getattr(flag, name)
        for name in ("names", "type", "choices", "default", "deprecated", "replacement", "help")
    }


def _line(flag: Flag) -> str:
    mark = " (deprecated)" if flag.deprecated else ""
    return f"--{', --'.join(flag.names)}{mark}  {flag.help[:100]}\n"


def _page(flag: Flag, schema: FlagSchema) -> str:
    lines = [f"--{', --'.join(flag.names)}   SGLang {schema.version}", f"  {flag.help}"]
    lines.append(f"  type {flag.type}, default {flag.default!r}" + (f", {flag.nargs} values" if flag.nargs else ""))
    lines += [f"  choices: {', '.join(map(str, flag.choices))}"] if flag.choices else []
    successor = f"; use {flag.replacement}" if flag.replacement else ", without a replacement"
    lines += [f"  deprecated{successor}"] if flag.deprecated else []
    lines.append(f"  declared in {flag.source}")
    return "\n".join(lines) + "\n"


def _diff(old: FlagSchema, new: FlagSchema, profile: str, folder: Path | None, as_json: bool) -> int:
    for schema in (old, new):
        if schema.note:
            sys.stderr.write(f"note: {schema.note}\n")
    if not profile:
        return _changes(diff(old, new), as_json)
    from launcher.cli import upgrade
    from launcher.flows.launch.foreseen_upgrade import Machine, foresee
    from launcher.transport.local import LocalTransport

    resolved = resolve(profile, search_path(folder))
    found = foresee(LocalTransport(), resolved, Machine(), old.version, new.version)
    upgrade.show(resolved, found, as_json=as_json)
    return 0


def _fetch(version: str, source: Path | None, python: str) -> int:
    """Store a release's source and the environment of its twin, which `launch check` then uses offline."""
    from launcher.transport.local import LocalTransport
    from launcher.twin import release_store, twin_environment

    def tell(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    local = LocalTransport()
    if source is None:
        stored = release_store.stored(version) or release_store.fetch(local, version)
    elif source.is_dir():
        stored = release_store.store_folder(source, version)
    else:
        stored = release_store.store_wheel(source, version)
    made = twin_environment.prepare(local, stored, tell, python)
    sys.stdout.write(
        f"SGLang {stored.version} in {stored.folder}\n"
        f"its argument code runs with {made.python} and transformers {made.transformers}\n"
        f"next: launch check PROFILE --engine {stored.version} --facts FILE\n"
    )
    return 0


def _changes(changes: list[Change], as_json: bool) -> int:
    if as_json:
        keys = ("kind", "flag", "before", "after", "note")
        rows = [{name: getattr(change, name) for name in keys} for change in changes]
        sys.stdout.write(json.dumps({"changes": rows}) + "\n")
        return 0
    for change in changes:
        arrow = f"{change.before} → {change.after}" if change.before or change.after else ""
        sys.stdout.write(f"{change.kind:<10} --{change.flag}  {arrow}  {change.note}".rstrip() + "\n")
    if not changes:
        sys.stdout.write("no changes\n")
    return 0


def _capture(host: str, wheel: Path | None, hosts_file: Path | None) -> int:
    """Print the schema of an engine that is not a release: a build of the main branch, a fork, a checkout."""
    from launcher.flows.launch.capture_schema import capture_file, capture_host

    if wheel is not None:
        document = capture_file(wheel)
    else:
        where = host_of(host, hosts_file)
        with connected(where) as transport:
            document = capture_host(transport, where)
    sys.stdout.write(json.dumps(document) + "\n")
    return 0
