"""Accuracy on small bundled sets: answers out of text, score with interval, and a verdict that knows its own limits.

Never a bare percentage: against a wish or a baseline it is pass, fail, or inconclusive with the number of questions
that would decide. Failed requests and answers without a token are failures. The sets lie in `knowledge/accuracy`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

from msgspec import Struct

from checks import KNOWLEDGE
from checks.after.measures.intervals import Interval, difference, paired_difference, questions_to_decide, wilson
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Measured, Script, quote, verdict
from checks.after.probes.expect import AccuracyExpect, or_default
from checks.after.probes.requests import chat, generate, lacks_template
from checks.catalog.yaml_reader import read
from checks.vocabulary import Evidence, Outcome

SETS = KNOWLEDGE / "accuracy"
MARGIN = 0.05


class Question(Struct, frozen=True, kw_only=True):
    """One question with its one right answer: an integer as text, or a letter."""

    id: str
    question: str
    answer: str


class AccuracySet(Struct, frozen=True, kw_only=True):
    """A set of questions, how to ask them and how to read the answers."""

    id: str
    title: str
    source: str
    licence: str
    kind: str  # integer or letter
    instruction: str
    max_tokens: int
    chance: float  # score of a guesser
    examples: tuple[tuple[str, str], ...]  # for the few-shot form
    questions: tuple[Question, ...]


@cache
def load_set(name: str, root: Path = SETS) -> AccuracySet:
    """A bundled set by its name. Raises YamlError."""
    node = read(root / f"{name}.yaml", f"accuracy/{name}.yaml")
    node.mapping(["title", "source", "licence", "kind", "instruction", "max_tokens", "chance", "examples"])
    lines = (root / f"{name}.jsonl").read_text("utf-8").splitlines()
    examples = node.need("examples").plain()
    return AccuracySet(
        id=name,
        title=node.need("title").text(),
        source=node.need("source").text(),
        licence=node.need("licence").text(),
        kind=node.need("kind").text(),
        instruction=node.need("instruction").text(),
        max_tokens=int(node.need("max_tokens").number()),
        chance=node.need("chance").number(),
        examples=tuple((str(item["question"]), str(item["answer"])) for item in examples),
        questions=tuple(_question(json.loads(line)) for line in lines if line.strip()),
    )


def accuracy(probe: Probe, context: Context) -> Script:
    """All questions of a set at once; the sender keeps to the server's concurrency."""
    chosen = load_set(probe.text("set"))
    own = context.expect.accuracy.get(chosen.id, AccuracyExpect())
    questions = chosen.questions[: own.n or probe.count("n", len(chosen.questions))]
    tokens = own.max_tokens or chosen.max_tokens
    few_shot = probe.text("form", "chat") == "few-shot" or not context.expect.chat
    answers: Sequence[Answer] = ()
    if not few_shot:
        # all at once: one sent ahead would cost as long as all others together where the server takes them all
        answers = yield [_chat(context, chosen, item, tokens) for item in questions]
        few_shot = all(lacks_template(answer) for answer in answers)  # refused at once, nothing was generated
    if few_shot:
        answers = yield [_few_shot(chosen, item, tokens) for item in questions]
    return judge(probe, context, chosen, questions, answers)


def judge(
    probe: Probe, context: Context, chosen: AccuracySet, questions: Sequence[Question], answers: Sequence[Answer]
) -> Measured:
    """Score the answers and compare the score with what is expected."""
    right = [
        answer.ok and read_answer(_final(answer), chosen.kind) == item.answer
        for item, answer in zip(questions, answers, strict=True)
    ]
    failed = [answer for answer in answers if not answer.ok]
    mute = [answer for answer in answers if answer.ok and not answer.said.strip()]
    cut = sum(1 for answer in answers if answer.ok and answer.finish == "length")
    score = wilson(sum(right), len(right))
    figures: dict[str, float | str] = {
        "score": round(score.value, 4), "low": round(score.low, 4), "high": round(score.high, 4), "n": len(right),
        "failed_requests": len(failed), "empty_answers": len(mute), "cut_short": cut,
    }  # fmt: skip
    shown = f"{sum(right)} of {len(right)} right, {score.value:.0%} ({score.low:.0%} to {score.high:.0%})"
    if failed or mute:
        outcome, message = Outcome.FAIL, f"{len(failed)} requests failed, {len(mute)} answers are empty; {shown}"
        evidence = [quote(answer) for answer in (*failed, *mute)[:3]]
    else:
        before = [bool(item) for item in context.samples(probe.id, "right")]
        outcome, message = _judge_score(context, chosen, right, before)
        message = f"{shown}; {message}"
        evidence = _wrong(questions, answers, right) if outcome is not Outcome.PASS else []
    if cut * 5 > len(answers):
        message += f"; {cut} answers were cut at the token limit (raise expect.accuracy.{chosen.id}.max_tokens)"
    return Measured(
        verdict=verdict(probe.id, outcome, message, evidence, **figures),
        samples={"right": tuple(float(item) for item in right)},
    )


def read_answer(text: str, kind: str) -> str | None:
    """The final answer in a text: the last number, or the chosen letter; None when there is none."""
    marked = re.findall(r"(?:####|\\boxed\{|answer(?: is|:)?)[\s*$:({]*([-−]?[\w,.]+)", text, re.IGNORECASE)
    if kind == "letter":
        candidates = [item for item in marked if re.fullmatch(r"[A-D][.,]?", item)]
        alone = re.findall(r"(?<![\w'])\(?([A-D])(?:[).:,*]|\s|\Z)", text)
        chosen = candidates[-1] if candidates else alone[0] if alone else None
        return chosen[0] if chosen else None
    numbers = [number for item in marked if (number := _integer(item)) is not None]
    if numbers:
        return numbers[-1]
    found = [number for item in re.findall(r"[-−]?\d[\d,]*(?:\.\d+)?", text) if (number := _integer(item)) is not None]
    return found[-1] if found else None


def against(before: Sequence[bool], right: Sequence[bool], margin: float = MARGIN) -> tuple[Outcome, str]:
    """A score against its baseline. `margin` is the loss that is accepted, as a share of all questions."""
    paired = len(before) == len(right)
    change = (
        paired_difference(before, right) if paired else difference((sum(before), len(before)), (sum(right), len(right)))
    )
    shown = f"{change.value:+.1%} against the baseline ({change.low:+.1%} to {change.high:+.1%})"
    if change.low > -margin:
        return Outcome.PASS, shown
    if change.high < 0 and change.value < -margin:
        return Outcome.FAIL, f"{shown}: worse by more than {margin:.0%}"
    room = abs(change.value + margin)
    need = ceil(len(right) * (change.half_width / room) ** 2) if room > 0.002 else None
    more = f"about {need} questions would decide" if need else "no number of questions decides at the margin itself"
    return Outcome.INCONCLUSIVE, f"{shown}, margin {margin:.0%}: {more}"


def against_limit(score: Interval, n: int, least: float) -> tuple[Outcome, str]:
    """A score of `n` questions against the least that is expected, a share."""
    if score.low >= least:
        return Outcome.PASS, f"at least {least:.0%} are expected"
    if score.high < least:
        return Outcome.FAIL, f"at least {least:.0%} are expected"
    need = questions_to_decide(score.value, score.value - least)
    more = f"about {max(need, n + 1)} questions would decide" if need else "the score is the limit itself"
    return Outcome.INCONCLUSIVE, f"at least {least:.0%} are expected: {more}"


def _judge_score(
    context: Context, chosen: AccuracySet, right: Sequence[bool], before: Sequence[bool]
) -> tuple[Outcome, str]:
    own = context.expect.accuracy.get(chosen.id, AccuracyExpect())
    margin = or_default(own.margin, MARGIN)
    score = wilson(sum(right), len(right))
    if before:
        return against(before, right, margin)
    if own.at_least is not None:
        return against_limit(score, len(right), own.at_least)
    if score.low <= chosen.chance:
        return Outcome.FAIL, f"no better than guessing ({chosen.chance:.0%})"
    return Outcome.SKIP, "recorded, there is nothing to compare it with"


def _final(answer: Answer) -> str:
    text = answer.text or answer.reasoning
    return text.rpartition("</think>")[2]


def _wrong(questions: Sequence[Question], answers: Sequence[Answer], right: Sequence[bool]) -> list[Evidence]:
    return [
        Evidence(text=f"{item.id}: expected {item.answer}, got {answer.said[-120:]!r}", source=answer.path)
        for item, answer, ok in zip(questions, answers, right, strict=True)
        if not ok
    ][:3]


def _chat(context: Context, chosen: AccuracySet, item: Question, tokens: int) -> Ask:
    return chat(context, f"{chosen.instruction}\n\n{item.question}", tokens)


def _few_shot(chosen: AccuracySet, item: Question, tokens: int) -> Ask:
    shots = "\n\n".join(f"Question: {question}\nAnswer: {answer}" for question, answer in chosen.examples)
    return generate(f"{shots}\n\nQuestion: {item.question}\nAnswer:", tokens, stop=["\n\nQuestion:", "\nQuestion:"])


def _question(data: Mapping[str, Any]) -> Question:
    return Question(id=str(data["id"]), question=str(data["question"]), answer=str(data["answer"]))


def _integer(text: str) -> str | None:
    plain = text.replace("−", "-").replace(",", "").rstrip(".")
    try:
        value = float(plain)
    except ValueError:
        return None
    return str(int(value)) if value == int(value) else plain
