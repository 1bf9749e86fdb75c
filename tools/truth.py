"""`make truth`: draws launches, asks `launch check`, then asks the real engine on this machine, and compares.

usage: truth.py [--seed N] [--launches N] [--starts N] [--out FILE] [--again FILE]

The engine resolves the arguments of every launch. Full starts are for launches that its arguments accept: all that the
check refuses, because only a start can prove such a refusal, then a sample of the others. Prints a Markdown table and
every disagreement; --out keeps all answers as JSON lines, --again asks only the launches of such a file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from engine_cache import ENGINE, layout  # noqa: E402
from truth_draws import Draw, draw  # noqa: E402

from checks.before.rules import check  # noqa: E402
from checks.engine.flag_schema import load  # noqa: E402
from checks.vocabulary import FlagValue, Severity  # noqa: E402
from launcher.flows.launch.prepare import look  # noqa: E402
from launcher.flows.launch.twin_check import Asked, twin_answers  # noqa: E402
from launcher.knowledge_cache import rules  # noqa: E402
from launcher.plan.launch_facts import to_launch  # noqa: E402
from launcher.plan.launch_plan import offline_flags, render_flag  # noqa: E402
from launcher.profile.file import Profile  # noqa: E402
from launcher.profile.resolve import available, resolve  # noqa: E402
from launcher.transport import inventory  # noqa: E402
from launcher.transport.local import LocalTransport  # noqa: E402

SECONDS = 60  # for the arguments of one launch
READY = 150.0  # seconds until a full start counts as neither ready nor crashed
BASE = "smollm2-135m-cpu"
_ERROR = re.compile(r"(\w+\.)*\w*(Error|Exception)\b")


class Answered(Struct, frozen=True, kw_only=True):
    """One launch, what was foreseen, and what happened. `start`: "", ready, crashed or undecided."""

    draw: Draw
    errors: tuple[str, ...] = ()  # ids of findings of severity error
    twin: str = "absent"
    arguments: str = ""  # of the engine: accepted | usage | refused | broken
    message: str = ""
    start: str = ""
    end: str = ""  # the last line of a start that crashed

    @property
    def foreseen(self) -> bool:
        """Whether `launch check` refuses the launch."""
        return bool(self.errors) or self.twin in ("usage", "refused")

    @property
    def fails(self) -> bool | None:
        """Whether the launch really fails; None without proof either way."""
        if self.arguments in ("usage", "refused"):
            return True
        return {"ready": False, "crashed": True}.get(self.start)


class Bench(Struct, frozen=True, kw_only=True):
    """The engine of this machine, and the launch that every draw changes."""

    profile: Profile
    python: str
    raw: Mapping[str, Any] = field(default_factory=dict)

    def flags(self, item: Draw) -> dict[str, FlagValue]:
        """Return the flags of a launch: those of the base profile, changed by the draw."""
        base = offline_flags(self.profile, str(self.raw["host"]["home"]))
        return {**{k: v for k, v in base.items() if k not in item.flags}, **item.flags}

    def env(self) -> dict[str, str]:
        """Return the variables of the base profile."""
        return {name: setting.value for name, setting in self.profile.env.items()}


def main() -> int:
    options = parse()
    bench = prepared()
    if options.again:
        drawn = [convert(json.loads(line)["draw"], Draw) for line in options.again.read_text().splitlines()]
    else:
        drawn = draw(load(ENGINE), launchable(), options.seed, options.launches)
    answers = with_arguments(bench, foreseen(bench, drawn))
    answers = with_starts(bench, answers, options.starts)
    if options.out:
        options.out.write_text("".join(json.dumps(to_builtins(item)) + "\n" for item in answers))
    sys.stdout.write(table(answers))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--launches", type=int, default=400)
    parser.add_argument("--starts", type=int, default=40)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", type=Path)
    return parser.parse_args()


def prepared() -> Bench:
    place = layout(os.environ)
    profile = resolve(BASE, [ROOT / "profiles"])
    host = replace(inventory.resolve("local"), python=str(place.python))
    return Bench(profile=profile, python=str(place.python), raw=look(LocalTransport(), profile, host))


def launchable() -> list[Profile]:
    """Return the profiles of this repository that can be launched."""
    known = available([ROOT / "profiles"])
    found = [resolve(name, [ROOT / "profiles"], known) for name in sorted(known)]
    return [profile for profile in found if not profile.abstract]


def foreseen(bench: Bench, drawn: Sequence[Draw]) -> list[Answered]:
    """Ask the check about each launch: rules with the facts of this machine, then the twin."""
    launches = {item.name: to_launch(bench.raw, bench.flags(item), bench.env()) for item in drawn}
    asked = [Asked(name=name, launch=launch, flags=launch.flags, raw=bench.raw) for name, launch in launches.items()]
    twins = twin_answers(LocalTransport(), ENGINE, asked)
    answers = []
    for item in drawn:
        found = check(launches[item.name], rules())
        ids = tuple(one.id for one in found if one.severity is Severity.ERROR)
        twin = twins[item.name].kind if item.name in twins else "absent"
        answers.append(Answered(draw=item, errors=ids, twin=twin))
    return answers


def with_arguments(bench: Bench, answers: Sequence[Answered]) -> list[Answered]:
    """Let the engine resolve the arguments of each launch."""
    jobs = [{"name": item.draw.name, "argv": words(bench.flags(item.draw))} for item in answers]
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [bench.python, str(ROOT / "tools" / "truth_program.py")],
            input=json.dumps({"jobs": jobs, "seconds": SECONDS}),
            env=environment(bench, folder),
            capture_output=True,
            text=True,
            check=False,
        )
    found = {row["name"]: row for row in map(json.loads, result.stdout.splitlines())}
    if len(found) != len(answers):
        raise SystemExit(f"the engine answered {len(found)} of {len(answers)} launches: {result.stderr[-600:]}")
    return [
        replace(item, arguments=found[item.draw.name]["kind"], message=said(found[item.draw.name])) for item in answers
    ]


def with_starts(bench: Bench, answers: Sequence[Answered], most: int) -> list[Answered]:
    """Start those whose arguments are accepted although the check refuses them, then a sample of the others."""
    accepted = [item for item in answers if item.arguments == "accepted"]
    chosen = [item.draw.name for item in sorted(accepted, key=lambda item: not item.foreseen)][:most]
    result = []
    for item in answers:
        start, end = started(bench, item.draw) if item.draw.name in chosen else ("", "")
        result.append(replace(item, start=start, end=end))
        if start:
            sys.stderr.write(f"{item.draw.name} {start}: {item.draw.note}: {end[-120:]}\n")
    return result


def started(bench: Bench, item: Draw) -> tuple[str, str]:
    """Start the engine, and end it once it is ready, has crashed, or READY seconds are over."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+b") as log:
        command = [bench.python, "-m", "sglang.launch_server", *words(bench.flags(item))]
        process = subprocess.Popen(
            command, env=environment(bench, folder), stdout=log, stderr=log, cwd=folder, start_new_session=True
        )
        limit, state = time.monotonic() + READY, "undecided"
        while time.monotonic() < limit and state == "undecided":
            time.sleep(0.5)
            text = (Path(folder) / "log").read_bytes()
            state = (
                "ready" if b"The server is fired up and ready to roll" in text
                else "crashed" if process.poll() is not None else state
            )  # fmt: skip
        end(process)
        lines = (Path(folder) / "log").read_text(errors="replace").strip().splitlines()
        told = [line for line in lines if _ERROR.match(line)] or lines
        return state, told[-1] if told and state != "ready" else ""


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the session of a start: its ranks outlive the main process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def environment(bench: Bench, folder: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
    return {**kept, **bench.env(), "PYTHONPATH": str(ROOT), "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}


def words(flags: Mapping[str, FlagValue]) -> list[str]:
    return [word for name, value in flags.items() for word in render_flag(name, value)]


def said(row: Mapping[str, Any]) -> str:
    text = " ".join(str(row.get(key, "")) for key in ("exception", "message", "frame"))
    return " ".join(text.split())[:400]


def table(answers: Iterable[Answered]) -> str:
    """Return the comparison as Markdown: a row for each kind of draw, then every disagreement."""
    rows, wrong = dict[str, Counter[str]](), list[str]()
    for item in answers:
        row = rows.setdefault(item.draw.kind, Counter())
        row["launches"] += 1
        for name, holds in verdicts(item):
            row[name] += holds
            if holds and name in ("refused although it works", "fails unforeseen", "twin differs"):
                wrong.append(f"- {name}: {item.draw.note} ({item.draw.name}): {problem(item)}")
    head = (
        "launches",
        "fails",
        "foreseen",
        "fails unforeseen",
        "refused although it works",
        "twin differs",
        "unproven",
    )
    lines = [f"| draw | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    lines += [f"| {kind} | {' | '.join(str(row[name]) for name in head)} |" for kind, row in rows.items()]
    return "\n".join([*lines, "", *wrong]) + "\n"


def verdicts(item: Answered) -> Iterator[tuple[str, bool]]:
    yield "fails", item.fails is True
    yield "foreseen", item.fails is True and item.foreseen
    yield "fails unforeseen", item.fails is True and not item.foreseen
    yield "refused although it works", item.fails is False and item.foreseen
    refuses, accepts = item.twin in ("usage", "refused"), item.twin == "accepted"
    real = item.arguments in ("usage", "refused")
    yield "twin differs", (refuses and item.arguments == "accepted") or (accepts and real)
    yield "unproven", item.fails is None


def problem(item: Answered) -> str:
    told = ", ".join(item.errors) or f"twin {item.twin}"
    return f"check: {told}; engine: {item.arguments} {item.message} {item.start} {item.end}".strip()[:500]


if __name__ == "__main__":
    sys.exit(main())
