"""`launch bundle`: a run as one archive without secrets, to attach to an issue or to commit as evidence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.gate.evidence_bundle import SUFFIX, write
from launcher.run.store import RunStore


def main(
    name: Annotated[str, typer.Argument(metavar="RUN", help="id, unique part of it, `last`, or a run's folder")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="file; the run's id in this folder by default")
    ] = None,
) -> int:
    """Pack a run into one archive without secrets; `launch replay` and `diagnose run` open it."""
    run = RunStore().find(name)
    path = write(run, out or Path(f"{run.id}{SUFFIX}"))
    sys.stdout.write(f"{path}\n")
    sys.stderr.write(f"{path.stat().st_size:,} bytes; look into it before you publish it: paths and names are in it\n")
    return 0
