"""Accuracy on small bundled sets: extract answers from text, score them with an interval, and judge the score.

Never a bare percentage: against a limit or a baseline the verdict is pass, fail, or inconclusive with the number of
questions that would decide. Failed requests and empty answers are failures. The sets are in `knowledge/accuracy`.
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
from checks.after.probes.asking import LADDER, conclusion, still_thinking, was_cut
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Measured, Script, quote, verdict
from checks.after.probes.expect import AccuracyExpect, or_default
from checks.after.probes.requests import chat, generate, lacks_template
from checks.catalog.yaml_reader import read
from checks.vocabulary import Evidence, Outcome

SETS = KNOWLEDGE / "accuracy"
MARGIN = 0.05
THINKERS = 16  # questions for a model that thinks before each answer


class Question(Struct, frozen=True, kw_only=True):
    """One question with its one correct answer: an integer as text, or a letter."""

    id: str
    question: str
    answer: str


class AccuracySet(Struct, frozen=True, kw_only=True):
    """A set of questions, the form in which they are sent, and how the answers are read."""

    id: str
    title: str
    source: str
    licence: str
    kind: str  # integer or letter
    instruction: str
    max_tokens: int
    chance: float  # score of random guessing, a share
    examples: tuple[tuple[str, str], ...]  # for the few-shot form
    questions: tuple[Question, ...]


@cache
def load_set(name: str, root: Path = SETS) -> AccuracySet:
    """Return a bundled set by its name. Raises YamlError when its file is malformed."""
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
    """Send all questions of a set in one wave; the sender keeps to the server's concurrency."""
    chosen = load_set(probe.text("set"))
    expected = context.expect.accuracy.get(chosen.id, AccuracyExpect())
    questions = chosen.questions[: expected.n or probe.count("n", len(chosen.questions))]
    tokens = expected.max_tokens or chosen.max_tokens
    few_shot = probe.text("form", "chat") == "few-shot" or not context.expect.chat
    answers: Sequence[Answer] = ()
    if not few_shot:
        # no trial request first: where the server runs all questions concurrently, it would double the time
        answers = yield [_chat(context, chosen, item, tokens) for item in questions]
        few_shot = all(lacks_template(answer) for answer in answers)  # rejected immediately, nothing was generated
        if sum(map(was_cut, answers)) * 2 > len(answers):  # thoughts, which some templates open unseen
            questions = questions[:THINKERS]
            answers = yield [_chat(context, chosen, item, max(tokens, LADDER[1])) for item in questions]
    if few_shot:
        answers = yield [_few_shot(chosen, item, tokens) for item in questions]
    return judge(probe, context, chosen, questions, answers)


def judge(
    probe: Probe, context: Context, chosen: AccuracySet, questions: Sequence[Question], answers: Sequence[Answer]
) -> Measured:
    """Score the answers and judge the score against the baseline, the profile's limit or chance."""
    unanswered = sum(map(still_thinking, answers))  # a reply that was cut inside the thoughts is no answer
    pairs = [(item, answer) for item, answer in zip(questions, answers, strict=True) if not still_thinking(answer)]
    if unanswered * 2 > len(answers):
        message = f"{unanswered} of {len(answers)} replies were cut inside the model's thoughts"
        return Measured(verdict=verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(answers[0])]))
    questions, answers = [item for item, _ in pairs], [answer for _, answer in pairs]
    right = [answer.ok and read_answer(conclusion(answer), chosen.kind) == item.answer for item, answer in pairs]
    failed = [answer for answer in answers if not answer.ok]
    empty = [answer for answer in answers if answer.ok and not answer.said.strip()]
    cut = sum(1 for answer in answers if answer.ok and answer.finish == "length")
    score = wilson(sum(right), len(right))
    figures: dict[str, float | str] = {
        "score": round(score.value, 4), "low": round(score.low, 4), "high": round(score.high, 4), "n": len(right),
        "failed_requests": len(failed), "empty_answers": len(empty), "cut_short": cut,
    }  # fmt: skip
    shown = f"{sum(right)} of {len(right)} correct, {score.value:.0%} ({score.low:.0%} to {score.high:.0%})"
    if failed or empty:
        outcome, message = Outcome.FAIL, f"{len(failed)} requests failed, {len(empty)} answers are empty; {shown}"
        evidence = [quote(answer) for answer in (*failed, *empty)[:3]]
    else:
        before = [bool(item) for item in context.samples(probe.id, "right")]
        outcome, message = _judge_score(context, chosen, right, before)
        message = f"{shown}; {message}"
        evidence = _wrong(questions, answers, right) if outcome is not Outcome.PASS else []
    if cut * 5 > len(answers):
        message += f"; {cut} answers were cut off at the token limit (raise `expect.accuracy.{chosen.id}.max_tokens`)"
    return Measured(
        verdict=verdict(probe.id, outcome, message, evidence, **figures),
        samples={"right": tuple(float(item) for item in right)},
    )


def read_answer(text: str, kind: str) -> str | None:
    """Return the final answer in a text: the last integer, or the chosen letter; None when there is none."""
    marked = re.findall(r"(?:####|\\boxed\{|answer(?: is|:)?)[\s*$:({]*([-−]?[\w,.]+)", text, re.IGNORECASE)
    if kind == "letter":
        candidates = [item for item in marked if re.fullmatch(r"[A-D][.,]?", item)]
        letters = re.findall(r"(?<![\w'])\(?([A-D])(?:[).:,*]|\s|\Z)", text)
        chosen = candidates[-1] if candidates else letters[0] if letters else None
        return chosen[0] if chosen else None
    numbers = [number for item in marked if (number := _integer(item)) is not None]
    if numbers:
        return numbers[-1]
    digits = re.findall(r"[-−]?\d[\d,]*(?:\.\d+)?", text)
    numbers = [number for item in digits if (number := _integer(item)) is not None]
    return numbers[-1] if numbers else None


def against(before: Sequence[bool], right: Sequence[bool], margin: float = MARGIN) -> tuple[Outcome, str]:
    """Judge a score against its baseline. `margin` is the accepted loss, as a share of all questions."""
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
    advice = f"about {need} questions would decide" if need else "exactly at the margin, no number would decide"
    return Outcome.INCONCLUSIVE, f"{shown}, margin {margin:.0%}: {advice}"


def against_limit(score: Interval, n: int, least: float) -> tuple[Outcome, str]:
    """Judge a score over `n` questions against the expected minimum `least`, a share."""
    if score.low >= least:
        return Outcome.PASS, f"expected at least {least:.0%}"
    if score.high < least:
        return Outcome.FAIL, f"expected at least {least:.0%}"
    need = questions_to_decide(score.value, score.value - least)
    advice = f"about {max(need, n + 1)} questions would decide" if need else "the score is exactly at the limit"
    return Outcome.INCONCLUSIVE, f"expected at least {least:.0%}: {advice}"


def _judge_score(
    context: Context, chosen: AccuracySet, right: Sequence[bool], before: Sequence[bool]
) -> tuple[Outcome, str]:
    expected = context.expect.accuracy.get(chosen.id, AccuracyExpect())
    margin = or_default(expected.margin, MARGIN)
    score = wilson(sum(right), len(right))
    if before:
        return against(before, right, margin)
    if expected.at_least is not None:
        return against_limit(score, len(right), expected.at_least)
    if score.low <= chosen.chance:
        return Outcome.INCONCLUSIVE, f"no better than guessing ({chosen.chance:.0%}): a weak model, or a damaged one"
    return Outcome.SKIP, "recorded only: there is no baseline and no `at-least` to compare it with"


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
