"""`launch bundle`: pack a run into one archive without secrets, to attach to an issue or to commit as evidence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import check_output
from launcher.gate.evidence_bundle import SUFFIX, write
from launcher.run.store import RunStore


def main(
    name: Annotated[str, typer.Argument(metavar="RUN", help="run id, a unique part of it, `last`, or a run folder")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="archive to write; by default the run id in the current folder")
    ] = None,
) -> int:
    """Pack a run into one archive without secrets; `launch replay` and `diagnose run` open it."""
    check_output("--out", out, creates_folders=True)
    run = RunStore().find(name)
    path = write(run, out or Path(f"{run.id}{SUFFIX}"))
    sys.stdout.write(f"{path}\n")
    size = path.stat().st_size
    sys.stderr.write(f"{size:,} bytes; review it before you publish it: it contains paths and host names\n")
    return 0
