"""`diagnose scaffold`: draft the folder of a knowledge entry from an unknown failure, for its author to complete."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.run.store import RunStore


def main(
    source: Annotated[str, typer.Argument(metavar="RUN|LOG", help="run (id, part of it, `last`) or log file")],
    name: Annotated[str, typer.Argument(help="the failure in hyphenated words, e.g. radix-cache-lost")],
    to: Annotated[Path, typer.Option("--to", help="folder for the drafts")] = Path("knowledge-drafts"),
    engine: Annotated[str, typer.Option(help="SGLang release, when the log does not name it")] = "",
) -> int:
    """Draft the knowledge entry of an unknown failure, with its log."""
    from launcher.flows.diagnose.draft_cause import scaffold_log, scaffold_run

    if source == "-" or Path(source).is_file():
        folder = scaffold_log(source, name, to, engine)
    else:
        folder = scaffold_run(RunStore().find(source), name, to)
    sys.stdout.write(
        f"wrote {folder}: complete every TODO (see docs/knowledge.md) and replace the miss log, then run\n"
        f"  python -m checks.lint {folder}\n"
    )
    return 0
