"""Scripts for length: answers that go on, and prompts in which something stands far from the end.

`needles` hides several codes in one prompt and asks for each: the prefix comes from the cache, so that a lost chunk, a
window and a hole in a cached prefix are found with a handful of short requests. A short prompt is the control.
"""

from __future__ import annotations

from collections.abc import Sequence

from checks.after.measures.language import LEAST_COMMON, common_share, core_share, other_language, words_of
from checks.after.probes.asking import Asking, ask_until_answered, conclusion, still_thinking
from checks.after.probes.basic import garbage
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Script, failed_requests, quote, verdict
from checks.after.probes.requests import agreement, as_completion, chat, generate, lacks_template
from checks.after.probes.texts import code_word, long_text
from checks.vocabulary import Outcome, Verdict

_WINDOW = 40  # words that show whether a part of an answer is language
_SALAD = 0.05
_PLACES = ("harbour", "mill", "bakery", "tower", "bridge", "school")
_DEPTHS = (0.03, 0.2, 0.4, 0.6, 0.8, 0.95)
_SHORT = 400  # tokens of the control


def long_answer(probe: Probe, context: Context) -> Script:
    """Check that sampled answers of hundreds of tokens stay language, and that a long stream is the plain answer."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 400)
    told = [chat(context, prompt, tokens, temperature=0.8), chat(context, prompt, tokens, temperature=0.8, stream=True)]
    start = "The months of the year are January, February,"
    pair = [generate(start, 96, logprobs=True, ignore_eos=True), generate(start, 96, ignore_eos=True, stream=True)]
    [*stories, plain, streamed] = yield [*told, *pair]
    if lacks_template(stories[0]):
        text = as_completion(prompt)
        told = [generate(text, tokens, temperature=0.8, stream=stream) for stream in (False, True)]
        stories = list((yield told))
    if bad := failed_requests(probe.id, stories):
        return bad
    for answer in stories:
        if late := turns_to_salad(answer.said):
            message = f"an answer turns into word salad after {late} words"
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer, 400)])
    if plain.ok and streamed.ok and not _alike(plain, streamed):
        again = yield pair
        if all(item.ok for item in again) and not _alike(*again):
            message = "a stream of 96 tokens differs from the plain answer, twice"
            return verdict(probe.id, Outcome.FAIL, message, [quote(plain, 400), quote(streamed, 400)])
    longest = max(len(words_of(answer.said)) for answer in stories)
    return verdict(probe.id, Outcome.PASS, f"answers of up to {longest} words stay language")


def turns_to_salad(text: str) -> int:
    """Return the words before the first part that is no language, in a text that begins as one; 0 without one."""
    words = words_of(text)
    parts = [words[start : start + _WINDOW] for start in range(0, len(words) - _WINDOW + 1, _WINDOW)]
    if len(parts) < 2 or common_share(parts[0]) < LEAST_COMMON:
        return 0
    bad = (n for n, part in enumerate(parts) if core_share(part) < _SALAD and not other_language(part))
    return next(bad, 0) * _WINDOW


def _alike(plain: Answer, streamed: Answer) -> bool:
    """Whether a stream begins as the plain answer does; late in a text a near tie may turn."""
    result = agreement(plain, streamed)
    return result.close or result.same >= 80


def needles(probe: Probe, context: Context) -> Script:
    """Check that codes at several depths of one long prompt are found as well as in a short one."""
    server = context.server
    limit = int((server.context or 8192) * 0.7) - 200
    tokens = max(_SHORT, min(int((server.chunk or 4096) * 1.6), limit, probe.count("most_tokens", 24_000)))
    codes = [code_word(70 + number) for number in range(len(_PLACES))]
    long, short = (_text(size, codes) for size in (tokens, min(_SHORT, tokens)))
    count = probe.count("max_tokens", 24)
    asked = [f"What is the pass code of the {place}? Answer with the code alone." for place in _PLACES]
    first, *others = asked
    answers = yield from _asked(context, long, [first], codes, count)
    answers += yield from _asked(context, long, others, codes[1:], count)
    again = yield from _asked(context, long, asked, codes, count)
    control = yield from _asked(context, short, asked, codes, count)
    if bad := failed_requests(probe.id, [*answers, *again, *control]) or garbage(probe, answers):
        return bad
    return _judge_needles(probe, context, codes, (answers, again, control))


def _asked(context: Context, text: str, questions: Sequence[str], codes: Sequence[str], tokens: int) -> Asking:
    prompts = [f"{text}\n\n{question}" for question in questions]
    return ask_until_answered(context, prompts, tokens, enough=lambda n, answer: codes[n] in answer.text, most=1024)


def _text(tokens: int, codes: Sequence[str]) -> str:
    sentences = long_text(tokens, 41).split(". ")
    size = len(sentences)
    for depth, place, code in sorted(zip(_DEPTHS, _PLACES, codes, strict=True), reverse=True):
        sentences.insert(round(depth * size), f"The pass code of the {place} is {code}")
    return ". ".join(sentences)


def _judge_needles(
    probe: Probe, context: Context, codes: Sequence[str], answers: Sequence[Sequence[Answer]]
) -> Verdict:
    found = [[code in conclusion(answer) for code, answer in zip(codes, row, strict=True)] for row in answers]
    fresh, cached, short = (sum(row) for row in found)
    size = max(answer.prompt_tokens or 0 for answer in answers[0])
    message = (
        f"{fresh} of {len(codes)} codes found in {size} tokens, {cached} when asked again, {short} in a short text"
    )
    missed = [
        quote(answer) for ok, answer in zip(found[0] + found[1], [*answers[0], *answers[1]], strict=True) if not ok
    ]
    figures: dict[str, float | str] = {"found": fresh, "again": cached, "short": short, "prompt_tokens": size}
    before = (context.baseline.figures.get(probe.id, {}) if context.baseline else {}).get("found")
    if all(map(still_thinking, answers[2])):
        return verdict(probe.id, Outcome.INCONCLUSIVE, "the model thinks on at the token limit", missed[:1], **figures)
    lost = short - min(fresh, cached)
    if before is not None and min(fresh, cached) < float(before):
        return verdict(probe.id, Outcome.FAIL, f"{message}; {before:g} in the baseline", missed[:3], **figures)
    if short == len(codes) and lost and (lost > 1 or before is None):
        outcome = Outcome.FAIL if lost > 1 else Outcome.INCONCLUSIVE
        return verdict(probe.id, outcome, message, missed[:3], **figures)
    if abs(fresh - cached) > 1:
        return verdict(probe.id, Outcome.FAIL, f"{message}: a cached prefix changes the answers", missed[:3], **figures)
    return verdict(probe.id, Outcome.PASS if short > len(codes) // 2 else Outcome.SKIP, message, **figures)
