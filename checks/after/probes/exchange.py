"""What travels between a probe and whoever sends its requests: Ask out, Answer in, Verdict at the end.

A probe is a script: a generator that yields waves of Asks, is sent the Answers in the same order, and returns a
Verdict (or Measured). It is pure; `launcher.client.probing` sends the asks. Parsing of replies is in `probe_replies`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from checks.vocabulary import Evidence, Outcome, Verdict


class Ask(Struct, frozen=True, kw_only=True):
    """One request. A payload of None is a GET. Only asks with a payload count against the server's concurrency."""

    path: str
    payload: Mapping[str, Any] | None = None
    stream: bool = False
    timeout: float = 0.0  # seconds for the whole reply; 0 = what the run allows
    cut_after: int = 0  # close the stream after so many events; 0 = read to the end
    pause: float = 0.0  # seconds to wait before sending
    lane: int = -1  # asks of one lane go one after the other, each when the one before has ended; -1: all at once
    baseline: bool = False  # goes to the live baseline server (Context.live_baseline), not to the one under test


class Answer(Struct, frozen=True, kw_only=True):
    """What came back, in one shape for every route. Absent things are empty."""

    path: str
    status: int = 0  # 0: no HTTP status was received
    error: str = ""  # why there is no usable reply: refused, timeout, broken or bad JSON, in words
    fault: str = ""  # the kind of `error`: refused, unreachable, forbidden, timeout, broken, unreadable, halted
    body: Any = None  # parsed JSON; for a stream the last event
    raw: str = ""  # start of the body as text, for evidence
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish: str = ""  # stop, length, abort, tool_calls
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()  # of the generated tokens; None stands for what JSON could not hold (NaN)
    prompt_ids: tuple[int, ...] = ()
    prompt_logprobs: tuple[float | None, ...] = ()  # without the first token, which has none
    meta: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    began: float = 0.0  # of a stream: when it was sent, on the sender's clock
    times: tuple[float, ...] = ()  # of a stream: seconds since sending, one for each event that brought output
    counts: tuple[int, ...] = ()  # of a stream: tokens received up to each of `times`, where the route tells

    @property
    def ok(self) -> bool:
        """A 200 that could be read and was not given up by the engine."""
        return self.status == 200 and not self.error and self.finish != "abort"

    @property
    def said(self) -> str:
        """Everything the model produced: reasoning, then answer."""
        return self.reasoning + self.text


Wave: TypeAlias = Sequence[Ask]


class Measured(Struct, frozen=True, kw_only=True):
    """A verdict together with the samples behind it, which a later run compares itself with."""

    verdict: Verdict
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


Judged: TypeAlias = Verdict | Measured
Script: TypeAlias = Generator[Wave, Sequence[Answer], Judged]


def verdict(
    probe: str, outcome: Outcome, message: str, evidence: Sequence[Evidence] = (), /, **figures: float | str
) -> Verdict:
    """A Verdict of probe id `probe`; its seconds are filled in by the sender."""
    return Verdict(id=probe, outcome=outcome, message=message, evidence=tuple(evidence), figures=figures)


def quote(answer: Answer, limit: int = 160) -> Evidence:
    """One line that shows what came back, cut to `limit` characters."""
    shown = answer.error or (repr(answer.said) if answer.said else " ".join(answer.raw.split()) or "(nothing)")
    status = f"HTTP {answer.status}: " if answer.status not in (0, 200) else ""
    finish = f" [finish: {answer.finish}]" if answer.finish else ""
    cut = shown if len(shown) <= limit else shown[: limit - 1] + "…"
    return Evidence(text=f"{status}{cut}{finish}", source=answer.path)


def error_text(answer: Answer) -> str:
    """What the server says is wrong, out of any of its error shapes."""
    data = answer.body
    if isinstance(data, Mapping):
        return error_message(data.get("error", data))
    return answer.raw


def error_message(error: Any) -> str:
    """The sentence in an error object."""
    return str(error.get("message", error)) if isinstance(error, Mapping) else str(error)


def failed_requests(probe: str, answers: Sequence[Answer]) -> Verdict | None:
    """The verdict when some request brought no usable reply; None when all did. A failed request is a failure."""
    bad = [answer for answer in answers if not answer.ok]
    if not bad:
        return None
    first = next((answer for answer in bad if answer.fault == "halted"), bad[0])
    if first.fault == "halted":  # one reason for all, and no reply to show
        return verdict(probe, Outcome.FAIL, first.error, failed_requests=len(bad), requests=len(answers))
    what = first.error or ("aborted by the engine" if first.finish == "abort" else f"HTTP {first.status}")
    if isinstance(first.body, Mapping) and first.status >= 400:
        what += f": {error_text(first)[:160]}"
    if first.path == "/generate" and first.status in (404, 405, 501):
        what += ", there is no /generate: this is no SGLang server, or a proxy does not pass it on"
    count = f"{len(bad)} of {len(answers)} requests failed: " if len(answers) > 1 else "the request failed: "
    return verdict(
        probe,
        Outcome.FAIL,
        f"{count}{what}",
        [quote(answer) for answer in bad[:3]],
        failed_requests=len(bad),
        requests=len(answers),
    )
