"""Scripts of the smoke probes: is the server ready, is it the right model, are short answers correct and repeatable?

Each script is a generator: it yields waves of requests, receives the answers and returns a verdict. The probes use few
tokens because the whole suite must fit into ten seconds. Deeper probes are in `deep` and `features`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from checks.after.measures.garbage import Problem, judge_logprobs, judge_text, script_of
from checks.after.measures.language import LEAST_COMMON, common_share, other_language, words_of
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, error_text, failed_requests, quote, verdict
from checks.after.probes.expect import or_default
from checks.after.probes.requests import HEALTH, agreement, as_completion, chat, generate, lacks_template, stands_still
from checks.vocabulary import Evidence, Outcome, Verdict


def health(probe: Probe, _: Context) -> Script:
    """Probe /health: 200 proves that a scheduler produces tokens, but not that the tokens are right."""
    [answer] = yield [HEALTH]
    if answer.ok:
        return verdict(probe.id, Outcome.PASS, "/health returned 200")
    if answer.status == 503:
        # 503 after 20 s (SGLANG_HEALTH_CHECK_TIMEOUT) is a stalled scheduler; an immediate 503 is a running warm-up
        why = stands_still(answer) or "/health returned 503: the server is still warming up, or shutting down"
        return verdict(probe.id, Outcome.FAIL, why, [quote(answer)])
    if why := stands_still(answer):
        return verdict(probe.id, Outcome.FAIL, why, [quote(answer)])
    return failed_requests(probe.id, [answer]) or verdict(probe.id, Outcome.ERROR, "the server is unreachable")


def names_model(probe: Probe, context: Context) -> Script:
    """Check that /v1/models lists the expected name. Chat accepts any name, so a wrong one shows nowhere else."""
    [answer] = yield [Ask(path="/v1/models", timeout=HEALTH.timeout)]
    if bad := failed_requests(probe.id, [answer]):
        return bad
    items = answer.body.get("data") if isinstance(answer.body, Mapping) else None
    names = [str(item.get("id")) for item in items or () if isinstance(item, Mapping)]
    expected = context.expect.model or context.server.model
    if not names:
        return verdict(probe.id, Outcome.FAIL, "/v1/models lists no model", [quote(answer)])
    if expected and expected not in names:
        message = f"/v1/models lists {', '.join(names)}, not {expected}: the server has another model or model name"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
    return verdict(probe.id, Outcome.PASS, f"serves {expected or names[0]}")


def greedy_repeat(probe: Probe, _: Context) -> Script:
    """Send one greedy prompt twice: the tokens must be the same, or first differ at a near tie."""
    ask = generate(probe.text("prompt"), probe.count("max_tokens", 16), logprobs=True)
    first, second = yield [ask, ask]
    if first.status == 400 and second.status == 400:
        # some draft methods (DFLASH) cannot return log-probabilities
        plain = generate(probe.text("prompt"), probe.count("max_tokens", 16))
        first, second = yield [plain, plain]
    if bad := failed_requests(probe.id, [first, second]) or garbage(probe, [first, second]):
        return bad
    result = agreement(first, second)
    if result.equal:
        return verdict(probe.id, Outcome.PASS, f"both answers have the same {result.of} tokens", same=result.same)
    evidence = [quote(first), quote(second)]
    if result.near_tie:
        message = f"the answers differ from token {result.same + 1} on, a near tie between two tokens: rounding"
        return verdict(probe.id, Outcome.PASS, message, evidence, same=result.same)
    message = f"two greedy answers to one prompt differ after {result.same} of {result.of} tokens"
    return verdict(probe.id, Outcome.FAIL, message, evidence, same=result.same)


def limits(probe: Probe, _: Context) -> Script:
    """Check that max_tokens, stop strings, finish reasons and token counts match the request."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 12)
    [free] = yield [generate(prompt, tokens, ignore_eos=True)]
    if bad := failed_requests(probe.id, [free]) or garbage(probe, [free]):
        return bad
    if free.finish != "length" or free.completion_tokens != tokens:
        finish = free.finish or "none"
        message = f"max_new_tokens {tokens} produced {free.completion_tokens} tokens, finish reason {finish}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(free)])
    stop = _stop_word(free.text)
    if stop is None:
        message = "the answer contains no word that could serve as a stop string"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(free)])
    [stopped] = yield [generate(prompt, tokens, ignore_eos=True, stop=[stop])]
    if bad := failed_requests(probe.id, [stopped]):
        return bad
    return _judge_stop(probe, free, stopped, stop)


def _stop_word(text: str) -> str | None:
    """Return a word from the second half of a text that does not occur earlier; None without one."""
    for match in list(re.finditer(r"\w+", text))[1:]:
        if match.start() * 2 >= len(text) and text.find(match[0]) == match.start():
            return match[0]
    return None


def _judge_stop(probe: Probe, free: Answer, stopped: Answer, stop: str) -> Verdict:
    evidence = [quote(free), quote(stopped)]
    if stop in stopped.text:
        return verdict(probe.id, Outcome.FAIL, f"the stop string {stop!r} is ignored", evidence)
    if stopped.finish == "stop" and free.text.startswith(stopped.text.rstrip()):
        return verdict(probe.id, Outcome.PASS, "the token limit and the stop string are respected", evidence)
    if not free.text.startswith(stopped.text.rstrip()):
        message = "the second answer differs before the stop string"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, evidence)
    message = f"stopped at {stop!r} with finish reason {stopped.finish!r} instead of 'stop'"
    return verdict(probe.id, Outcome.FAIL, message, evidence)


def stream_equals_plain(probe: Probe, context: Context) -> Script:
    """Check that a streamed answer, joined, equals the plain one, and that it reaches the minimum decode rate."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 24)
    pair = [chat(context, prompt, tokens), chat(context, prompt, tokens, stream=True)]
    plain, streamed = yield pair
    if lacks_template(plain):
        prompt = as_completion(prompt)
        pair = [generate(prompt, tokens), generate(prompt, tokens, stream=True)]
        plain, streamed = yield pair
    if bad := failed_requests(probe.id, [plain, streamed]) or garbage(probe, [plain, streamed]):
        return bad
    if bad := _judge_stream(probe, context, plain, streamed):
        return bad
    result = agreement(plain, streamed)
    if result.equal:
        return verdict(probe.id, Outcome.PASS, f"{len(streamed.times)} joined events equal the plain answer")
    # a near tie is not recognisable without log-probabilities: a second pair shows whether the answers are stable
    plain_again, streamed_again = yield pair
    if plain_again.said != plain.said or streamed_again.said != streamed.said:
        message = "repeated greedy answers differ, so plain and streamed answers cannot be compared"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(plain), quote(streamed)])
    message = f"streamed and plain answers differ at position {result.same + 1} of {result.of}, twice"
    return verdict(probe.id, Outcome.FAIL, message, [quote(plain), quote(streamed)], same=result.same)


def _judge_stream(probe: Probe, context: Context, plain: Answer, streamed: Answer) -> Verdict | None:
    minimum = context.expect.speed.floor
    if rate := _rate_below(streamed, minimum):
        message = f"the decode rate of the stream is {rate:.2f} tok/s, below the minimum of {minimum:g}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(streamed)], decode_tok_s=round(rate, 3))
    if streamed.finish == plain.finish or streamed.said != plain.said:
        return None
    message = f"finish reason is {streamed.finish or 'none'} when streamed, but {plain.finish or 'none'} when plain"
    return verdict(probe.id, Outcome.FAIL, message, [quote(plain), quote(streamed)])


def _rate_below(streamed: Answer, minimum: float) -> float | None:
    """Return the decode rate in tok/s when it is below the minimum, else None."""
    if len(streamed.times) < 3:
        return None
    received = (streamed.completion_tokens or len(streamed.times)) - 1
    span = streamed.times[-1] - streamed.times[0]
    rate = received / span if span > 0 else float("inf")
    return rate if rate < minimum else None


def prose(probe: Probe, context: Context) -> Script:
    """Check that a free answer is language: not degenerate, in the prompt's script, with common English words."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 40)
    [answer] = yield [chat(context, prompt, tokens)]
    if lacks_template(answer):
        [answer] = yield [generate(as_completion(prompt), tokens)]
    if bad := failed_requests(probe.id, [answer]) or garbage(probe, [answer], script_of(prompt)):
        return bad
    if bad := language_problem(probe, context, [answer], probe.number("common_words", LEAST_COMMON)):
        return bad
    words = words_of(answer.said)
    share, least = common_share(words), or_default(context.expect.common_words, LEAST_COMMON)
    if len(words) < 4 and least > 0:
        return verdict(probe.id, Outcome.FAIL, f"the answer has only {len(words)} words", [quote(answer)])
    message = f"{len(words)} words of plausible language"
    return verdict(probe.id, Outcome.PASS, message, [quote(answer)], common_words=round(share, 3))


def language_problem(
    probe: Probe, context: Context, answers: Sequence[Answer], least: float = LEAST_COMMON
) -> Verdict | None:
    """Return the FAIL verdict for the first answer of 12 words or more that is not English; None without one."""
    least = or_default(context.expect.common_words, least)
    for answer in answers:
        words = words_of(answer.said)
        share = common_share(words)
        if len(words) >= 12 and share < least and not other_language(words):
            message = f"not English: {share:.0%} of {len(words)} words are common English words, expected {least:.0%}"
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer)], common_words=round(share, 3))
    return None


def logprobs(probe: Probe, context: Context) -> Script:
    """Check that the log-probabilities of plain English are finite, not flat, and as high as in a trained model."""
    ask = generate(probe.text("prompt"), probe.count("max_tokens", 4), logprobs=True)
    payload = {**(ask.payload or {}), "logprob_start_len": 0}
    [answer] = yield [Ask(path=ask.path, payload=payload)]
    if answer.status == 400 and "logprob" in error_text(answer).lower():
        message = "this configuration cannot return log-probabilities"
        return verdict(probe.id, Outcome.SKIP, message, [quote(answer)])
    if bad := failed_requests(probe.id, [answer]):
        return bad
    values = answer.prompt_logprobs
    if not values and not answer.logprobs:
        message = "the reply contains no log-probabilities although the request asked for them"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
    problems = _prompt_problems(values) + (judge_logprobs(answer.logprobs) if answer.logprobs else [])
    if problems:
        return verdict(probe.id, Outcome.FAIL, problems[0].message, _shown(problems, answer))
    nll = -sum(value for value in values if value is not None) / len(values) if values else 0.0
    most = or_default(context.expect.prompt_nll, probe.number("prompt_nll", 6.0))
    if nll > most:
        message = f"plain English is too unlikely to the model: {nll:.2f} nats per token, expected at most {most:g}"
        return verdict(probe.id, Outcome.FAIL, message, prompt_nll=round(nll, 4))
    return verdict(probe.id, Outcome.PASS, f"{nll:.2f} nats per token on plain English", prompt_nll=round(nll, 4))


def _prompt_problems(values: Sequence[float | None]) -> list[Problem]:
    if not values:
        return []
    # equal values stay a fault, as no text is equally likely at every token; `prompt_nll` limits the mean
    return [problem for problem in judge_logprobs(values) if "near-uniform" not in problem.message]


def accepted(text: str, words: Sequence[str]) -> bool:
    """Return whether a text contains one of the accepted words as a whole word, ignoring case."""
    return any(re.search(rf"(?<!\w){re.escape(str(word))}(?!\w)", text, re.IGNORECASE) for word in words)


def garbage_of(answer: Answer, prompt_script: str | None = None) -> list[Problem]:
    """Return the problems of one answer, judged with its finish reason, token ids and log-probabilities."""
    if answer.tool_calls and not answer.said:
        return []
    return judge_text(
        answer.said,
        finish_reason=answer.finish or None,
        token_ids=answer.ids,
        logprobs=answer.logprobs,
        prompt_script=prompt_script,
    )


def garbage(probe: Probe, answers: Sequence[Answer], script: str | None = None) -> Verdict | None:
    """Return the FAIL verdict for the first degenerate answer; None when every answer is sane."""
    for answer in answers:
        if problems := garbage_of(answer, script):
            message = f"degenerate output: {problems[0].message}"
            return verdict(probe.id, Outcome.FAIL, message, _shown(problems, answer), kind=problems[0].kind)
    return None


def _shown(problems: Sequence[Problem], answer: Answer) -> list[Evidence]:
    return [quote(answer), *(Evidence(text=f"{item.kind}: {item.message}", source=answer.path) for item in problems)]
