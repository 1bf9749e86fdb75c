"""Scripts of the probes for faults that short prompts miss: long prompts, cache hits, batches, context limit, aborts.

Same form as `basic`. Greedy answers that first differ at a near tie (`requests.agreement`) count as equal, because
another batch size rounds differently in every engine; any other difference is a fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from checks.after.probes.asking import ask_until_answered, conclusion, still_thinking, with_or_without_logprobs
from checks.after.probes.basic import accepted, garbage, garbage_of
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, error_text, failed_requests, quote, verdict
from checks.after.probes.requests import agreement, generate
from checks.after.probes.texts import code_word, long_text, short_prompts, with_needle
from checks.vocabulary import Outcome, Verdict


def long_prompt(probe: Probe, context: Context) -> Script:
    """Check that the answer to a prompt that is prefilled in several chunks is language."""
    server = context.server
    target = min(int((server.chunk or 4096) * 1.6) + 2 * server.page, probe.count("most_tokens", 40_000))
    tokens = _within(context, target)
    prompt = long_text(tokens, probe.count("seed", 1)) + "\n\nIn one sentence, what do these notes have in common?"
    [answer] = yield from ask_until_answered(context, [prompt], probe.count("max_tokens", 48), most=48)
    if bad := failed_requests(probe.id, [answer]) or garbage(probe, [answer]):
        return bad
    size = answer.prompt_tokens or 0
    if server.chunk and size <= server.chunk:
        message = f"{size} tokens fit into one prefill chunk of {server.chunk}: the context is too small for more"
        return verdict(probe.id, Outcome.SKIP, message, prompt_tokens=size)
    message = f"the answer to a prompt of {size} tokens is language"
    return verdict(probe.id, Outcome.PASS, message, [quote(answer)], prompt_tokens=size)


def needle(probe: Probe, context: Context) -> Script:
    """Check that the model retrieves one sentence of a long text, at several depths."""
    tokens = _within(context, probe.count("tokens", 4000))
    depths: Sequence[float] = probe.params["depths"]
    codes = [code_word(index + 7) for index in range(len(depths))]
    prompts = [with_needle(tokens, depth, codes[index], 20 + index) for index, depth in enumerate(depths)]
    answers = yield from ask_until_answered(
        context, prompts, probe.count("max_tokens", 24), enough=lambda number, answer: codes[number] in answer.text
    )
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    if all(map(still_thinking, answers)):
        message = "no question about the text is answered: the model thinks on at the token limit"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(answers[0])])
    retrieved = [accepted(conclusion(answer), [code]) for answer, code in zip(answers, codes, strict=True)]
    before = context.baseline.figures.get(probe.id, {}).get("found") if context.baseline else None
    missed = [quote(answer) for answer, ok in zip(answers, retrieved, strict=True) if not ok]
    message = f"{sum(retrieved)} of {len(retrieved)} needles found in {answers[0].prompt_tokens} tokens"
    if not missed:
        return verdict(probe.id, Outcome.PASS, message, found=sum(retrieved))
    # a weak model misses some; a server that finds none, or fewer than its baseline, has lost its context
    worse = not any(retrieved) or (before is not None and sum(retrieved) < float(before))
    outcome = Outcome.FAIL if worse else Outcome.INCONCLUSIVE
    return verdict(probe.id, outcome, message, missed, found=sum(retrieved))


def cache_rerun(probe: Probe, context: Context) -> Script:
    """Check that a prompt from the radix cache gives the same answer as the freshly prefilled one."""
    if not context.server.radix_cache:
        return verdict(probe.id, Outcome.SKIP, "the radix cache is off")
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
        message = f"the answer with {cached} cached tokens differs after {result.same} of {result.of} tokens"
        return verdict(probe.id, Outcome.FAIL, message, [quote(first), quote(second)], cached_tokens=cached)
    if not cached:
        message = "the answers agree, but the server reports no cached tokens"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, cached_tokens=0)
    message = f"the answers agree, with {cached} tokens from the radix cache"
    return verdict(probe.id, Outcome.PASS, message, cached_tokens=cached)


def concurrency_agreement(probe: Probe, context: Context) -> Script:
    """Check that greedy prompts get the same answers sequentially and concurrently, up to a tolerated share."""
    if context.concurrency < 2:
        return verdict(probe.id, Outcome.SKIP, "the server runs only one request at a time")
    prompts, tokens = short_prompts()[: probe.count("prompts", 8)], probe.count("max_tokens", 20)
    sequential: list[Answer] = []
    for prompt in prompts:
        sequential += yield from with_or_without_logprobs([generate(prompt, tokens, logprobs=True)])
    copies = max(1, min(context.concurrency, probe.count("at_once", 32)) // len(prompts))
    asks = [generate(prompt, tokens, logprobs=True) for prompt in prompts * copies]
    concurrent = yield from with_or_without_logprobs(asks)
    if bad := failed_requests(probe.id, [*sequential, *concurrent]):
        return bad
    if bad := garbage(probe, sequential):
        return bad
    if broken := [answer for answer in concurrent if garbage_of(answer)]:
        size = len(concurrent)
        message = f"{len(broken)} of {size} answers are garbage when {size} requests run concurrently, none in sequence"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in broken[:3]], at_once=size)
    return _judge_agreement(probe, list(sequential) * copies, concurrent)


def _judge_agreement(probe: Probe, sequential: Sequence[Answer], concurrent: Sequence[Answer]) -> Verdict:
    results = [agreement(first, second) for first, second in zip(sequential, concurrent, strict=True)]
    differing = [index for index, result in enumerate(results) if not result.close]
    ties = sum(1 for result in results if result.near_tie)
    tolerance = probe.number("tolerance", 0.1)
    share = len(differing) / len(results)
    message = f"{len(differing)} of {len(results)} greedy answers change with the batch ({ties} more at near ties)"
    figures: dict[str, float | str] = {"parted": share, "near_ties": ties / len(results), "tolerance": tolerance}
    if share <= tolerance:
        return verdict(probe.id, Outcome.PASS, f"{message}; {tolerance:.0%} is tolerated", **figures)
    evidence = [part for index in differing[:2] for part in (quote(sequential[index]), quote(concurrent[index]))]
    outcome = Outcome.FAIL if share > 2 * tolerance else Outcome.INCONCLUSIVE
    return verdict(probe.id, outcome, message, evidence, **figures)


def batch_sweep(probe: Probe, context: Context) -> Script:
    """Check batches of captured graph sizes and of sizes between them: none may give garbage or other answers."""
    tokens = probe.count("max_tokens", 10)
    prompts = short_prompts()
    reference = yield from with_or_without_logprobs([generate(prompts[0], tokens, logprobs=True)])
    if bad := failed_requests(probe.id, reference) or garbage(probe, reference):
        return bad
    sizes = sweep_sizes(context.server.graph_sizes, context.concurrency, probe.count("most_sizes", 14))
    bad_sizes: dict[int, Answer] = {}
    for size in sizes:
        asks = [generate(prompts[index % len(prompts)], tokens, logprobs=True) for index in range(size)]
        answers = yield from with_or_without_logprobs(asks)
        if bad := failed_requests(probe.id, answers):
            return replace(bad, message=f"batch of {size}: {bad.message}")
        broken = [answer for answer in answers if garbage_of(answer)]
        if broken:  # garbage that comes alone too is not the batch's
            number = answers.index(broken[0]) % len(prompts)
            [alone] = yield from with_or_without_logprobs([generate(prompts[number], tokens, logprobs=True)])
            broken = [] if garbage_of(alone) else broken
        changed = [answers[0]] if not agreement(reference[0], answers[0]).close else []
        if broken or changed:
            bad_sizes[size] = (broken or changed)[0]
    if bad_sizes:
        shown = ", ".join(map(str, bad_sizes))
        message = f"batches of {shown} give garbage or different answers; sizes tried: {', '.join(map(str, sizes))}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in list(bad_sizes.values())[:3]])
    return verdict(
        probe.id, Outcome.PASS, f"answers agree at batch sizes {', '.join(map(str, sizes))}", sizes=len(sizes)
    )


def sweep_sizes(captured: Sequence[int], most: int, count: int) -> tuple[int, ...]:
    """Return the batch sizes to try: captured sizes, and each plus one (padded to the next), up to `most`.

    At most `count` sizes, evenly spaced, the smallest and the largest included.
    """
    base = captured or (1, 2, 4, 8, 16, 32, 64)
    sizes = sorted({size for item in base for size in (item, item + 1) if size <= most} | {most})
    if len(sizes) <= count:
        return tuple(sizes)
    step = (len(sizes) - 1) / (count - 1)
    return tuple(dict.fromkeys(sizes[round(index * step)] for index in range(count)))


def context_edge(probe: Probe, context: Context) -> Script:
    """Check that a prompt that just fits is answered and that a longer one is rejected with 400."""
    limit = context.server.context
    if not limit:
        return verdict(probe.id, Outcome.SKIP, "the server does not report its prompt length limit")
    [tokenized] = yield [_with_prompt_ids(long_text(200, 3))]
    if not tokenized.ok or len(tokenized.prompt_ids) < 20:
        return verdict(probe.id, Outcome.SKIP, "the server does not return token ids", [quote(tokenized)])
    ids = tokenized.prompt_ids * (limit // len(tokenized.prompt_ids) + 2)
    [long] = yield [generate(ids[: limit + 64], 4)]
    if bad := _judge_rejection(probe, context, long, limit):
        return bad
    if limit > probe.count("most_tokens", 140_000) or context.suite != "full":
        return verdict(probe.id, Outcome.PASS, f"a prompt of {limit + 64} tokens is rejected", limit=limit)
    [edge] = yield [generate(ids[: limit - 8], 4, logprobs=True)]
    if bad := failed_requests(probe.id, [edge]):
        return bad
    if problems := [item for item in garbage_of(edge) if item.kind in ("token-zero", "nan-logprobs", "no-text")]:
        message = f"garbage after a prompt of {limit - 8} tokens: {problems[0].message}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(edge)])
    message = f"a prompt of {limit - 8} tokens is answered, one of {limit + 64} is rejected"
    return verdict(probe.id, Outcome.PASS, message, limit=limit)


def _judge_rejection(probe: Probe, context: Context, answer: Answer, limit: int) -> Verdict | None:
    if answer.status == 400 or (answer.ok and context.server.info.get("allow_auto_truncate")):
        return None
    reply = answer.error or f"HTTP {answer.status} {error_text(answer)[:80]}"
    message = f"a prompt of {limit + 64} tokens ({limit} allowed) is not rejected with HTTP 400; the reply is: {reply}"
    return verdict(probe.id, Outcome.FAIL, message, [quote(answer)], limit=limit)


def _with_prompt_ids(text: str) -> Ask:
    ask = generate(text, 1, logprobs=True)
    return replace(ask, payload={**(ask.payload or {}), "logprob_start_len": 0})


def abort(probe: Probe, _: Context) -> Script:
    """Check that requests of disconnected clients stop running and that the next request is answered."""
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
        message = "the next request is answered, but the server does not report its running requests"
        return verdict(probe.id, Outcome.SKIP, message)
    if running:
        message = f"{running:.0f} requests are still running after their clients disconnected"
        return verdict(probe.id, Outcome.FAIL, message, running=running)
    return verdict(probe.id, Outcome.PASS, "aborted requests stop running, and the next request is answered")


def pulse(probe: Probe, context: Context) -> Script:
    """Send short requests concurrently, some for each rank: the requests of a stalled rank time out."""
    count = max(1, min(context.server.ranks * probe.count("each", 2), context.concurrency))
    limit = context.expect.timeout or probe.number("timeout", 20)
    prompts = [f"Count on: {number}, {number + 1}, {number + 2}," for number in range(count)]
    asks = [generate(prompt, probe.count("max_tokens", 4)) for prompt in prompts]
    answers = yield [replace(ask, timeout=limit) for ask in asks]
    unanswered = [answer for answer in answers if answer.fault == "timeout"]
    if unanswered and len(unanswered) < len(answers):
        late = len(unanswered)
        message = f"{late} of {count} short requests got no answer within {limit:g} s: a rank is not responding"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in unanswered[:3]], mute=late)
    if bad := failed_requests(probe.id, answers):
        return bad
    return verdict(probe.id, Outcome.PASS, f"{count} short requests answered", slowest=max(a.seconds for a in answers))


def running_requests(answer: Answer) -> float | None:
    """Return the running requests in a /v1/loads (0.5.8 on) or /get_load (up to 0.5.20) reply; None without counts."""
    if not answer.ok:
        return None
    items: Any = answer.body.get("loads") if isinstance(answer.body, Mapping) else answer.body
    if not isinstance(items, list):
        return None
    counts = [item.get("num_running_reqs", item.get("num_reqs")) for item in items if isinstance(item, Mapping)]
    return sum(float(count) for count in counts if isinstance(count, int | float)) if counts else None


def _within(context: Context, tokens: int) -> int:
    """Return `tokens`, reduced so that prompt and answer fit into the context even if the estimate is 25 % off."""
    limit = context.server.context
    return tokens if not limit else max(64, min(tokens, int(limit * 0.7) - 100))
