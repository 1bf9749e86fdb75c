"""A deterministic toy language model: the distribution of the next token is a function of the tokens before.

Because nothing else goes in, scores of a text given as prompt equal the scores that came with it when it was
generated, greedy decoding takes the first of the top list, and a fault that hides or changes tokens of the prompt
changes what the model says, without further help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from tests.serving import ability, obedience, prose, tooling, vocabulary
from tests.serving.ability import Answer, Manner
from tests.serving.conversation import Conversation
from tests.serving.prose import crc

Tokens = tuple[int, ...]
Part = tuple[tuple[Tokens, float], ...]
Grammar = Callable[[Conversation, str, int], str]
"""Makes a text that a constraint allows: from the conversation, the answer's core, and a number for variety."""


class Plan:
    """What the model is about to say: parts one after the other, each with alternatives; then more without end."""

    def __init__(
        self, parts: Sequence[Part], more: Callable[[int], Part] | None, loose: float = 0.0, tail: float = 2e-5
    ) -> None:
        self.parts, self.more, self.loose, self.tail = tuple(parts), more, loose, tail
        self.thoughts = 0

    def part(self, number: int) -> Part:
        """Return a part; after the planned ones come those of the endless rest."""
        if number < len(self.parts):
            return self.parts[number]
        return self.more(number - len(self.parts)) if self.more else (((vocabulary.END,), 1.0),)


def tokenised(choices: Iterable[tuple[str, float]], end: bool) -> Part:
    """Return the alternatives of a part as tokens, closed by the token that ends an answer."""
    closing = (vocabulary.END,) if end else ()
    return tuple((tuple(vocabulary.encode(text)) + closing, weight) for text, weight in choices)


class Mind:
    """The model's weights, so to speak: what it can do, how it speaks, and how it thinks."""

    def __init__(self, manner: Manner | None = None, ability_level: float = 0.95, raw: bool = False) -> None:
        self.manner, self.level, self.raw = manner or Manner(), ability_level, raw
        self.think: Callable[[Conversation], list[tuple[tuple[str, float], ...]]] | None = None
        self.restyle: Callable[[str, Conversation, bool], list[tuple[str, float]]] | None = None
        self.revise: Callable[[Answer, Conversation], Answer] | None = None

    def plan(self, conversation: Conversation, weaker: float, grammar: Grammar | None = None) -> Plan:
        """Return what the model says to a conversation; `weaker` is how much quality it has lost."""
        key = crc(*conversation.turns, conversation.system)
        thoughts = [tokenised(part, end=False) for part in self.think(conversation)] if self.think is not None else []
        plan = self._answer(conversation, weaker, grammar, key)
        made = Plan([*thoughts, *plan.parts], plan.more, plan.loose, plan.tail)
        made.thoughts = len(thoughts)
        return made

    def _answer(self, conversation: Conversation, weaker: float, grammar: Grammar | None, key: int) -> Plan:
        """Return what the model says after its thoughts."""
        answer = ability.answer(conversation, self.manner)
        if self.revise is not None:
            answer = self.revise(answer, conversation)
        if answer.choices and answer.hard > self.level - weaker - conversation.odd:
            false = ability.wrong(answer.core, key)
            swapped = tuple((text.replace(answer.core, false), weight) for text, weight in answer.choices)
            answer = Answer(swapped, false)
        if grammar is not None:
            texts = [(grammar(conversation, answer.core, seed), weight) for seed, weight in enumerate((0.7, 0.2, 0.1))]
            return Plan([tokenised(_merged(texts), end=True)], None, tail=0.0)
        if calls := tooling.wanted(conversation):
            return Plan([tokenised([(tooling.written(calls), 1.0)], end=True)], None)
        if answer.choices:
            said = self._styled(answer.choices, conversation)
            return Plan([tokenised(_merged(said), end=True)], self.endless(answer.language, key), loose=0.002)
        return Plan(self._prose(answer, conversation, key), self.endless(answer.language, key), loose=0.008)

    def _prose(self, answer: Answer, conversation: Conversation, key: int) -> list[Part]:
        """Return open text: perhaps a sentence about the topic, then any number of others."""
        parts: list[Part] = []
        first = list(prose.about(answer.topic, key)) if answer.topic and answer.language == "en" else []
        if answer.opening:
            first = [
                (answer.opening, 0.5),
                *((text, weight / 2) for text, weight in first or prose.about("matter", key)),
            ]
        if first:
            parts.append(tokenised(self._styled(first, conversation, opens=True), end=answer.sentences == 1))
        places = range(len(parts) * prose.SLOTS, answer.sentences * prose.SLOTS)
        for place in places:
            told: Sequence[tuple[str, float]] = prose.choices(answer.language, place, key)
            told = (
                self._styled(told, conversation, opens=True)
                if place == 0
                else [(_formatted(text, conversation, ends=False), weight) for text, weight in told]
            )
            parts.append(tokenised(told, end=place == places[-1]))
        return parts

    def _styled(
        self, choices: Iterable[tuple[str, float]], conversation: Conversation, opens: bool = False
    ) -> list[tuple[str, float]]:
        """Return alternatives in the form that was asked for, and in the model's own manner."""
        told = [(_formatted(text, conversation), weight) for text, weight in choices]
        if self.restyle is None:
            return told
        return [
            (text, weight * share) for given, weight in told for text, share in self.restyle(given, conversation, opens)
        ]

    def endless(self, language: str, key: int, start: int = 0) -> Callable[[int], Part]:
        """Return text that goes on for ever, as parts by their number; every eighth sentence may be the last."""
        return lambda number: tokenised(
            prose.choices(language, number + start + prose.SLOTS, key), end=number % 32 == 31
        )


def _formatted(text: str, conversation: Conversation, ends: bool = True) -> str:
    """Obey the instructions about the form of an answer."""
    rules = f"{conversation.system[:4000]}\n{obedience.instruction(conversation.last)}"
    if re.search(r"(?i)(capital letters|upper ?case|all caps|CAPITALS)", rules) and "capital letter of" not in rules:
        text = text.upper()
    elif re.search(r"(?i)(small letters|lower ?case)", rules):
        text = text.lower()
    for place in ("start|begin", "end|finish") if ends else ():
        match = re.search(
            rf"(?i)\b(?:{place})\b[^.\n]*?\bwith (?:the )?(?:word |words |phrase )?[\"'“]?([^\"'”.\n]+)", rules
        )
        if match:
            text = f"{match[1].strip()} {text}" if place[0] == "s" else f"{text} {match[1].strip()}"
    return text


def _merged(choices: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    merged: dict[str, float] = {}
    for text, weight in choices:
        merged[text] = merged.get(text, 0.0) + weight
    return list(merged.items())
