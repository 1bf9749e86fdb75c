"""Scripts of the probes for places where faults hide: long prompts, cache hits, batches, context edge, aborts.

Same form as `probe_basic`. Greedy answers that part at a near tie (`probe_requests.agreement`) count as equal, because
another batch size rounds differently in every engine; anything else is a fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from checks.after.probes.basic import accepted, garbage, garbage_of
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, error_text, failed_requests, quote, verdict
from checks.after.probes.requests import agreement, chat, generate
from checks.after.probes.texts import code_word, long_text, short_prompts, with_needle
from checks.vocabulary import Outcome, Verdict


def long_prompt(probe: Probe, context: Context) -> Script:
    """A prompt that is prefilled in several chunks gives language, and the server counts its tokens."""
    server = context.server
    wanted = min(int((server.chunk or 4096) * 1.6) + 2 * server.page, probe.count("most_tokens", 40_000))
    tokens = _within(context, wanted)
    prompt = long_text(tokens, probe.count("seed", 1)) + "\n\nIn one sentence, what do these notes have in common?"
    [answer] = yield [chat(context, prompt, probe.count("max_tokens", 48))]
    if bad := failed_requests(probe.id, [answer]) or garbage(probe, [answer]):
        return bad
    got = answer.prompt_tokens or 0
    if server.chunk and got <= server.chunk:
        message = f"{got} tokens fit into one chunk of {server.chunk}: the context is too small for more"
        return verdict(probe.id, Outcome.SKIP, message, prompt_tokens=got)
    return verdict(probe.id, Outcome.PASS, f"language after {got} tokens", [quote(answer)], prompt_tokens=got)


def needle(probe: Probe, context: Context) -> Script:
    """One sentence in a long text is retrieved, wherever it is."""
    tokens = _within(context, probe.count("tokens", 4000))
    depths: Sequence[float] = probe.params["depths"]
    codes = [code_word(index + 7) for index in range(len(depths))]
    asks = [
        chat(context, with_needle(tokens, depth, code, 20 + index), probe.count("max_tokens", 24))
        for index, (depth, code) in enumerate(zip(depths, codes, strict=True))
    ]
    answers = yield asks
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    found = [accepted(answer.said, [code]) for answer, code in zip(answers, codes, strict=True)]
    before = context.baseline.figures.get(probe.id, {}).get("found") if context.baseline else None
    lost = [quote(answer) for answer, ok in zip(answers, found, strict=True) if not ok]
    shown = f"{sum(found)} of {len(found)} found in {answers[0].prompt_tokens} tokens"
    if not lost:
        return verdict(probe.id, Outcome.PASS, shown, found=sum(found))
    # a weak model loses some; one that loses all, or fewer than before, has lost its context
    worse = not any(found) or (before is not None and sum(found) < float(before))
    outcome = Outcome.FAIL if worse else Outcome.INCONCLUSIVE
    return verdict(probe.id, outcome, shown, lost, found=sum(found))


def cache_rerun(probe: Probe, context: Context) -> Script:
    """A prompt that is in the prefix cache gives the same answer as when it was computed."""
    if not context.server.radix_cache:
        return verdict(probe.id, Outcome.SKIP, "the prefix cache is off")
    tokens = _within(context, max(probe.count("tokens", 600), 3 * context.server.page))
    prompt = long_text(tokens, probe.count("seed", 2)) + f" Note {tokens}: The days of the week are Monday, Tuesday,"
    ask = generate(prompt, probe.count("max_tokens", 24), logprobs=True)
    [first] = yield [ask]
    if first.status == 400:
        ask = generate(prompt, probe.count("max_tokens", 24))
        [first] = yield [ask]
    [second] = yield [ask]
    if bad := failed_requests(probe.id, [first, second]) or garbage(probe, [first, second]):
        return bad
    result, cached = agreement(first, second), second.cached_tokens or 0
    if not result.close:
        message = f"the cached prompt ({cached} tokens) gives another answer after {result.same} of {result.of}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(first), quote(second)], cached_tokens=cached)
    if not cached:
        return verdict(probe.id, Outcome.INCONCLUSIVE, "equal, but nothing came from the cache", cached_tokens=0)
    return verdict(probe.id, Outcome.PASS, f"equal with {cached} tokens from the cache", cached_tokens=cached)


def concurrency_agreement(probe: Probe, context: Context) -> Script:
    """The same greedy prompts one at a time and all at once: equal answers, up to a stated share."""
    if context.concurrency < 2:
        return verdict(probe.id, Outcome.SKIP, "the server answers one request at a time")
    prompts, tokens = short_prompts()[: probe.count("prompts", 8)], probe.count("max_tokens", 20)
    alone: list[Answer] = []
    for prompt in prompts:
        alone += yield [generate(prompt, tokens, logprobs=True)]
    copies = max(1, min(context.concurrency, probe.count("at_once", 32)) // len(prompts))
    crowd = yield [generate(prompt, tokens, logprobs=True) for prompt in prompts * copies]
    if bad := failed_requests(probe.id, [*alone, *crowd]):
        return bad
    if bad := garbage(probe, alone):
        return bad
    if broken := [answer for answer in crowd if garbage_of(answer)]:
        message = f"{len(broken)} of {len(crowd)} answers are garbage when {len(crowd)} are asked at once, none alone"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in broken[:3]], at_once=len(crowd))
    return _judge_agreement(probe, list(alone) * copies, crowd)


def _judge_agreement(probe: Probe, alone: Sequence[Answer], crowd: Sequence[Answer]) -> Verdict:
    results = [agreement(one, other) for one, other in zip(alone, crowd, strict=True)]
    parted = [index for index, result in enumerate(results) if not result.close]
    ties = sum(1 for result in results if result.near_tie)
    tolerance = probe.number("tolerance", 0.1)
    share = len(parted) / len(results)
    message = f"{len(parted)} of {len(results)} greedy answers change with the batch ({ties} more at near ties)"
    figures: dict[str, float | str] = {"parted": share, "near_ties": ties / len(results), "tolerance": tolerance}
    if share <= tolerance:
        return verdict(probe.id, Outcome.PASS, f"{message}; {tolerance:.0%} are tolerated", **figures)
    evidence = [part for index in parted[:2] for part in (quote(alone[index]), quote(crowd[index]))]
    outcome = Outcome.FAIL if share > 2 * tolerance else Outcome.INCONCLUSIVE
    return verdict(probe.id, outcome, message, evidence, **figures)


def batch_sweep(probe: Probe, context: Context) -> Script:
    """Batches of every captured graph size and between them: no size may give garbage or other answers."""
    tokens = probe.count("max_tokens", 10)
    prompts = short_prompts()
    reference = yield [generate(prompts[0], tokens, logprobs=True)]
    if bad := failed_requests(probe.id, reference) or garbage(probe, reference):
        return bad
    sizes = sweep_sizes(context.server.graph_sizes, context.concurrency, probe.count("most_sizes", 14))
    bad_sizes: dict[int, Answer] = {}
    for size in sizes:
        answers = yield [generate(prompts[index % len(prompts)], tokens, logprobs=True) for index in range(size)]
        if bad := failed_requests(probe.id, answers):
            return replace(bad, message=f"batch of {size}: {bad.message}")
        broken = [answer for answer in answers if garbage_of(answer)]
        moved = [answers[0]] if not agreement(reference[0], answers[0]).close else []
        if broken or moved:
            bad_sizes[size] = (broken or moved)[0]
    if bad_sizes:
        shown = ", ".join(map(str, bad_sizes))
        message = f"batches of {shown} give garbage or other answers; sizes asked: {', '.join(map(str, sizes))}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in list(bad_sizes.values())[:3]])
    return verdict(probe.id, Outcome.PASS, f"batch sizes {', '.join(map(str, sizes))} agree", sizes=len(sizes))


def sweep_sizes(captured: Sequence[int], most: int, count: int) -> tuple[int, ...]:
    """Batch sizes to try: the captured ones and one more than each (which is padded to the next), up to `most`."""
    base = captured or (1, 2, 4, 8, 16, 32, 64)
    sizes = sorted({size for item in base for size in (item, item + 1) if size <= most} | {most})
    if len(sizes) <= count:
        return tuple(sizes)
    step = (len(sizes) - 1) / (count - 1)
    return tuple(dict.fromkeys(sizes[round(index * step)] for index in range(count)))


def context_edge(probe: Probe, context: Context) -> Script:
    """A prompt that just fits is answered, one that does not is refused with 400, and the server lives on."""
    limit = context.server.context
    if not limit:
        return verdict(probe.id, Outcome.SKIP, "the server does not tell how long a prompt may be")
    [spelled] = yield [_with_prompt_ids(long_text(200, 3))]
    if not spelled.ok or len(spelled.prompt_ids) < 20:
        return verdict(probe.id, Outcome.SKIP, "the server does not tell token ids", [quote(spelled)])
    ids = spelled.prompt_ids * (limit // len(spelled.prompt_ids) + 2)
    [long] = yield [generate(ids[: limit + 64], 4)]
    if bad := _judge_refusal(probe, context, long, limit):
        return bad
    if limit > probe.count("most_tokens", 140_000) or context.suite != "full":
        return verdict(probe.id, Outcome.PASS, f"{limit + 64} tokens are refused", limit=limit)
    [edge] = yield [generate(ids[: limit - 8], 4, logprobs=True)]
    if bad := failed_requests(probe.id, [edge]):
        return bad
    if problems := [item for item in garbage_of(edge) if item.kind in ("token-zero", "nan-logprobs", "no-text")]:
        message = f"garbage at {limit - 8} tokens: {problems[0].message}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(edge)])
    message = f"{limit - 8} tokens are answered, {limit + 64} refused"
    return verdict(probe.id, Outcome.PASS, message, limit=limit)


def _judge_refusal(probe: Probe, context: Context, answer: Answer, limit: int) -> Verdict | None:
    if answer.status == 400 or (answer.ok and context.server.info.get("allow_auto_truncate")):
        return None
    said = answer.error or f"HTTP {answer.status} {error_text(answer)[:80]}"
    message = f"a prompt of {limit + 64} tokens, {limit} allowed, is not refused with 400 but: {said}"
    return verdict(probe.id, Outcome.FAIL, message, [quote(answer)], limit=limit)


def _with_prompt_ids(text: str) -> Ask:
    ask = generate(text, 1, logprobs=True)
    return replace(ask, payload={**(ask.payload or {}), "logprob_start_len": 0})


def abort(probe: Probe, _: Context) -> Script:
    """A disconnected client frees its slot: its request stops running, and the next request is answered."""
    long = generate(short_prompts()[0], probe.count("max_tokens", 2000), stream=True, ignore_eos=True)
    cut = replace(long, cut_after=3)
    answers = yield [cut, cut]
    if bad := failed_requests(probe.id, answers):
        return bad
    [after] = yield [generate(short_prompts()[1], 8)]
    if bad := failed_requests(probe.id, [after]):
        return replace(bad, message=f"after two aborted requests {bad.message}")
    running: float | None = None
    for _look in range(probe.count("looks", 4)):
        [load] = yield [Ask(path="/v1/loads", pause=0.25)]
        if load.status == 404:
            [load] = yield [Ask(path="/get_load")]
        running = running_requests(load)
        if not running:
            break
    if running is None:
        return verdict(probe.id, Outcome.INCONCLUSIVE, "answers go on; this release does not tell what is running")
    if running:
        message = f"{running:.0f} requests still run after their clients went away"
        return verdict(probe.id, Outcome.FAIL, message, running=running)
    return verdict(probe.id, Outcome.PASS, "aborted requests leave nothing running")


def pulse(probe: Probe, context: Context) -> Script:
    """Short requests, some for each rank, all at once: those of a rank that stands still get no answer."""
    count = max(1, min(context.server.ranks * probe.count("each", 2), context.concurrency))
    limit = context.expect.timeout or probe.number("timeout", 20)
    prompts = [f"Count on: {number}, {number + 1}, {number + 2}," for number in range(count)]
    asks = [generate(prompt, probe.count("max_tokens", 4)) for prompt in prompts]
    answers = yield [replace(ask, timeout=limit) for ask in asks]
    mute = [answer for answer in answers if answer.fault == "timeout"]
    if mute and len(mute) < len(answers):
        message = f"{len(mute)} of {count} short requests get no answer within {limit:g} s: a rank stands still"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in mute[:3]], mute=len(mute))
    if bad := failed_requests(probe.id, answers):
        return bad
    return verdict(probe.id, Outcome.PASS, f"{count} short requests answered", slowest=max(a.seconds for a in answers))


def running_requests(answer: Answer) -> float | None:
    """Requests running now, out of /v1/loads (0.5.8 on) or /get_load (up to 0.5.20); None when it does not tell."""
    if not answer.ok:
        return None
    items: Any = answer.body.get("loads") if isinstance(answer.body, Mapping) else answer.body
    if not isinstance(items, list):
        return None
    counts = [item.get("num_running_reqs", item.get("num_reqs")) for item in items if isinstance(item, Mapping)]
    return sum(float(count) for count in counts if isinstance(count, int | float)) if counts else None


def _within(context: Context, tokens: int) -> int:
    """`tokens`, cut so that prompt and answer surely fit into the context (the estimate may be a quarter off)."""
    limit = context.server.context
    return tokens if not limit else max(64, min(tokens, int(limit * 0.7) - 100))
