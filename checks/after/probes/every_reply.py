"""Judge all replies of a validation together: contract, text and streams. It sends nothing, so it costs nothing. Pure.

A fault in each 20th reply is nearly certain to be among the hundreds of replies of a suite, whatever they were asked
for. `reply_contract` holds the contract of a single reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from checks.after.measures.garbage import judge_text, script_of
from checks.after.measures.intervals import wilson
from checks.after.measures.language import core_share, words_of
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, quote, verdict
from checks.after.probes.expect import or_default
from checks.after.probes.reply_contract import Breach, breaches
from checks.vocabulary import Evidence, Outcome, Verdict

_WORDS = 16  # fewer words do not show whether a text is language
_SALAD = 0.04  # share of the words that hold sentences together: prose has 0.2, salad hardly any
_LANGUAGE = 0.14  # the median share of a group of texts that is English prose
_STANDSTILL = 3.0  # seconds without an event
_BYTES = ("mixed-scripts", "control-characters", "mojibake", "undecoded-tokens")
_MEASURED = ("speed", "abort")  # their streams ignore the end of an answer, so that loops are no fault


class Exchange(Struct, frozen=True, kw_only=True):
    """One request that a probe sent, and the reply."""

    probe: str
    ask: Ask
    answer: Answer


def reply_contract(probe: Probe, _: Context, exchanges: Sequence[Exchange]) -> Verdict:
    """Check that every reply keeps the contract of its route."""
    asked = [item for item in exchanges if item.answer.ok and item.ask.payload is not None]
    if not asked:
        return _nothing(probe, exchanges)
    found = [(item, breach) for item in asked for breach in breaches(item.ask, item.answer)]
    found += [(item, Breach(kind="id", message="an id that another reply had")) for item in _same_ids(asked)]
    if not found:
        return verdict(probe.id, Outcome.PASS, f"{len(asked)} replies keep the contract", replies=len(asked))
    kinds = Counter(breach.kind for _, breach in found)
    parts, evidence = [], []
    for kind, count in kinds.most_common():
        item, breach = next(pair for pair in found if pair[1].kind == kind)
        parts.append(f"{breach.message} ({_rate(count, len(asked))})")
        evidence.append(Evidence(text=f"{item.probe}: {item.answer.raw[:160]}", source=item.ask.path))
    return verdict(probe.id, Outcome.FAIL, "; ".join(parts[:4]), evidence[:3], replies=len(asked), breaches=len(found))


def _same_ids(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Yield chats whose id another reply had: clients and logs tell replies apart by it."""
    seen: set[str] = set()
    for item in exchanges:
        body = item.answer.chunks[0] if item.answer.chunks else item.answer.body
        name = str(body.get("id") or "") if isinstance(body, Mapping) else ""
        if name and name in seen:
            yield item
        seen.add(name)


def every_text(probe: Probe, context: Context, exchanges: Sequence[Exchange]) -> Verdict:
    """Check that every text is language: no broken bytes, no loops, no word salad among texts that are prose."""
    said = [
        item
        for item in exchanges
        if item.answer.ok and item.answer.said.strip() and item.ask.payload is not None and not item.ask.cut_after
    ]
    if not said:
        return _nothing(probe, exchanges)
    bad = {id(item): (item, problem) for item in said if (problem := _broken(item))}
    if len(bad) * 20 < len(said) and all(_sampled(item) for item, _ in bad.values()):
        bad = {}  # a warm sampler may draw half of a character now and then
    if or_default(context.expect.common_words, 1.0) > 0:
        for item in _salad(said):
            bad.setdefault(id(item), (item, "word salad"))
    if not bad:
        return verdict(probe.id, Outcome.PASS, f"{len(said)} texts are language", texts=len(said))
    items = list(bad.values())
    message = f"{items[0][1]} in {_rate(len(items), len(said))}"
    evidence = [quote(item.answer) for item, _ in items[:3]]
    return verdict(probe.id, Outcome.FAIL, message, evidence, texts=len(said), broken=len(items))


def _broken(item: Exchange) -> str:
    answer = item.answer
    ended = answer.finish == "stop"
    # a text that runs on past its end may hold half of a character of its own making
    if item.probe not in _MEASURED and "\ufffd" in (answer.said if ended else answer.said.rstrip("\ufffd")):
        return "replacement characters (U+FFFD)"
    free = item.probe in _MEASURED or not ended  # a weak model that is cut may loop
    kinds = _BYTES if free else (*_BYTES, "loop", "repeated-character")
    problems = judge_text(answer.said, finish_reason=answer.finish or None)
    return next((problem.message for problem in problems if problem.kind in kinds), "")


def _sampled(item: Exchange) -> bool:
    payload = item.ask.payload or {}
    return float((payload.get("sampling_params") or payload).get("temperature") or 0) > 0


def _salad(items: Iterable[Exchange]) -> Iterator[Exchange]:
    """Yield texts without any common word, among texts of one probe that are prose by their median."""
    groups: dict[str, list[tuple[float, Exchange]]] = {}
    for item in items:
        words = words_of(item.answer.said)
        if len(words) >= _WORDS and script_of(item.answer.said) == "LATIN":
            groups.setdefault(item.probe, []).append((core_share(words), item))
    for group in groups.values():
        if len(group) >= 5 and median(share for share, _ in group) >= _LANGUAGE:
            yield from (item for share, item in group if share < _SALAD)


def every_stream(probe: Probe, _: Context, exchanges: Sequence[Exchange]) -> Verdict:
    """Check that no stream stands still, and that each says in its usage what it sent."""
    streams = [item for item in exchanges if item.answer.ok and item.answer.times and not item.ask.cut_after]
    if not streams:
        return _nothing(probe, exchanges)
    gaps = [gap for item in streams for gap in (b - a for a, b in pairwise(item.answer.times))]
    usual = median(gaps) if gaps else 0.0
    still = [item for item in streams if _longest(item.answer) > max(_STANDSTILL, 20 * usual)]
    if still:
        longest = max(_longest(item.answer) for item in still)
        message = f"a stream stood still for {longest:.1f} s between two tokens ({_rate(len(still), len(streams))})"
        return verdict(probe.id, Outcome.FAIL, message, [quote(item.answer) for item in still[:3]])
    wrong = [item for item in streams if _miscounted(item.answer)]
    if wrong:
        answer = wrong[0].answer
        message = f"a usage of {answer.completion_tokens} tokens after {len(answer.times)} events"
        message += f" ({_rate(len(wrong), len(streams))})"
        return verdict(probe.id, Outcome.FAIL, message, [quote(item.answer) for item in wrong[:3]])
    return verdict(probe.id, Outcome.PASS, f"{len(streams)} streams flow", streams=len(streams))


def _nothing(probe: Probe, exchanges: Sequence[Exchange]) -> Verdict:
    """Return the verdict where there is nothing to judge; nobody answered if no reply has a status."""
    gone = not any(item.answer.status for item in exchanges)
    message = "the server did not answer" if gone else "no reply of this kind came"
    return replace(verdict(probe.id, Outcome.SKIP, message), unreachable=gone)


def _longest(answer: Answer) -> float:
    return max((b - a for a, b in pairwise(answer.times)), default=0.0)


def _miscounted(answer: Answer) -> bool:
    """Whether a stream reports fewer tokens than it sent events: an event holds at least one."""
    return answer.completion_tokens is not None and answer.completion_tokens < len(answer.times)


def _rate(count: int, of: int) -> str:
    share = wilson(count, of)
    return f"{count} of {of}, {share.low:.1%} to {share.high:.1%} of all" if count < of else f"all {of}"


OBSERVERS: Mapping[str, Callable[[Probe, Context, Sequence[Exchange]], Verdict]] = {
    "reply-contract": reply_contract,
    "every-text": every_text,
    "every-stream": every_stream,
}
