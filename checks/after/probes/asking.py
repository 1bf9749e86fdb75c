"""Ask a model until it has answered: one ladder of token limits, and one fallback for models without a chat template.

A reply that was cut is no answer. A model that thinks, or that is polite, needs more tokens than the answer has; a base
model is asked for a completion. Probes that judge what a model says use this, so that none of them fails a sound
server.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from msgspec.structs import replace

from checks.after.probes.context import Context
from checks.after.probes.exchange import Answer, Ask, Wave, error_text
from checks.after.probes.requests import as_completion, chat, generate, lacks_template

LADDER = (256, 1024, 2048)  # token limits for those who were cut; thoughts of small reasoning models take 500 to 1,500
_ROOM = 64  # tokens of the context that a prompt needs besides its text
Asking = Generator[Wave, Sequence[Answer], list[Answer]]


def ask_until_answered(
    context: Context,
    prompts: Sequence[str],
    tokens: int,
    *,
    enough: Callable[[int, Answer], bool] | None = None,
    most: int = LADDER[-1],
    **parameters: Any,
) -> Asking:
    """Ask each prompt, and those again with more tokens whose answer was cut before it is `enough`; return the answers.

    `most` limits the tokens of the last try. `parameters` extend a chat request.
    """
    plain = not context.expect.chat

    def ask(prompt: str, limit: int) -> Ask:
        if plain:
            return generate(as_completion(prompt), limit, stop=["\nQuestion:", "\n\n"])
        return chat(context, prompt, limit, **parameters)

    answers = list((yield [ask(prompt, tokens) for prompt in prompts]))
    if any(lacks_template(answer) for answer in answers):
        plain = True
        answers = list((yield [ask(prompt, tokens) for prompt in prompts]))
    for limit in sorted({min(limit, most, _fitting(context, prompts)) for limit in LADDER} - {tokens}):
        open_ = [number for number, answer in enumerate(answers) if limit > tokens and was_cut(answer)]
        cut = [number for number in open_ if enough is None or not enough(number, answers[number])]
        if not cut:
            continue
        again = yield [ask(prompts[number], limit) for number in cut]
        for number, answer in zip(cut, again, strict=True):
            if answer.status != 400:  # a limit that the server does not allow: the first answer counts
                answers[number] = answer
    return answers


def with_or_without_logprobs(asks: Sequence[Ask]) -> Asking:
    """Send requests that ask for log-probabilities; where the server has none (DFLASH drafts), send them without."""
    answers = list((yield asks))
    if not any(answer.status == 400 and "logprob" in error_text(answer).lower() for answer in answers):
        return answers
    plain = [{name: value for name, value in (ask.payload or {}).items() if name != "return_logprob"} for ask in asks]
    return list((yield [replace(ask, payload=payload) for ask, payload in zip(asks, plain, strict=True)]))


def was_cut(answer: Answer) -> bool:
    """Return whether a reply ended at its token limit."""
    return answer.ok and answer.finish == "length"


def conclusion(answer: Answer) -> str:
    """Return what the model says after its thoughts; empty while it still thinks."""
    _, closed, after = answer.text.rpartition("</think>")
    if closed:
        return after
    if not answer.text.strip() and answer.finish != "length":
        return answer.reasoning  # some parsers take a whole answer for thoughts, which `reasoning` judges
    return "" if answer.text.lstrip().startswith("<think>") else answer.text


def still_thinking(answer: Answer) -> bool:
    """Return whether a reply was cut inside the thoughts of the model."""
    return was_cut(answer) and not conclusion(answer).strip() and bool(answer.said.strip())


def _fitting(context: Context, prompts: Sequence[str]) -> int:
    """Return the tokens that the server's context leaves for an answer; a token has four characters, or three."""
    if not context.server.context:
        return LADDER[-1]
    return context.server.context - max(len(prompt) for prompt in prompts) // 3 - _ROOM
