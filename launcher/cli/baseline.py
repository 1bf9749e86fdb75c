"""`launch baseline`: keep a validation under a name, show what is kept, compare two of them. Asks no server."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from checks.after.comparison import Compared, compare
from checks.after.probes.expectations import parse_expect
from checks.vocabulary import Outcome
from launcher.cli.exits import Exit
from launcher.cli.options import Json
from launcher.clock import SystemClock
from launcher.errors import UsageError
from launcher.flows.validate import stored_baselines
from launcher.run.store import Run, RunStore

ACTIONS = ("save", "show", "compare")
_WORDS = {"save": "RUN NAME", "show": "[NAME]", "compare": "RUN NAME|RUN"}


def main(
    action: Annotated[str, typer.Argument(metavar="save|show|compare")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="save RUN NAME · show [NAME] · compare RUN NAME|RUN")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--in", help="save: DIR/baselines/NAME.json, to be committed with its profiles")
    ] = None,
    as_json: Json = False,
) -> int:
    """Keep a run's validation as a baseline, show baselines, compare with one."""
    given = words or []
    match action, given:
        case "save", [run, name]:
            return _save(RunStore().find(run), name, folder, as_json)
        case "show", []:
            return _list(as_json)
        case "show", [name]:
            return _show(name, as_json)
        case "compare", [run, other]:
            return _compare(RunStore(), run, other, as_json)
        case _ if action in ACTIONS:
            raise UsageError(f"launch baseline {action} takes {_WORDS[action]}")
        case _:
            raise UsageError(f"no `launch baseline {action}`", hint=f"one of {', '.join(ACTIONS)}")


def _save(run: Run, name: str, folder: Path | None, as_json: bool) -> int:
    where = (folder / stored_baselines.FOLDER) if folder is not None else stored_baselines.folders()[-1]
    path = stored_baselines.save(run, name, where, SystemClock().now())
    validation = run.read("validation")
    if as_json:
        _print({"name": name, "path": str(path), "run": run.id})
        return Exit.OK
    sys.stdout.write(f"{name}: {path}\n")
    if not validation.get("samples"):
        sys.stderr.write(
            f"it has no samples to compare with: suite {validation['suite']} takes none; standard and full do\n"
        )
    if validation["outcome"] == Outcome.FAIL:
        sys.stderr.write(f"careful: that run failed: {validation['summary']}\n")
    return Exit.OK


def _list(as_json: bool) -> int:
    found = stored_baselines.available(stored_baselines.folders())
    if as_json:
        _print([_gist(item) for item in found])
        return Exit.OK
    for item in found:
        validation = item.validation
        sys.stdout.write(
            f"{item.name:<24} {validation.get('level', '?'):<12} {validation.get('model', '')} on SGLang "
            f"{validation.get('engine', '?')}, suite {validation.get('suite', '?')}, {item.about.get('saved', '')}\n"
        )
    if not found:
        sys.stderr.write("no baselines: `launch baseline save RUN NAME` makes one\n")
    return Exit.OK


def _show(name: str, as_json: bool) -> int:
    item = stored_baselines.find(name, stored_baselines.folders(), RunStore())
    if as_json:
        _print({**_gist(item), "validation": item.validation})
        return Exit.OK
    sys.stdout.write(f"{item.name}  {item.path}\n")
    for key, value in item.about.items():
        if key != "name":
            sys.stdout.write(f"  {key}: {value}\n")
    for key in ("level", "model", "engine", "suite", "started", "summary"):
        sys.stdout.write(f"  {key}: {item.validation.get(key, '')}\n")
    for verdict in item.validation["verdicts"]:
        sys.stdout.write(f"  {verdict['outcome']:<12} {verdict['id']}: {verdict['message']}\n")
    return Exit.OK


def _compare(store: RunStore, name: str, other: str, as_json: bool) -> int:
    run = store.find(name)
    now = stored_baselines.find(run.id, (), store)
    profile: Mapping[str, Any] = run.read("profile") or {}
    before = stored_baselines.find(other, stored_baselines.folders(str(profile.get("path", ""))), store)
    margins = {key: part for key in ("accuracy", "speed", "fingerprint") if (part := _expect(profile).get(key))}
    found = compare(before.validation, now.validation, parse_expect(margins))
    if as_json:
        _print(_document(found, now, before))
    else:
        sys.stdout.write(f"{now.name} against {before.name}\n")
        for note in found.notes:
            sys.stdout.write(f"  note         {note}\n")
        for verdict in found.verdicts:
            sys.stdout.write(f"  {verdict.outcome:<12} {verdict.id}: {verdict.message}\n")
        if not found.verdicts:
            sys.stdout.write("  nothing to compare: only suites standard and full take samples\n")
    return {Outcome.PASS: Exit.OK, Outcome.FAIL: Exit.BAD}.get(found.outcome, Exit.INCONCLUSIVE)


def _expect(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    expect = profile.get("expect")
    return expect if isinstance(expect, Mapping) else {}


def _document(found: Compared, now: stored_baselines.Stored, before: stored_baselines.Stored) -> dict[str, Any]:
    return {
        "run": now.name,
        "baseline": before.name,
        "outcome": found.outcome,
        "notes": list(found.notes),
        "verdicts": [
            {"id": item.id, "outcome": item.outcome, "message": item.message, "figures": dict(item.figures)}
            for item in found.verdicts
        ],
    }


def _gist(item: stored_baselines.Stored) -> dict[str, Any]:
    keys = ("level", "outcome", "model", "engine", "suite", "started", "summary")
    return {**item.about, "name": item.name, "path": item.path, **{key: item.validation.get(key) for key in keys}}


def _print(data: Any) -> None:
    sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
