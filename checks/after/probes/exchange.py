"""The interface between a probe and the sender of its requests: Ask out, Answer in, Verdict at the end.

A probe is a script: a generator that yields waves of Asks, receives the Answers in the same order, and returns a
Verdict (or Measured). It is pure; `launcher.client.probing` sends the requests, and `replies` parses the replies.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from checks.vocabulary import Evidence, Outcome, Verdict


class Ask(Struct, frozen=True, kw_only=True):
    """One request. A payload of None is a GET. Only requests with a payload count against the server's concurrency."""

    path: str
    payload: Mapping[str, Any] | None = None
    stream: bool = False
    timeout: float = 0.0  # seconds for the whole reply; 0: the timeout of the run
    cut_after: int = 0  # close the stream after this many events; 0: read to the end
    pause: float = 0.0  # seconds to wait before sending
    lane: int = -1  # requests of one lane are sent sequentially, each after the previous reply; -1: no lane, concurrent
    baseline: bool = False  # send it to the live baseline server (Context.live_baseline), not to the one under test


class Answer(Struct, frozen=True, kw_only=True):
    """One reply, in the same shape for every route. A missing value is empty, or None for a count."""

    path: str
    status: int = 0  # 0: no HTTP status was received
    error: str = ""  # why there is no usable reply, as a message: connection refused, timeout, bad JSON ...
    fault: str = ""  # kind of `error`: refused unreachable forbidden timeout broken unreadable limited halted
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
    logprobs: tuple[float | None, ...] = ()  # of the generated tokens; None where JSON could not represent it (NaN)
    prompt_ids: tuple[int, ...] = ()
    prompt_logprobs: tuple[float | None, ...] = ()  # without the first token, which has none
    meta: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    began: float = 0.0  # of a stream: the time of sending, on the sender's clock
    times: tuple[float, ...] = ()  # of a stream: seconds since sending, one for each event with output
    counts: tuple[int, ...] = ()  # of a stream: tokens received up to each of `times`, where the route reports them
    chunks: tuple[Any, ...] = ()  # of a stream: its events as parsed JSON
    done: bool = False  # of a stream: whether [DONE] came

    @property
    def ok(self) -> bool:
        """Whether the reply is a readable 200 that the engine did not abort."""
        return self.status == 200 and not self.error and self.finish != "abort"

    @property
    def said(self) -> str:
        """Everything that the model produced: the reasoning, then the answer."""
        return self.reasoning + self.text


Wave: TypeAlias = Sequence[Ask]


class Measured(Struct, frozen=True, kw_only=True):
    """A verdict with the samples behind it, which a later run can be compared with."""

    verdict: Verdict
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


Judged: TypeAlias = Verdict | Measured
Script: TypeAlias = Generator[Wave, Sequence[Answer], Judged]


def verdict(
    probe: str, outcome: Outcome, message: str, evidence: Sequence[Evidence] = (), /, **figures: float | str
) -> Verdict:
    """Return a Verdict for the probe id `probe`; the sender fills in its seconds."""
    return Verdict(id=probe, outcome=outcome, message=message, evidence=tuple(evidence), figures=figures)


def quote(answer: Answer, limit: int = 160) -> Evidence:
    """Return one line that shows the reply, cut to `limit` characters."""
    shown = answer.error or (repr(answer.said) if answer.said else " ".join(answer.raw.split()) or "(nothing)")
    status = f"HTTP {answer.status}: " if answer.status not in (0, 200) else ""
    finish = f" [finish: {answer.finish}]" if answer.finish else ""
    cut = shown if len(shown) <= limit else shown[: limit - 1] + "…"
    return Evidence(text=f"{status}{cut}{finish}", source=answer.path)


def error_text(answer: Answer) -> str:
    """Return the server's error message, whichever error shape the reply uses."""
    data = answer.body
    if isinstance(data, Mapping):
        return error_message(data.get("error", data))
    return answer.raw


def error_message(error: Any) -> str:
    """Return the message in an error object."""
    return str(error.get("message", error)) if isinstance(error, Mapping) else str(error)


def failed_requests(probe: str, answers: Sequence[Answer]) -> Verdict | None:
    """Return the FAIL verdict when a request got no usable reply; None when every request got one."""
    bad = [answer for answer in answers if not answer.ok]
    if not bad:
        return None
    first = next((answer for answer in bad if answer.fault == "halted"), bad[0])
    if first.fault == "halted":  # all requests have the same reason, and there is no reply to quote
        return verdict(probe, Outcome.FAIL, first.error, failed_requests=len(bad), requests=len(answers))
    what = first.error or ("aborted by the engine" if first.finish == "abort" else f"HTTP {first.status}")
    if isinstance(first.body, Mapping) and first.status >= 400:
        what += f": {error_text(first)[:160]}"
    if first.path == "/generate" and first.status in (404, 405, 501):
        what += "; /generate is missing: this is not an SGLang server, or a proxy does not forward the route"
    missing = {"missing": first.path} if all(answer.status in (404, 405, 501) for answer in bad) else {}
    if all(answer.fault == "limited" for answer in bad):
        message = f"{len(bad)} of {len(answers)} requests were refused by a rate limit, which says nothing of the model"
        return verdict(probe, Outcome.INCONCLUSIVE, message, [quote(bad[0])])
    count = f"{len(bad)} of {len(answers)} requests failed: " if len(answers) > 1 else "the request failed: "
    return verdict(
        probe,
        Outcome.FAIL,
        f"{count}{what}",
        [quote(answer) for answer in bad[:3]],
        failed_requests=len(bad),
        requests=len(answers),
        **missing,
    )
