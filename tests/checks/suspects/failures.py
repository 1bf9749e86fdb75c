"""Failures to attribute: a log without a known cause, read and judged with the shipped phases and no patterns."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from checks.during.judgement import Judgement, judge
from checks.during.log.scan import scan
from checks.during.reading import read, starts_of
from tests.support import shipped

ENGINE = "0.5.11"
HEAD = "[2026-11-29 15:25:10 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
STARTED = "[2026-11-29 15:25:00 TP0] Load weight begin. avail mem=78.61 GB\n"


def frame(file: str, function: str, source: str = "", line: int = 10) -> str:
    return f'  File "/a/sglang/{file}", line {line}, in {function}\n' + (f"    {source}\n" if source else "")


def judged(log: str, engine: str = ENGINE, **known: Any) -> Judgement:
    index = replace(shipped.index(), rules=())
    reading = read(scan([log.encode()], index.words), index, known, engine)
    return judge(starts_of(reading)[-1])
