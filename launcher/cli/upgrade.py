"""`launch upgrade`: what another SGLang release changes for one profile, and the profile's edits as a diff to accept.

Exit code 0: the profile starts on the release, with the edits if any are shown; 2: errors are left for a person.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from launcher.cli.exits import Exit
from launcher.cli.options import HostName, HostsFile, Json, ProfilesFolder, connected, host_of, release
from launcher.errors import UsageError

if TYPE_CHECKING:
    from checks.vocabulary import Finding
    from launcher.flows.launch.foreseen_upgrade import Machine, Upgrade
    from launcher.profile.file import Profile

WIDTH = 60  # characters of a value
_SOURCES = {
    "asked": "resolved by the argument code of both releases",
    "undecided": "defaults of the two releases; their argument code cannot decide about this launch",
    "absent": "defaults of the two releases; `launch engines fetch` adds what they resolve",
}


def main(
    name: Annotated[str, typer.Argument(metavar="PROFILE", help="profile name, or a .yaml file")],
    to: Annotated[str, typer.Option("--to", callback=release, help="the SGLang release to move to")],
    since: Annotated[
        str, typer.Option("--from", callback=release, help="the release to move from; overrides the host's")
    ] = "",
    host: HostName = "",
    facts: Annotated[
        Path | None, typer.Option("--facts", help="facts recorded by `launch facts`, in place of a host")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="write the shown diff into the profile")] = False,
    profiles: ProfilesFolder = None,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Show what another SGLang release changes for a profile, and the edits that it needs; start nothing."""
    from launcher.flows.launch.foreseen_upgrade import foresee
    from launcher.profile.resolve import resolve, search_path
    from launcher.transport.local import LocalTransport

    if host and facts is not None:
        raise UsageError("--facts cannot be combined with --host: the host is measured", hint="drop --facts")
    profile = resolve(name, search_path(profiles))
    if profile.abstract:
        raise UsageError(
            f"profile `{profile.name}` is abstract: it cannot be launched", hint="name one that extends it"
        )
    machine, installed = _machine(profile, host, hosts_file, facts)
    old = since or installed
    if not old:
        raise UsageError("the present release is unknown", hint="add --from VERSION, --host HOST or --facts FILE")
    if old == to:
        raise UsageError(f"{to} is the release that the profile runs on now", hint="name another release with --to")
    _tell_stand_ins(old, to)
    found = foresee(LocalTransport(), profile, machine, old, to)
    diff = list(_diff(profile, found))
    if apply and diff:
        found.edits.write(profile)
    show(profile, found, diff, as_json=as_json, applied=apply)
    return Exit.REFUSED if found.left else Exit.OK


def _tell_stand_ins(*versions: str) -> None:
    """Say which releases are not recorded, and by which they are judged."""
    from checks.engine.flag_schema import load

    for note in filter(None, (load(version).note for version in versions)):
        sys.stderr.write(f"note: {note}\n")


def _machine(profile: Profile, host: str, hosts_file: Path | None, facts: Path | None) -> tuple[Machine, str]:
    """Return the machine and the release that is installed on it; empty if that is unknown."""
    from launcher.flows.launch.foreseen_upgrade import Machine
    from launcher.flows.launch.prepare import look
    from launcher.plan.launch_facts import engine_version, read_recorded

    if facts is not None:
        raw = read_recorded(facts)
    elif host:
        where = host_of(host, hosts_file)
        with connected(where) as transport:
            raw = look(transport, profile, where)
    else:
        return Machine(), ""
    return Machine(raw=raw), engine_version(raw) or ""


def show(
    profile: Profile, found: Upgrade, diff: list[str] | None = None, *, as_json: bool = False, applied: bool = False
) -> None:
    """Print what an upgrade means: a screen for people, or one JSON document. `diff` is that of the edits."""
    diff = list(_diff(profile, found)) if diff is None else diff
    if as_json:
        sys.stdout.write(json.dumps(_document(profile, found, diff), ensure_ascii=False) + "\n")
        return
    sys.stdout.write(f"{profile.name}: SGLang {found.old.engine} → {found.new.engine}\n")
    _section("spelled for you", (f"--{old} is passed as --{new}" for old, new in found.spelled.items()))
    _section(f"changes by itself ({_source(found)})", _argument_lines(found))
    _findings(f"only on {found.old.engine}", found.gone)
    _findings(f"new on {found.new.engine}", found.appeared)
    if diff:
        _section("written into the profile" if applied else "edits (add --apply to write them)", diff)
    if found.left:
        _findings(f"left for you: {profile.name} does not start on {found.new.engine} yet", found.left)
    elif not diff and not found.appeared:
        sys.stdout.write(f"\n{profile.name} needs no edit for {found.new.engine}\n")
    sys.stdout.write(f"\nnext: launch check {profile.name} --engine {found.new.engine} --facts FILE, or --host HOST\n")


def _source(found: Upgrade) -> str:
    states = {found.old.twin, found.new.twin}
    return _SOURCES["undecided" if "undecided" in states else "absent" if "absent" in states else "asked"]


def _argument_lines(found: Upgrade) -> Iterator[str]:
    width = max((len(item.name) for item in found.arguments), default=0)
    for item in found.arguments:
        before, after = _apart(item.before, item.after) if item.before and item.after else (item.before, item.after)
        yield f"--{item.name:<{width}}  {before or '(no such option)'} → {after or '(no such option)'}"


def _apart(before: str, after: str) -> tuple[str, str]:
    """Return two values without their long common beginning, and no longer than WIDTH characters."""
    start = 0
    if max(len(before), len(after)) > WIDTH:
        shared = next((n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0)
        start = max(0, before[:shared].rfind(", ") + 1)
    return _cut(before, start), _cut(after, start)


def _cut(text: str, start: int) -> str:
    end = "…" if len(text) > start + WIDTH else ""
    return ("… " if start else "") + text[start : start + WIDTH].strip() + end


def _section(title: str, lines: Iterable[str]) -> None:
    rows = list(lines)
    if rows:
        sys.stdout.write(f"\n{title}\n" + "".join(f"  {line}\n" for line in rows))


def _findings(title: str, items: Iterable[Finding]) -> None:
    from launcher.cli import render

    rows = list(items)
    if rows:
        sys.stdout.write(f"\n{title}\n")
        sys.stdout.flush()
        render.findings(render.out(), rows)


def _diff(profile: Profile, found: Upgrade) -> Iterator[str]:
    before, after = Path(profile.path).read_text(), found.edits.apply(profile)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), profile.path, profile.path, lineterm="")
    return (line.rstrip("\n") for line in lines)


def _document(profile: Profile, found: Upgrade, diff: list[str]) -> dict[str, Any]:
    from launcher.cli.check import finding_json

    return {
        "profile": profile.name,
        "from": found.old.engine,
        "to": found.new.engine,
        "resolved_by": {"from": found.old.twin, "to": found.new.twin},
        "spelled": found.spelled,
        "changes": [{"flag": item.name, "before": item.before, "after": item.after} for item in found.arguments],
        "gone": [finding_json(item) for item in found.gone],
        "findings": [finding_json(item) for item in found.appeared],
        "left": [item.id for item in found.left],
        "diff": diff,
    }
