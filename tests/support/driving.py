"""Runs a probe's script without a server: canned answers go in, the verdict and the requests come out."""

from __future__ import annotations

from collections.abc import Sequence

from checks.after.probes.context import Context, Server
from checks.after.probes.exchange import Answer, Ask, Measured
from checks.after.probes.registry import probes, script
from checks.vocabulary import Verdict


def drive(probe: str, waves: Sequence[Sequence[Answer]], context: Context | None = None) -> tuple[Verdict, list[Ask]]:
    """Return the verdict of a bundled probe for these answers, one sequence per wave, and all its requests."""
    entry = next(item for item in probes() if item.id == probe)
    steps, requests = script(entry, context or Context(server=Server(model="smol", running=8))), []
    try:
        wave = next(steps)
        for answers in waves:
            requests += list(wave)
            assert len(wave) == len(answers), (
                f"{probe} sends {len(wave)} requests, but the test has {len(answers)} answers"
            )
            wave = steps.send(answers)
    except StopIteration as end:
        return (end.value.verdict if isinstance(end.value, Measured) else end.value), requests
    raise AssertionError(f"{probe} sends further requests: {[ask.payload for ask in wave]}")


def said(text: str, **fields: object) -> Answer:
    """Return a successful answer with this text."""
    values = {"path": "/generate", "status": 200, "finish": "stop", "text": text, **fields}
    return Answer(**values)  # type: ignore[arg-type]
