"""Scripts that ask as users ask: sampled, with several answers, and with the limits of the sampler.

Users sample; a broken sampling kernel serves salad while every greedy answer is right. Limits that leave one token only
(top_k 1, a tiny top_p) must give the greedy answer, which makes them comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checks.after.probes.asking import with_or_without_logprobs
from checks.after.probes.basic import garbage, language_problem
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, failed_requests, quote, verdict
from checks.after.probes.requests import agreement, as_completion, chat, generate, lacks_template
from checks.vocabulary import Outcome, Verdict

_VARIED = 24  # tokens; four equal samples of a trained model at temperature 1 have a chance below 1e-6


def sampled(probe: Probe, context: Context) -> Script:
    """Check that sampled answers are language at a usual temperature, and that they vary at temperature 1."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 40)
    answers = probe.count("answers", 3)
    warm = [chat(context, prompt, tokens, temperature=0.8) for _ in range(answers)]
    [*first, several] = yield [*warm, chat(context, prompt, _VARIED, temperature=1, n=4)]
    if lacks_template(several):
        text = as_completion(prompt)
        warm = [generate(text, tokens, temperature=0.8) for _ in range(answers)]
        [*first, several] = yield [*warm, generate(text, _VARIED, temperature=1, n=4)]
    if bad := failed_requests(probe.id, first):
        return bad
    if bad := garbage(probe, first) or language_problem(probe, context, first):
        return bad
    texts = texts_of(several)
    if not several.ok or len(texts) < 4:
        message = "sampled answers are language; `n` gave no four answers to compare"
        return verdict(probe.id, Outcome.FAIL if several.ok else Outcome.SKIP, message, [quote(several)])
    if len(set(texts)) == 1 and len(texts[0].split()) >= 8:
        message = f"four answers at temperature 1 are the same: {texts[0][:80]!r}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(several)])
    return verdict(probe.id, Outcome.PASS, "sampled answers are language and vary", [quote(first[0])])


def texts_of(answer: Answer) -> list[str]:
    """Return the text of every choice of a reply, thoughts included."""
    body = answer.body
    if isinstance(body, list):
        return [str(item.get("text") or "") for item in body if isinstance(item, dict)]
    choices = body.get("choices") or () if isinstance(body, dict) else ()
    parts = [choice.get("message") or choice for choice in choices]
    return [
        str(part.get("reasoning_content") or "") + str(part.get("content") or part.get("text") or "") for part in parts
    ]


def sampling_limits(probe: Probe, _: Context) -> Script:
    """Check that top_k 1 and a tiny top_p are greedy, that a bias decides, and that a least length is kept."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 16)
    hot: dict[str, Any] = {"temperature": 1.5}
    names = ("top_k 1", "top_p 0.0001", "min_p 1")
    limited = [
        generate(prompt, tokens, logprobs=True, **hot, **limit)
        for limit in ({"top_k": 1}, {"top_p": 1e-4}, {"min_p": 1.0})
    ]
    asks = [generate(prompt, tokens, logprobs=True), *limited]
    greedy, *answers = yield from with_or_without_logprobs(asks)
    if bad := failed_requests(probe.id, [greedy, *answers]) or garbage(probe, [greedy]):
        return bad
    for name, answer in zip(names, answers, strict=True):
        # at a near tie the sampler may take the other token
        if not agreement(greedy, answer).close:
            message = f"at temperature 1.5 {name} leaves one token, but the answer is not the greedy one"
            return verdict(probe.id, Outcome.FAIL, message, [quote(greedy), quote(answer)])
    return (yield from _bias_and_length(probe, prompt, greedy))


def _bias_and_length(probe: Probe, prompt: str, greedy: Answer) -> Script:
    if not greedy.ids:
        return verdict(probe.id, Outcome.PASS, "the limits of the sampler are kept; a bias could not be tried")
    token = greedy.ids[-1]
    words = [word for word in greedy.text.split() if len(word) > 2 and greedy.text.count(word) == 1][1:]
    stop = words[0].strip(".,;:") if words else ""
    biased, lasting, endless, stopped, by_id = yield [
        generate(prompt, 6, logit_bias={str(token): 100}, ignore_eos=True),
        generate(prompt, 24, min_new_tokens=20),
        generate(as_completion("What is 2 + 2? Answer with one number."), 48, ignore_eos=True),
        generate(prompt, 16, stop=["never said here", stop] if stop else ["never said here"]),
        generate(prompt, 16, stop_token_ids=[token]),  # `ignore_eos` would ignore these too
    ]
    if endless.ok and endless.completion_tokens not in (48, None):
        message = f"{endless.completion_tokens} of 48 tokens although `ignore_eos` was asked for"
        return verdict(probe.id, Outcome.FAIL, message, [quote(endless)])
    if stop and stopped.ok and stop in stopped.text:
        message = f"the second of two stop strings, {stop!r}, is ignored"
        return verdict(probe.id, Outcome.FAIL, message, [quote(greedy), quote(stopped)])
    first = greedy.ids.index(token) + 1
    if (
        by_id.ok
        and by_id.completion_tokens is not None
        and by_id.completion_tokens > first + 1
        and by_id.ids[:1] == greedy.ids[:1]
    ):
        message = f"{by_id.completion_tokens} tokens although `stop_token_ids` ends the answer after {first}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(greedy), quote(by_id)])
    if biased.ok and biased.ids and set(biased.ids[:5]) != {token}:
        message = f"a bias of 100 for token {token} does not decide: tokens {list(biased.ids[:5])}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(biased)])
    if lasting.ok and (lasting.completion_tokens or 20) < 20:
        message = f"{lasting.completion_tokens} tokens although at least 20 were asked for"
        return verdict(probe.id, Outcome.FAIL, message, [quote(lasting)])
    return verdict(probe.id, Outcome.PASS, "the limits of the sampler, a bias and a least length are kept")


def penalties(probe: Probe, _: Context) -> Script:
    """Check that a strong frequency penalty makes a text that repeats itself repeat less."""
    prompt, tokens = "la la la la la la la la la la", probe.count("max_tokens", 24)
    free, fined = yield [
        generate(prompt, tokens, ignore_eos=True),
        generate(prompt, tokens, ignore_eos=True, frequency_penalty=2.0, presence_penalty=2.0),
    ]
    if bad := failed_requests(probe.id, [free, fined]):
        return bad
    before, after = _most_often(free), _most_often(fined)
    if before >= tokens // 2 and after >= before:
        message = (
            f"with penalties of 2 the commonest token comes {after} times in {tokens}, without them {before} times"
        )
        return verdict(probe.id, Outcome.FAIL, message, [quote(free), quote(fined)])
    return verdict(probe.id, Outcome.PASS, f"penalties act: {before} repetitions without them, {after} with them")


def _most_often(answer: Answer) -> int:
    units: Sequence[Any] = answer.ids or answer.text.split()
    return max((list(units).count(unit) for unit in set(units)), default=0)


def prefill_equals_decode(probe: Probe, _: Context) -> Script:
    """Check that the log-probabilities of an answer are the same when the answer is read back as a prompt."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 12)
    start = generate(prompt, 1, logprobs=True)
    [asked, answer] = yield [
        Ask(path=start.path, payload={**(start.payload or {}), "logprob_start_len": 0}),
        Ask(
            path=start.path,
            payload={**(generate(prompt, tokens, logprobs=True, ignore_eos=True).payload or {}), "top_logprobs_num": 5},
        ),
    ]
    if asked.status == 400 or answer.status == 400:
        return verdict(probe.id, Outcome.SKIP, "this configuration cannot return log-probabilities", [quote(answer)])
    if bad := failed_requests(probe.id, [asked, answer]):
        return bad
    first = asked.meta.get("input_token_logprobs") or [[None, None]]
    ids = (first[0][1], *asked.prompt_ids)
    if len(answer.ids) < 4 or len(ids) < 2 or not all(isinstance(item, int) for item in ids):
        return verdict(probe.id, Outcome.SKIP, "the server returns no token ids", [quote(asked)])
    again = generate([*ids, *answer.ids], 1, logprobs=True)
    [read] = yield [Ask(path=again.path, payload={**(again.payload or {}), "logprob_start_len": 0})]
    if bad := failed_requests(probe.id, [read]):
        return bad
    return _judge_scores(probe, answer, read)


def _judge_scores(probe: Probe, answer: Answer, read: Answer) -> Verdict:
    count = len(answer.ids)
    if read.prompt_ids[-count:] != answer.ids:
        return verdict(probe.id, Outcome.INCONCLUSIVE, "the answer is read back as other tokens", [quote(read)])
    pairs = zip(answer.logprobs, read.prompt_logprobs[-count:], strict=False)
    gaps = [abs(a - b) for a, b in pairs if a is not None and b is not None]
    mean = sum(gaps) / len(gaps) if gaps else 0.0
    most = probe.number("nats", 0.2)
    message = f"decoded and read back, an answer differs by {mean:.3f} nats per token"
    if mean > most:
        return verdict(
            probe.id, Outcome.FAIL, f"{message}, at most {most:g} is rounding", [quote(answer)], nats=round(mean, 4)
        )
    return verdict(probe.id, Outcome.PASS, message, nats=round(mean, 4))
