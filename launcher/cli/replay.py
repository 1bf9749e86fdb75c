"""`launch replay`: judge recorded runs again with the current knowledge. Exit code 1 if a verdict changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins

from launcher.cli.exits import Exit
from launcher.cli.options import Json


def main(
    runs: Annotated[list[str], typer.Argument(metavar="RUNDIR|BUNDLE...", help="run folders, run ids or bundles")],
    as_json: Json = False,
) -> int:
    """Judge recorded runs again, offline, and report verdicts that changed."""
    from launcher.flows.gate.replay_tier import replay
    from launcher.run.store import RunStore

    replayed = []
    for name in runs:
        path = Path(name)
        replayed.append(replay(path if path.exists() else RunStore().find(name).folder, name=name))
    if as_json:
        sys.stdout.write(json.dumps([to_builtins(item) for item in replayed], ensure_ascii=False) + "\n")
    else:
        for item in replayed:
            sys.stdout.write(f"{item.run}{f' (profile {item.profile})' if item.profile else ''}\n")
            for key in item.now:
                before, now = item.recorded.get(key, "not recorded"), item.now[key]
                mark = "FLIPPED" if key in item.flipped else "same" if key in item.recorded else "new"
                sys.stdout.write(f"  {key:<8} {mark:<8} {before if before == now else f'{before} → {now}'}\n")
            sys.stdout.write("".join(f"  note: {note}\n" for note in item.notes))
    return Exit.BAD if any(item.flipped for item in replayed) else Exit.OK
