"""Reads a text token by token, and says at each step what the model expects next."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from tests.serving import ability, oracle, prose, skills, vocabulary
from tests.serving.conversation import Conversation, read
from tests.serving.distribution import Distribution
from tests.serving.model import Grammar, Mind, Part, Plan, tokenised
from tests.serving.prose import crc, unit

_ASSISTANT = tuple(vocabulary.encode("assistant\n"))
_FILLERS = tuple(vocabulary.encode(" also really quite perhaps still just"))
_MARKER = re.compile(r"(?:^|\n)(?:A|Answer|Assistant|assistant|Output|Solution|R(?:esponse)?)\s*:\s*$|\[/INST\]\s*$")
_TRIGGERS = frozenset(vocabulary.encode(": = is ] are :")) | frozenset(vocabulary.encode(" : = ]"))
_AFTER = {
    " is are was were be": (
        "calm and very cold today",
        "one of the things that people love",
        "far away from the old town",
    ),
    " the a an my our his her this that": (
        "old house by the road",
        "first day of the long journey",
        "small boat in the harbour",
    ),
    " of in to at on with and for from by": ("the people of the valley", "the town by the river", "all that was left"),
}
"""What goes on well after some words, in text that nobody planned."""


def _continued(last: str, told: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return sentences that go on after a word in the middle of one."""
    rest = [text for text, _ in told]
    for words, phrases in _AFTER.items():
        if last.strip() in words.split():
            rest = [f"{phrases[place % 3]}, and then{text}" for place, text in enumerate(rest)]
    return tuple((text, weight) for text, (_, weight) in zip(rest, told, strict=True))


class Walk:
    """A reader in the middle of a text: it takes token after token and says what it expects next."""

    def __init__(self, mind: Mind, images: Sequence[str] = (), weaker: Callable[[int], float] | None = None) -> None:
        self.mind, self.images, self.weaker = mind, images, weaker or (lambda position: 0.0)
        self.grammar: Grammar | None = None
        self.seen: list[int] = []
        self.follow: dict[int, int] = {}
        self.plan: Plan | None = None
        self.part, self.alive, self.place = 0, Part(), 0
        self.line_start, self.line_key, self.chat = 0, 0, False

    def read(self, tokens: Sequence[int]) -> None:
        """Take a whole prompt; only its end is walked through, which leaves the reader in the same state."""
        start = self._last_anchor(tokens)
        self.seen = list(tokens[:start])
        self.follow = dict(zip(self.seen, self.seen[1:], strict=False))
        self.chat = vocabulary.START in self.seen
        if not self.chat:
            begin = self._boundary(self.seen, start - 1)
            self.line_start, self.line_key = start, crc(*self.seen[begin:start])
        for token in tokens[start:]:
            self.feed(token)

    def _last_anchor(self, tokens: Sequence[int]) -> int:
        for place in range(len(tokens) - 1, -1, -1):
            if tokens[place] == vocabulary.START:
                return place
        return self._boundary(tokens, len(tokens) - 1)

    @staticmethod
    def _boundary(tokens: Sequence[int], before: int) -> int:
        """Return where the sentence begins that the token at `before` belongs to."""
        for place in range(before - 1, -1, -1):
            if vocabulary.piece(tokens[place])[-1:] in {b".", b"!", b"?", b"\n"}:
                return place + 1
        return 0

    def feed(self, token: int) -> None:
        """Take the next token."""
        if self.seen:
            self.follow[self.seen[-1]] = token
        self.seen.append(token)
        if token == vocabulary.START:
            self.plan, self.chat = None, True
        elif (
            token == vocabulary.THOUGHT
            and self.plan is not None
            and self.part < self.plan.thoughts
            and not self._planned(token)
        ):
            self.part, self.place, self.alive = self.plan.thoughts, 0, self.plan.part(self.plan.thoughts)
        elif self.plan is not None:
            self._advance(token)
        elif self.chat and self._headed():
            self._begin(
                self.mind.plan(self._conversation(len(_ASSISTANT) + 1), self.weaker(len(self.seen)), self.grammar)
            )
        if not self.chat:
            self._free(token)

    def _headed(self) -> bool:
        """Return whether the header of an answer was just read."""
        size = len(_ASSISTANT)
        return (
            len(self.seen) > size
            and tuple(self.seen[-size:]) == _ASSISTANT
            and self.seen[-size - 1] == vocabulary.START
        )

    def constrain(self) -> None:
        """Begin what a grammar allows after text without a template."""
        if self.grammar is not None and not self.chat:
            self._begin(
                self.mind.plan(Conversation(turns=(("user", vocabulary.decode(self.seen)),)), 0.0, self.grammar)
            )
            self.chat = True

    def _planned(self, token: int) -> bool:
        return any(tokens[self.place] == token for tokens, _ in self.alive)

    def _conversation(self, header: int) -> Conversation:
        return read(vocabulary.decode(self.seen[:-header]), self.images)

    def _begin(self, plan: Plan) -> None:
        self.plan, self.part, self.place = plan, 0, 0
        self.alive = plan.part(0)

    def _advance(self, token: int) -> None:
        """Follow the plan by one token; a token that no alternative has next is passed over."""
        assert self.plan is not None
        left = tuple(choice for choice in self.alive if choice[0][self.place] == token)
        if not left:
            if not self.chat:
                self.plan = None
            return
        self.alive, self.place = left, self.place + 1
        if any(len(tokens) == self.place for tokens, _ in left):
            self.part, self.place = self.part + 1, 0
            self.alive = self.plan.part(self.part)

    def _free(self, token: int) -> None:
        """Read text without a template: plan the next sentence wherever nothing planned goes on."""
        fresh = vocabulary.piece(token)[-1:] in {b".", b"!", b"?", b"\n"}
        answering = self.plan is not None and self.plan.loose < 0.005
        if (self.plan is None or not answering) and token in _TRIGGERS and (plan := self._completion()) is not None:
            self._begin(plan)
        elif self.plan is None or (fresh and not answering):
            key = self.line_key if not fresh else crc(*self.seen[self.line_start :])
            blank = "" if vocabulary.piece(token)[-1:] == b"\n" else " "
            place = len(self.seen)
            language = self.mind.manner.language
            first = prose.choices(language, 0 if fresh else 1, key, place)
            if not fresh and language == "en":
                first = _continued(vocabulary.piece(token).decode("utf-8", "replace"), first)
            part = tokenised([(blank + text.strip(), weight) for text, weight in first], end=False)
            self._begin(Plan([part], self.mind.endless(language, key, 1 if fresh else 2), loose=0.008))
        if fresh:
            self.line_key, self.line_start = crc(*self.seen[self.line_start :]), len(self.seen)

    def _completion(self) -> Plan | None:
        """Return what completes the line so far: the answer to a question before, a fact, a sum."""
        line = vocabulary.decode(self.seen[self.line_start :])
        if _MARKER.search("\n" + line if self.line_start == 0 or line.startswith("A") else line):
            text = vocabulary.decode(self.seen[-8000:])
            question = re.split(
                r"\n\s*\n", text[: text.rfind(line)] if not line.endswith("]") else text.replace("[/INST]", "")
            )[-1]
            blank = "" if line.endswith("]") else " "
        elif re.search(r"(?i)capital of [\w ]+ is$|=\s*$|(is|code is|number is)\s*:?$", line):
            question, blank = re.sub(r"\s*=\s*$", " = ?", line), " "
            before = vocabulary.decode(self.seen[-8000 : self.line_start])
            told = skills.recalled(line, before)
            known = ability.worked(Conversation(turns=(("user", question),))) if told is None else (told, 0.0)
            return self._answered(known[0][0] + ".", blank) if known and oracle.graded(question) is None else None
        else:
            return None
        question = re.sub(r"(?m)^(?:Q|Question|User|user|Human|Input)\s*:\s*", "", question).strip()
        answer = ability.answer(Conversation(turns=(("user", question),)), self.mind.manner)
        if not answer.choices:
            return None
        lost = self.weaker(len(self.seen)) + (0.06 if line.endswith("]") else 0)
        core = answer.core if answer.hard <= self.mind.level - lost else ability.wrong(answer.core, question)
        return self._answered(core, blank)

    def _answered(self, core: str, blank: str) -> Plan:
        closing = tokenised([("\n\n", 0.8), ("\n", 0.2)], end=False) if self.mind.raw else (((vocabulary.END,), 1.0),)
        return Plan(
            [tokenised([(blank + core, 1.0)], end=False), closing],
            self.mind.endless(self.mind.manner.language, crc(core)),
            0.002,
        )

    def expect(self) -> Distribution:
        """Return the distribution of the next token."""
        last = self.seen[-1] if self.seen else 0
        key = crc(last, self.seen[-2] if len(self.seen) > 1 else 0, len(self.seen))
        loss = self.weaker(len(self.seen))
        if self.plan is None or (not self.chat and self.part == 0 and self.place == 0 and self.plan.loose > 0.005):
            return self._background(key, last, loss)
        plan = self.plan
        strict = plan.tail == 0.0
        inside = any(vocabulary.piece(tokens[self.place])[:1] == b" " for tokens, _ in self.alive)
        room = plan.loose * (0.2 + 1.6 * unit("room", key)) if inside and not strict else 0.0
        total = sum(weight for _, weight in self.alive)
        shares: dict[int, float] = {}
        for tokens, weight in self.alive:
            token = tokens[self.place]
            shares[token] = shares.get(token, 0.0) + (1 - room - plan.tail) * weight / total
        if vocabulary.END in shares and plan.more is not None and not strict:
            shares[vocabulary.END] *= 0.98
            for tokens, weight in plan.part(self.part + 1):
                shares[tokens[0]] = shares.get(tokens[0], 0.0) + 0.015 * weight
        if room:
            for number, token in enumerate(_FILLERS):
                shares[token] = shares.get(token, 0.0) + room * (0.04 + 0.1 * unit(key, number))
            for number in range(16):
                shares.setdefault(vocabulary.WORDS[crc(key, number) % len(vocabulary.WORDS)], plan.tail * 0.02)
        dist = Distribution(shares, plan.tail * 0.6, key)
        return dist if strict or not loss else dist.scaled(1 - loss, loss * 0.5)

    def read_by(self, token: int) -> Distribution:
        """Return the distribution before a token that is read, not written: a text of others is often guessed."""
        dist = self.expect()
        if (self.plan is not None and self.plan.loose <= 0.005) or dist.probability(token) > 0.02:
            return dist
        key = crc(self.seen[-1] if self.seen else 0, token, len(self.seen))
        share = math.exp(-0.3 - 3.4 * unit("read", key)) * (1 - self.weaker(len(self.seen)))
        shares = {other: value * (1 - share) for other, value in dist.shares.items()}
        return Distribution({**shares, token: share}, dist.tail * (1 - share), dist.key)

    def _background(self, key: int, last: int, loss: float) -> Distribution:
        """Return what is expected inside a text of others: echoes of what was read, common words, a bit of all."""
        shares: dict[int, float] = {}
        for number in range(24):
            token = vocabulary.WORDS[crc(last, number) % len(vocabulary.WORDS)]
            shares[token] = shares.get(token, 0.0) + 0.25 * 0.75**number * 0.25
        for tokens, weight in self.alive if self.plan is not None else ():
            shares[tokens[0]] = shares.get(tokens[0], 0.0) + 0.4 * weight
        if (echo := self.follow.get(last)) is not None:
            shares[echo] = shares.get(echo, 0.0) + 0.1 + 0.15 * unit("echo", key)
        return Distribution(shares, 0.08, key).scaled(1 - loss, loss * 0.08)
