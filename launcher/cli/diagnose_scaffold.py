"""`diagnose scaffold`: an unknown failure becomes the folder of a new cause, ready for its author."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.run.store import RunStore


def main(
    source: Annotated[str, typer.Argument(metavar="RUN|LOG", help="a run (id, part of it, `last`), or a log file")],
    name: Annotated[str, typer.Argument(help="the bad state in hyphenated words, e.g. radix-cache-lost")],
    to: Annotated[Path, typer.Option("--to", help="folder for drafts")] = Path("knowledge-drafts"),
    engine: Annotated[str, typer.Option(help="engine release, where a log file does not say")] = "",
) -> int:
    """Turn an unknown failure into a cause folder with its log in it."""
    from launcher.flows.diagnose.draft_cause import scaffold_log, scaffold_run

    if source == "-" or Path(source).is_file():
        made = scaffold_log(source, name, to, engine)
    else:
        made = scaffold_run(RunStore().find(source), name, to)
    sys.stdout.write(
        f"wrote {made}: fill in what says TODO (docs/knowledge.md), replace the miss log, then\n"
        f"  python -m checks.lint {made}\n"
    )
    return 0
