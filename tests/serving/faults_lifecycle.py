"""P. Aborts, errors and load: what a request leaves behind when it does not end as usual."""

from __future__ import annotations

import time
from typing import Any

import httpx

from tests.serving import vocabulary
from tests.serving.asking import Asker
from tests.serving.calls import Refusal
from tests.serving.damage import salad
from tests.serving.planting import At, Fault, chat, when
from tests.serving.witness import LONG, OPEN


def _left(ask: Asker, count: int = 1) -> None:
    """Begin streams and leave them."""
    for _ in range(count):
        body = ask.messages(LONG, {"stream": True, "ignore_eos": True, "max_tokens": 4000})
        with ask.http.stream("POST", "/v1/chat/completions", json=body) as reply:
            next(reply.iter_bytes())
    time.sleep(0.5)


def _tokens(ask: Asker, asked: str, count: int) -> int:
    """Return how many tokens came of a request for so many."""
    return int(ask.chat(asked, max_tokens=count, ignore_eos=True)["usage"]["completion_tokens"])


def _running(ask: Asker) -> float:
    return float(ask.get("/v1/loads")["loads"][0]["num_running_reqs"])


def _unseen(_value: Any, at: At) -> None:
    """Do not notice that clients leave."""
    at.call.gone = None


def _kept(free: bool, at: At) -> Any:
    """Keep what an aborted request held."""
    return None if at.running.aborted else free


def _kept_tokens(free: bool, at: At) -> Any:
    return False if at.running.aborted else free


def _all_aborted(job: Any, at: At) -> Any:
    """Abort everybody when one request is aborted."""
    if job.aborted:
        for other in at.state.scheduler.running:
            other.aborted = True
    return job


def _after_error(_value: Any, at: At) -> Any:
    """Fail the request that follows a refused one."""
    limit = at.call.body.get("max_tokens")
    bad = (isinstance(limit, int) and limit < 0) or len(str(at.call.body.get("messages", ""))) > 150_000
    if at.memory.pop("refused", False):
        return Refusal("Internal Server Error", 500)
    at.memory["refused"] = bad
    return None


def _note(job: Any, at: At) -> Any:
    if job.aborted:
        at.memory["after"] = 4
    return job


def _shaken(token: int, at: At) -> int:
    """Write salad in the four requests after an abort."""
    left = at.memory.get("after", 0)
    if at.call.number not in at.memory.setdefault("shaken", set()) and left and not at.running.out:
        at.memory["shaken"].add(at.call.number)
        at.memory["after"] = left - 1
    return salad(token, at) if at.call.number in at.memory["shaken"] else token


def _oversize(params: Any, at: At) -> Any:
    if len(at.running.ids) >= at.state.options.context:
        raise Refusal("Internal Server Error", 500)
    return params


def _overload(finish: Any, at: At) -> Any:
    """Send empty answers when many wait."""
    return (
        {"type": "stop", "matched": vocabulary.END}
        if len(at.state.scheduler.waiting) > 2 and len(at.running.out) < 3
        else finish
    )


def _dropped(_value: Any, at: At) -> Any:
    return (
        Refusal("Service Unavailable", 503)
        if len(at.state.scheduler.running) + len(at.state.scheduler.waiting) >= 24
        else None
    )


def _starved(wait: float, at: At) -> float:
    """Let a request wait until the batch is nearly empty."""
    return wait + (1.5 if len(at.state.scheduler.running) > 4 and at.call.number % 4 == 0 else 0)


def _limit_hit(reply: Any, at: At) -> Any:
    """Lose the limit of running requests as a 200 with no choices."""
    if chat(at) and len(at.state.scheduler.running) > 10 and isinstance(reply.body, dict):
        reply.body["choices"] = []
    return reply


def _still_running(ask: Asker) -> bool:
    """Return whether requests run on after their clients left."""
    _left(ask, 3)
    time.sleep(0.3)
    return _running(ask) > 0


def _used(ask: Asker) -> bool:
    _left(ask, 2)
    return bool(ask.get("/v1/loads")["loads"][0]["num_used_tokens"] > 0)


def _others_die(ask: Asker) -> bool:
    """Return whether a request is cut when another client leaves."""

    def one(number: int) -> bool:
        if number == 0:
            _left(ask)
            return False
        return _tokens(ask, OPEN, 200) != 200

    return any(ask.many(6, one, 6))


def _fails_after(ask: Asker) -> bool:
    ask.chat("hello", max_tokens=1)
    ask.post("/v1/chat/completions", ask.messages("hello", {"max_tokens": -1}))
    return any(
        ask.post("/v1/chat/completions", ask.messages("hello", {"max_tokens": 4})).status_code != 200 for _ in range(3)
    )


def _wrong_after(ask: Asker) -> bool:
    _left(ask)
    return any("Paris" not in ask.say("What is the capital of France?", max_tokens=40) for _ in range(4))


def _oversize_seen(ask: Asker) -> bool:
    return (
        ask.post(
            "/v1/chat/completions", ask.messages("The old keeper went home. " * 8000, {"max_tokens": 4})
        ).status_code
        != 400
    )


def _flood(count: int) -> Any:
    """Return a witness that asks for many answers at once and sees one that is not whole."""

    def look(ask: Asker) -> bool:
        def one(number: int) -> bool:
            try:
                return _tokens(ask, f"{OPEN} {number}", 120) != 120
            except (httpx.HTTPError, KeyError, IndexError):
                return True

        return any(ask.many(count, one, count))

    return look


def _starves(ask: Asker) -> bool:
    def one(number: int) -> float:
        begun = time.monotonic()
        ask.say(OPEN, max_tokens=20, ignore_eos=True)
        return time.monotonic() - begun

    return max(ask.many(24, one, 12)) > 1.3


def _no_choices(ask: Asker) -> bool:
    return any(
        not body["choices"]
        for body in ask.many(40, lambda number: ask.chat(f"{OPEN} {number}", max_tokens=60, ignore_eos=True), 20)
    )


def _abort_all(ask: Asker) -> bool:
    """Return whether aborting by an unknown id ends requests of others."""

    def one(number: int) -> bool:
        if number == 0:
            time.sleep(0.15)
            ask.post("/abort_request", {"rid": "no-such-request"})
            return False
        return _tokens(ask, OPEN, 150) != 150

    return any(ask.many(5, one, 5))


def _leaks(ask: Asker) -> bool:
    ask.say("hello")
    time.sleep(0.2)
    return bool(ask.get("/v1/loads")["loads"][0]["num_used_tokens"] > 0)


SLOW = frozenset({"slow"})
FAULTS = (
    Fault("aborts-unseen", "P", "Requests run on after their clients have left.", {"arrival": _unseen}, needs=SLOW,
          witness=_still_running),
    Fault("aborts-leak-requests", "P", "Aborted requests are counted as running for ever.", {"release": _kept},
          needs=SLOW, witness=_still_running),
    Fault("aborts-leak-tokens", "P", "Aborted requests keep their tokens in the cache's account.",
          {"release": _kept_tokens}, needs=SLOW, witness=_used),
    Fault("abort-ends-others", "P", "When one client leaves, all other requests end.", {"result": _all_aborted},
          needs=SLOW, witness=_others_die),
    Fault("abort-spoils-four", "P", "The four requests after an abort get salad.", {"result": _note, "token": _shaken},
          needs=SLOW, witness=_wrong_after),
    Fault("error-after-refusal", "P", "The request after a refused one fails.", {"arrival": _after_error},
          witness=_fails_after),
    Fault("oversize-is-500", "P", "Overlong prompts are answered with HTTP 500.", {"params": _oversize},
          witness=_oversize_seen),
    Fault("overload-empties", "P", "When requests wait, answers are cut after a token.", {"finish": _overload},
          rate="with a queue", needs=frozenset({"slow", "narrow"}), witness=_flood(24)),
    Fault("overload-503-at-24", "P", "The 25th request at once is refused although 32 may run and more may wait.",
          {"arrival": _dropped}, rate="24 at once", needs=SLOW, witness=_flood(40)),
    Fault("one-in-four-starves", "P", "Under load one request in four waits for long.", {"wait": _starved},
          rate="1/4 under load", needs=SLOW, witness=_starves),
    Fault("no-choices-under-load", "P", "Above ten at once replies have no choices.", {"reply": _limit_hit},
          rate="batches above 10", needs=SLOW, witness=_no_choices),
    Fault("abort-of-unknown-aborts-all", "P", "Aborting an unknown id aborts everybody.", {"abort": lambda rid, at: ""},
          needs=SLOW, witness=_abort_all),
    Fault("each-request-leaks", "P", "Each finished chat keeps its tokens in the account.",
          {"release": when(chat, lambda free, at: False)}, rate="grows",
          witness=_leaks),
)  # fmt: skip
