"""`launch init`: create a profiles repository, with the gate in its CI from the first commit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.gate.scaffold import scaffold


def main(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder; created if it does not exist")],
) -> int:
    """Create a profiles repository: hosts, a first profile, gate policy, CI for GitHub and GitLab."""
    written = scaffold(folder)
    sys.stdout.write("".join(f"{folder / name}\n" for name in written))
    sys.stderr.write(
        f"next: cd {folder} && git init && git add -A && git commit -m 'First profile' && launch gate --all\n"
    )
    return 0
