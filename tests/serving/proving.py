"""Runs witnesses: each must see its fault, and nothing on a healthy server."""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct

from tests.serving.asking import Asker, NotApplicable
from tests.serving.oddities import ODDITIES
from tests.serving.planting import Fault
from tests.serving.server import FEATURES, serving
from tests.serving.table import FAULTS
from tests.serving.witness import UNREADABLE


class Proof(Struct, frozen=True):
    """What one witness saw."""

    name: str
    shown: bool | None
    healthy: bool | None
    seconds: float
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the fault was seen where it is, and not where it is not."""
        return self.shown is True and self.healthy is False


def _look(fault: Fault, url: str, key: str = "", limit: int = 600) -> tuple[bool | None, str]:
    assert fault.witness is not None
    try:
        return fault.witness(Asker(url, key, limit)), ""
    except NotApplicable as reason:
        return None, f"not applicable: {reason}"
    except UNREADABLE as error:
        return True, f"by an error: {error!r}"


def prove(names: Iterable[str], speed: float = 0.0) -> Iterable[Proof]:
    """Yield what the witness of each fault sees with the fault, and without it."""
    for name in names:
        fault = FAULTS[name]
        begun = time.monotonic()
        given = {key: value for need in sorted(fault.needs) for key, value in FEATURES[need].items()}
        options = {"speed": speed, **given}
        with serving([fault], **options) as (url, state):
            shown, note = _look(fault, url)
            note += f" inside: {state.errors[:1]}" if state.errors else ""
        with serving(**options) as (url, state):
            healthy, more = _look(fault, url)
            more += f" inside, healthy: {state.errors[:1]}" if state.errors else ""
        yield Proof(name, shown, healthy, time.monotonic() - begun, note + more)


def prove_odd(odd: str, names: Iterable[str]) -> Iterable[Proof]:
    """Yield what the witnesses of faults see on a server that is odd but healthy; it does not sleep between tokens."""
    with serving(odd=odd, speed=0) as (url, state):
        limit = 4000 if state.options.thoughts > 10 else 160 if state.options.context <= 512 else 600
        for name in names:
            begun = time.monotonic()
            healthy, note = _look(FAULTS[name], url, state.options.api_key, limit)
            yield Proof(name, None, healthy, time.monotonic() - begun, note)


def prove_proxy(names: Iterable[str]) -> Iterable[Proof]:
    """Yield what witnesses see through a proxy with a fault before a healthy server, and through one without."""
    from tests.serving.proxy import proxying
    from tests.serving.proxy_rules import RULES

    for name in names:
        begun = time.monotonic()
        with serving(speed=0) as (upstream, _state):
            with proxying(upstream, [name]) as url:
                shown, note = _look(RULES[name], url)
            with proxying(upstream) as url:
                healthy, more = _look(RULES[name], url)
        yield Proof(name, shown, healthy, time.monotonic() - begun, note + more)


_ANY = (
    "created-1970", "role-user", "ids-repeated", "usage-missing", "usage-prompt-off-by-one", "no-done", "no-finish",
    "frames-joined",
    "stream-usage-zero", "chat-one-too-many", "cut-told-as-stop", "bad-limit-accepted", "n-one-missing",
    "choices-index-zero",
    "first-text-lost", "event-lost", "special-tokens-shown", "utf8-split", "cross-talk-lane-5", "system-ignored",
    "history-dropped",
    "seed-ignored", "top-k-ignored", "temperature-ignored", "logprobs-shifted", "logprobs-halved", "top-unsorted",
    "top-without-best",
    "prefill-one-short", "native-deltas", "salad-each-20", "first-request-wrong", "batch-of-5", "lane-3", "window-2k",
    "schema-extra",
    "json-unclosed-each-12", "tool-second-lost", "tool-no-id", "running-never-zero", "usage-negative",
    "counters-frozen", "metrics-nan",
    "cached-more-than-prompt", "aborts-leak-requests", "abort-ends-others", "error-after-refusal",
    "completions-salad", "native-list-alike",
    "partial-hit-hole", "full-hit-salad", "stream-one-short", "usage-drifts",
)  # fmt: skip


_ABLE = frozenset((
    "system-ignored", "history-dropped", "salad-each-20", "first-request-wrong", "batch-of-5", "lane-3", "window-2k",
    "tool-second-lost",
    "tool-no-id", "completions-salad", "native-list-alike", "partial-hit-hole", "full-hit-salad", "utf8-split",
    "cross-talk-lane-5",
))  # fmt: skip
"""Those whose witnesses need a model that can answer."""
_SHORT = frozenset(
    (
        "salad-each-20",
        "schema-extra",
        "json-unclosed-each-12",
        "tool-second-lost",
        "tool-no-id",
        "window-2k",
        "partial-hit-hole",
        "full-hit-salad",
    )
)
"""Those whose witnesses need more room than the smallest contexts have."""
_CUT = frozenset((
    "cut-told-as-stop", "chat-one-too-many", "temperature-ignored", "partial-hit-hole", "full-hit-salad",
))  # fmt: skip
"""Those whose witnesses cut answers short, which leaves nothing of an answer after thoughts."""


def plain_names(odd: str) -> list[str]:
    """Return the faults whose witnesses are asked of an odd server: a few of each mechanism."""
    options = ODDITIES[odd].options
    left_out: set[str] = set()
    if options.get("skilled") is False:
        left_out |= _ABLE
    if options.get("context", 32_768) < 8192:
        left_out |= _SHORT if options["context"] <= 512 else {"window-2k"}
    if options.get("thinking") or options.get("style") == "polite":
        left_out |= _CUT
    if options.get("tool_parser") is False:
        left_out |= {"tool-second-lost", "tool-no-id"}
    return [name for name in _ANY if not FAULTS[name].needs - {"slow"} and name not in left_out]
