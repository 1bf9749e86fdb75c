"""Driving a probe's script by hand: canned answers in, the verdict and what was asked out."""

from __future__ import annotations

from collections.abc import Sequence

from checks.after.probes.context import Context, Server
from checks.after.probes.exchange import Answer, Ask, Measured
from checks.after.probes.registry import probes, script
from checks.vocabulary import Verdict


def drive(probe: str, waves: Sequence[Sequence[Answer]], context: Context | None = None) -> tuple[Verdict, list[Ask]]:
    """Verdict of a bundled probe when its waves are answered like this; and everything that it asked."""
    found = next(item for item in probes() if item.id == probe)
    steps, asked = script(found, context or Context(server=Server(model="smol", running=8))), []
    try:
        wave = next(steps)
        for answers in waves:
            asked += list(wave)
            assert len(wave) == len(answers), f"{probe} asks {len(wave)} at once, {len(answers)} answers are given"
            wave = steps.send(answers)
    except StopIteration as end:
        return (end.value.verdict if isinstance(end.value, Measured) else end.value), asked
    raise AssertionError(f"{probe} goes on asking: {[ask.payload for ask in wave]}")


def said(text: str, **more: object) -> Answer:
    """A good answer with a text."""
    values = {"path": "/generate", "status": 200, "finish": "stop", "text": text, **more}
    return Answer(**values)  # type: ignore[arg-type]
