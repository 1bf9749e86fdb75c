"""`launch baseline`: save a validation under a name, show saved baselines, compare a run with one.

It only reads stored validations and sends nothing to a server; `launch validate --baseline` probes and compares.
"""

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
_ARGUMENTS = {"save": "RUN NAME", "show": "[NAME]", "compare": "RUN NAME|RUN"}


def main(
    action: Annotated[str, typer.Argument(metavar="save|show|compare")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="save RUN NAME · show [NAME] · compare RUN NAME|RUN")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--in", help="save: write DIR/baselines/NAME.json, to commit it with its profiles")
    ] = None,
    as_json: Json = False,
) -> int:
    """Save the validation of a run as a baseline, show baselines, compare a run with one."""
    match action, words or []:
        case "save", [run, name]:
            return _save(RunStore().find(run), name, folder, as_json)
        case "show", []:
            return _list(as_json)
        case "show", [name]:
            return _show(name, as_json)
        case "compare", [run, other]:
            return _compare(RunStore(), run, other, as_json)
        case _ if action in ACTIONS:
            raise UsageError(
                f"wrong number of arguments for `launch baseline {action}`",
                hint=f"launch baseline {action} {_ARGUMENTS[action]}",
            )
        case _:
            raise UsageError(f"unknown action `launch baseline {action}`", hint=f"use one of: {', '.join(ACTIONS)}")


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
            f"note: this baseline has no samples to compare: suite `{validation['suite']}` takes none; "
            "run `launch validate RUN --suite standard` (or full) first\n"
        )
    if validation["outcome"] == Outcome.FAIL:
        sys.stderr.write(f"warning: the validation of this run failed: {validation['summary']}\n")
    return Exit.OK


def _list(as_json: bool) -> int:
    stored = stored_baselines.available(stored_baselines.folders())
    if as_json:
        _print([_gist(baseline) for baseline in stored])
        return Exit.OK
    for baseline in stored:
        validation = baseline.validation
        sys.stdout.write(
            f"{baseline.name:<24} {validation.get('level', '?'):<12} {validation.get('model', '')} on SGLang "
            f"{validation.get('engine', '?')}, suite {validation.get('suite', '?')}, "
            f"{baseline.about.get('saved', '')}\n"
        )
    if not stored:
        sys.stderr.write("no baselines yet; save one with `launch baseline save RUN NAME`\n")
    return Exit.OK


def _show(name: str, as_json: bool) -> int:
    baseline = stored_baselines.find(name, stored_baselines.folders(), RunStore())
    if as_json:
        _print({**_gist(baseline), "validation": baseline.validation})
        return Exit.OK
    sys.stdout.write(f"{baseline.name}  {baseline.path}\n")
    for key, value in baseline.about.items():
        if key != "name":
            sys.stdout.write(f"  {key}: {value}\n")
    for key in ("level", "model", "engine", "suite", "started", "summary"):
        sys.stdout.write(f"  {key}: {baseline.validation.get(key, '')}\n")
    for verdict in baseline.validation["verdicts"]:
        sys.stdout.write(f"  {verdict['outcome']:<12} {verdict['id']}: {verdict['message']}\n")
    return Exit.OK


def _compare(store: RunStore, name: str, other: str, as_json: bool) -> int:
    run = store.find(name)
    now = stored_baselines.find(run.id, (), store)
    profile: Mapping[str, Any] = run.read("profile") or {}
    before = stored_baselines.find(other, stored_baselines.folders(str(profile.get("path", ""))), store)
    margins = {key: part for key in ("accuracy", "speed", "fingerprint") if (part := _expect(profile).get(key))}
    comparison = compare(before.validation, now.validation, parse_expect(margins))
    if as_json:
        _print(_document(comparison, now, before))
    else:
        sys.stdout.write(f"{now.name} compared with {before.name}\n")
        for note in comparison.notes:
            sys.stdout.write(f"  note         {note}\n")
        for verdict in comparison.verdicts:
            sys.stdout.write(f"  {verdict.outcome:<12} {verdict.id}: {verdict.message}\n")
        if not comparison.verdicts:
            sys.stdout.write("  nothing to compare: only the suites `standard` and `full` take samples\n")
    return {Outcome.PASS: Exit.OK, Outcome.FAIL: Exit.BAD}.get(comparison.outcome, Exit.INCONCLUSIVE)


def _expect(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    expect = profile.get("expect")
    return expect if isinstance(expect, Mapping) else {}


def _document(comparison: Compared, now: stored_baselines.Stored, before: stored_baselines.Stored) -> dict[str, Any]:
    return {
        "run": now.name,
        "baseline": before.name,
        "outcome": comparison.outcome,
        "notes": list(comparison.notes),
        "verdicts": [
            {"id": verdict.id, "outcome": verdict.outcome, "message": verdict.message, "figures": dict(verdict.figures)}
            for verdict in comparison.verdicts
        ],
    }


def _gist(item: stored_baselines.Stored) -> dict[str, Any]:
    keys = ("level", "outcome", "model", "engine", "suite", "started", "summary")
    return {**item.about, "name": item.name, "path": item.path, **{key: item.validation.get(key) for key in keys}}


def _print(data: Any) -> None:
    sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
