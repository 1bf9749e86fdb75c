"""Scripts for what a conversation promises: limits and stops of a chat, a system prompt, history, any script, one user.

`users_apart` gives each of many requests a word of its own: a reply that holds the word of another is proof that users
mix, which no average over answers can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from checks.after.probes.asking import Asking, ask_until_answered, conclusion, still_thinking, was_cut
from checks.after.probes.basic import accepted, garbage
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, failed_requests, quote, verdict
from checks.after.probes.requests import agreement, as_completion, chat, generate, lacks_template
from checks.after.probes.texts import code_word
from checks.vocabulary import Outcome, Verdict


def chat_limits(probe: Probe, context: Context) -> Script:
    """Check the token limit and a stop string over the chat route, plain and streamed."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 12)
    listed: dict[str, Any] = {"logprobs": True, "top_logprobs": 3}
    plain, streamed = yield [chat(context, prompt, tokens, **listed), chat(context, prompt, tokens, stream=True)]
    if plain.status == 400 and not lacks_template(plain):  # a method of drafting that has no log-probabilities
        [plain] = yield [chat(context, prompt, tokens)]
    if lacks_template(plain):
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template")
    if bad := failed_requests(probe.id, [plain, streamed]) or garbage(probe, [plain, streamed]):
        return bad
    for how, answer in (("plain", plain), ("streamed", streamed)):
        count = answer.completion_tokens
        if count is not None and (count > tokens or (answer.finish == "length" and count != tokens)):
            message = (
                f"max_tokens {tokens} gave {count} tokens in a {how} chat, finish reason {answer.finish or 'none'}"
            )
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
    words = plain.text.split()
    stop = next((word.strip(".,;:!?") for word in words[2:] if plain.text.count(word) == 1 and len(word) > 2), "")
    if not stop:
        return verdict(probe.id, Outcome.PASS, "the token limit is respected; no word could serve as a stop string")
    asks = [chat(context, prompt, tokens, stop=[stop]), chat(context, prompt, tokens, stream=True, stop=[stop])]
    return _judge_stops(probe, stop, plain, (yield asks))


def _judge_stops(probe: Probe, stop: str, free: Answer, answers: Sequence[Answer]) -> Verdict:
    if bad := failed_requests(probe.id, answers):
        return bad
    for how, answer in zip(("plain", "streamed"), answers, strict=True):
        evidence = [quote(free), quote(answer)]
        if stop in answer.text:
            message = f"the stop string {stop!r} is in the {how} chat that it should end"
            return verdict(probe.id, Outcome.FAIL, message, evidence)
        same = free.text.startswith(answer.text.rstrip())
        if same and answer.finish != "stop":
            message = f"a {how} chat that met its stop string has finish reason {answer.finish or 'none'}"
            return verdict(probe.id, Outcome.FAIL, message, evidence)
    return verdict(probe.id, Outcome.PASS, "chats keep the token limit and the stop string")


def system_and_history(probe: Probe, context: Context) -> Script:
    """Check that a system prompt and an earlier turn reach the model."""
    word = "banana"
    system = {"role": "system", "content": f"Whatever the user says, answer with the single word {word}."}
    turns = [
        {"role": "user", "content": "My code word is pelican. Remember it."},
        {"role": "assistant", "content": "I will remember that your code word is pelican."},
        {"role": "user", "content": "What is my code word?"},
    ]
    tokens = probe.count("max_tokens", 24)
    ask = chat(context, "How are you today?", tokens)
    if ask.path == "/generate":
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template")
    asks = [_with(ask, [system, {"role": "user", "content": "How are you today?"}]), _with(ask, turns)]
    answers = yield from _uncut(asks)
    if any(map(lacks_template, answers)):
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template")
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    if any(map(still_thinking, answers)):
        return verdict(probe.id, Outcome.INCONCLUSIVE, "the model thinks on at the token limit", [quote(answers[0])])
    wanted = (word, "pelican")
    if all(accepted(conclusion(answer), [item]) for answer, item in zip(answers, wanted, strict=True)):
        return verdict(probe.id, Outcome.PASS, "a system prompt and an earlier turn reach the model")
    return (
        yield from _with_controls(
            probe, context, ask, [accepted(conclusion(a), [w]) for a, w in zip(answers, wanted, strict=True)]
        )
    )


def _uncut(asks: Sequence[Ask]) -> Asking:
    """Send chats; if one is cut, send all again with room for the thoughts of a model that thinks first."""
    answers = list((yield asks))
    if not any(map(was_cut, answers)):
        return answers
    return list((yield [replace(item, payload={**(item.payload or {}), "max_tokens": 1024}) for item in asks]))


def _with_controls(probe: Probe, context: Context, ask: Ask, obeyed: Sequence[bool]) -> Script:
    """Judge what had no effect: a model that does not obey in one turn either, or obeys another try, is only weak."""
    tries = [
        _with(
            ask,
            [{"role": "system", "content": "Your name is Oliver."}, {"role": "user", "content": "What is your name?"}],
        ),
        _with(
            ask,
            [
                {"role": "user", "content": "My name is Oliver."},
                {"role": "assistant", "content": "Nice to meet you, Oliver."},
                {"role": "user", "content": "What is my name?"},
            ],
        ),
    ]
    single = [
        "Answer with the single word banana, whatever follows. How are you today?",
        "My code word is pelican. What is my code word?",
        "My name is Oliver. What is my name?",
    ]
    second = list((yield tries))
    controls = yield from ask_until_answered(context, single, probe.count("max_tokens", 24), most=1024)
    words = ("banana", "pelican", "Oliver")
    banana, pelican, oliver = (accepted(conclusion(a), [word]) for a, word in zip(controls, words, strict=True))
    rows = zip(("the system prompt", "an earlier turn"), obeyed, second, (banana, pelican and oliver), strict=True)
    missed = [name for name, ok, again, able in rows if able and not ok and not accepted(conclusion(again), ["Oliver"])]
    if missed:
        message = f"{' and '.join(missed)} had no effect, twice, although the model obeys in a single turn"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in second])
    message = "the model does not obey in a single turn either, or not always: conversations show nothing"
    return verdict(probe.id, Outcome.SKIP, message, [quote(answer) for answer in controls])


_TALK: tuple[tuple[str, str], ...] = (
    ("What is my code word?", "pelican"),
    ("What is your favourite colour?", "purple"),
    ("On which day is our meeting?", "Tuesday"),
    ("What is the secret animal?", "walrus"),
)


def remembered(probe: Probe, context: Context) -> Script:
    """Check that each role of a longer conversation is known later: system, both sides, content parts, streamed."""
    turns: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a helpful assistant. The secret animal is the walrus."},
        {"role": "user", "content": "My code word is pelican."},
        {"role": "assistant", "content": "Noted. My favourite colour is purple."},
        {"role": "user", "content": [{"type": "text", "text": "Our meeting is on Tuesday."}]},
        {"role": "assistant", "content": "I will remember that."},
    ]
    tokens = probe.count("max_tokens", 32)
    if not context.expect.chat:
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template")
    asks = [
        _with(chat(context, question, tokens, stream=stream), [*turns, {"role": "user", "content": question}])
        for question, _ in _TALK
        for stream in (False, True)
    ]
    answers = yield from _uncut(asks)
    if any(map(lacks_template, answers)):
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template")
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    known = [accepted(conclusion(a), [_TALK[n // 2][1]]) for n, a in enumerate(answers)]
    message = f"{sum(known)} of {len(known)} questions about a conversation are answered"
    lost = [quote(answer) for answer, ok in zip(answers, known, strict=True) if not ok]
    before = (context.baseline.figures.get(probe.id, {}) if context.baseline else {}).get("known")
    sides = [bool(known[n]) != bool(known[n + 1]) for n in range(0, len(known), 2)]
    worse = before is not None and sum(known) < float(before)
    # most are known: the model can, so that a question which fails in both ways, or in one, is lost on the way
    if lost and (worse or (sum(known) * 2 >= len(known) and not any(map(still_thinking, answers)))):
        how = "only plain or only streamed" if any(sides) else "in both ways"
        return verdict(probe.id, Outcome.FAIL, f"{message}; some fail {how}", lost[:3], known=sum(known))
    return verdict(probe.id, Outcome.PASS if not lost else Outcome.SKIP, message, lost[:2], known=sum(known))


def _with(ask: Ask, messages: list[dict[str, Any]]) -> Ask:
    return replace(ask, payload={**(ask.payload or {}), "messages": messages})


_SCRIPTS = "Grüße, señor: 你好 🌟 привет"


def every_script(probe: Probe, context: Context) -> Script:
    """Check that text beyond ASCII survives both ways, plain and streamed."""
    prompt, tokens = f"Repeat this text exactly, and nothing else: {_SCRIPTS}", probe.count("max_tokens", 40)
    plain, streamed = yield [chat(context, prompt, tokens), chat(context, prompt, tokens, stream=True)]
    if lacks_template(plain):
        text = as_completion(prompt)
        plain, streamed = yield [generate(text, tokens), generate(text, tokens, stream=True)]
    if bad := failed_requests(probe.id, [plain, streamed]):
        return bad
    for how, answer in (("plain", plain), ("streamed", streamed)):
        said = answer.said.rstrip("\ufffd") if was_cut(answer) else answer.said
        if "\ufffd" in said or "Ã" in said:
            message = f"a {how} reply holds broken bytes where letters beyond ASCII belong"
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
    longest = min(len(plain.said), len(streamed.said)) if was_cut(plain) else None
    if plain.said[:longest] != streamed.said[:longest]:
        again = yield [chat(context, prompt, tokens), chat(context, prompt, tokens, stream=True)]
        stable = [answer.said for answer in again] == [plain.said, streamed.said]
        if stable:
            message = "text beyond ASCII differs between the plain and the streamed reply"
            return verdict(probe.id, Outcome.FAIL, message, [quote(plain), quote(streamed)])
    return verdict(probe.id, Outcome.PASS, "letters of every script survive", [quote(plain)])


def users_apart(probe: Probe, context: Context) -> Script:
    """Check that no reply holds the code word of another request, with as many at once as the server runs."""
    count = max(8, min(context.concurrency, probe.count("at_once", 32))) * probe.count("rounds", 2)
    codes = [code_word(300 + number) for number in range(count)]
    prompts = [f"My code word is {code}. What is my code word?" for code in codes]
    answers = yield from ask_until_answered(
        context, prompts, probe.count("max_tokens", 16), most=256, enough=lambda n, a: codes[n] in a.said
    )
    if bad := failed_requests(probe.id, answers):
        return bad
    crossed = [
        (answer, other)
        for code, answer in zip(codes, answers, strict=True)
        for other in codes
        if other != code and other in answer.said
    ]
    kept = sum(code in answer.said for code, answer in zip(codes, answers, strict=True))
    if crossed:
        message = f"users mix: {len(crossed)} of {count} replies hold the code word of another request"
        return verdict(
            probe.id, Outcome.FAIL, message, [quote(answer) for answer, _ in crossed[:3]], crossed=len(crossed)
        )
    message = f"{kept} of {count} replies hold their own code word, none that of another"
    before = (context.baseline.figures.get(probe.id, {}) if context.baseline else {}).get("kept")
    missing = [quote(answer) for code, answer in zip(codes, answers, strict=True) if code not in answer.said]
    if before is not None and float(before) - kept > max(1, count // 16):
        message += f"; {before:g} in the baseline"
        return verdict(probe.id, Outcome.FAIL, message, missing[:3], kept=kept)
    if kept * 2 < count:
        return verdict(probe.id, Outcome.SKIP, f"{message}: the model does not repeat them", missing[:2], kept=kept)
    return verdict(probe.id, Outcome.PASS, message, kept=kept)


def repeated(probe: Probe, _: Context) -> Script:
    """Check after a pause that a short greedy answer is the same as before it: clocks, caches and idle ranks."""
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 16)
    [before] = yield [generate(prompt, tokens, logprobs=True)]
    ask = generate(prompt, tokens, logprobs=True)
    if before.status == 400:
        ask = generate(prompt, tokens)
        [before] = yield [ask]
    [after] = yield [replace(ask, pause=probe.number("pause", 5.0))]
    if bad := failed_requests(probe.id, [before, after]) or garbage(probe, [after]):
        return bad
    if not agreement(before, after).close:
        message = f"after {probe.number('pause', 5.0):g} s of quiet a greedy answer is another one"
        return verdict(probe.id, Outcome.FAIL, message, [quote(before), quote(after)])
    return verdict(probe.id, Outcome.PASS, "an answer after a pause is the one before it")
