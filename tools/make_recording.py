"""Draws recorded runs as docs/launch.svg, the picture in the README.

The recorded events, verdicts and diagnoses are printed by the product's own screen, with their recorded times.

usage: make_recording.py OUT.svg RUNDIR...
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from launcher.cli.render import diagnosis
from launcher.cli.screen import Screen, recorded
from launcher.flows.diagnose.run_diagnosis import diagnose_run
from launcher.run.events import Answering, Progress, from_json
from launcher.run.store import Run


def main(out: str, folders: list[str]) -> None:
    console = Console(record=True, width=118, color_system="truecolor", highlight=False, file=io.StringIO())
    for folder in folders:
        play(console, Run(id=Path(folder).resolve().name, folder=Path(folder)))
    console.save_svg(out, title="sglang-launcher")


def play(console: Console, run: Run) -> None:
    info = run.info
    console.print(f"[bold green]$[/] launch profile {info['profile']} --host {info['host']}")
    console.print(f"[bold]run[/]      {run.id}: SGLang {info['engine']}")
    screen = Screen(console)
    for row in run.events():
        event = from_json(row)
        if event is not None and not isinstance(event, Progress | Answering):
            screen.event(event)
    screen.close()
    if run.read("validation"):
        recorded(console, run.read("validation"))
        return
    console.print(f"[bold red]{info['state']}[/]  {escape(str(info.get('reason', '')))}")
    diagnosis(console, diagnose_run(run))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
