"""Answers are read as a person would, the sets are sound, and a verdict says what it cannot decide."""

from __future__ import annotations

import ast
import json
import operator
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from checks.after.probes.accuracy import SETS, judge, load_set, read_answer
from checks.after.probes.context import Baseline, Context, Server
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer
from checks.after.probes.expectations import parse_expect
from checks.vocabulary import Outcome, Verdict

PROBE = Probe(id="p", title="", why="", kind="accuracy", level="good-enough", suites=("full",))
NAMES = sorted(path.stem for path in SETS.glob("*.yaml"))
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def judged(right: Sequence[bool], *, before: Sequence[bool] | None = None, **expect: Any) -> Verdict:
    chosen = load_set("word-problems")
    questions = chosen.questions[: len(right)]
    answers = [
        Answer(path="/generate", status=200, text=f"The answer is {item.answer if ok else 999_983}.", finish="stop")
        for item, ok in zip(questions, right, strict=True)
    ]
    samples = {"p": {"right": tuple(map(float, before))}} if before is not None else {}
    baseline = Baseline(samples=samples) if before is not None else None
    context = Context(server=Server(), expect=parse_expect({"accuracy": {"word-problems": expect}}), baseline=baseline)
    return judge(PROBE, context, chosen, questions, answers).verdict


def evaluate(text: str) -> float:
    def walk(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -walk(inner)
            case ast.BinOp(left=left, op=sign, right=right):
                return float(OPERATORS[type(sign)](walk(left), walk(right)))
        raise AssertionError(ast.dump(node))

    return walk(ast.parse(text, mode="eval").body)


def test_every_word_problem_has_the_answer_of_its_solution() -> None:
    lines = (SETS / "word-problems.jsonl").read_text("utf-8").splitlines()
    assert len(lines) >= 60
    for item in map(json.loads, lines):
        assert evaluate(item["solution"]) == item["answer"], item["id"]


def test_every_program_prints_the_answer_that_its_question_has() -> None:
    questions = load_set("code-reading").questions
    assert len(questions) >= 40
    programs = [item.question.partition("\n")[2] for item in questions]
    runner = (
        "import contextlib, io, json, sys\nfor program in json.load(sys.stdin):\n    out = io.StringIO()\n"
        "    with contextlib.redirect_stdout(out):\n        exec(program, {})\n    print(out.getvalue().strip())\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", runner], input=json.dumps(programs), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [item.answer for item in questions]


def test_the_letters_of_the_choice_questions_are_balanced() -> None:
    letters = [item.answer for item in load_set("general-knowledge").questions]
    assert len(letters) >= 40
    assert all(letters.count(letter) * 5 <= len(letters) * 2 for letter in "ABCD")


@pytest.mark.parametrize("name", NAMES)
def test_a_set_names_its_source_and_licence_and_has_no_question_twice(name: str) -> None:
    chosen = load_set(name)
    assert chosen.source
    assert chosen.licence == "Apache-2.0"
    assert len({item.question for item in chosen.questions}) == len({item.id for item in chosen.questions})
    assert {question for question, _ in chosen.examples}.isdisjoint(item.question for item in chosen.questions)


@pytest.mark.parametrize(
    ("text", "kind", "answer"),
    [
        ("24 × 7 = 168, 168 - 139 = 29.\nThe answer is 29.", "integer", "29"),
        ("The answer is **1,165**.", "integer", "1165"),
        ("... so she pays $36.", "integer", "36"),
        ("The answer is \\boxed{42}.", "integer", "42"),
        ("#### 15", "integer", "15"),
        ("The answer is −3.", "integer", "-3"),
        ("The answer is 45.00 euros", "integer", "45"),
        ("He has 12 apples and then 7.5 remain", "integer", "7.5"),
        ("I do not know.", "integer", None),
        ("B", "letter", "B"),
        ("B) Mercury", "letter", "B"),
        ("**C**", "letter", "C"),
        ("The answer is (D).", "letter", "D"),
        ("The correct answer is A.", "letter", "A"),
        ("Answer: B", "letter", "B"),
        ("A dog is not among the choices, so the answer is C", "letter", "C"),
        ("Mercury", "letter", None),
    ],
)
def test_the_final_answer_is_read(text: str, kind: str, answer: str | None) -> None:
    assert read_answer(text, kind) == answer


def test_without_anything_to_compare_with_the_score_is_only_recorded() -> None:
    verdict = judged([True] * 50 + [False] * 10)
    assert verdict.outcome is Outcome.SKIP
    assert "83% (72% to 91%)" in verdict.message


def test_a_score_of_a_guesser_tells_a_weak_model_from_a_damaged_one_only_with_a_baseline() -> None:
    assert judged([True] + [False] * 59).outcome is Outcome.INCONCLUSIVE


def test_a_score_surely_above_the_wish_passes_and_surely_below_fails() -> None:
    assert judged([True] * 59 + [False], at_least=0.85).outcome is Outcome.PASS
    assert judged([True] * 40 + [False] * 20, at_least=0.85).outcome is Outcome.FAIL


def test_a_score_near_the_wish_is_inconclusive_and_says_what_would_decide() -> None:
    verdict = judged([True] * 53 + [False] * 7, at_least=0.85)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "questions would decide" in verdict.message


def test_twelve_points_less_than_the_baseline_are_a_failure() -> None:
    before = [True] * 57 + [False] * 3
    after = [False] * 8 + [True] * 49 + [False, False, True]
    assert judged(after, before=before).outcome is Outcome.FAIL


def test_the_same_answers_as_in_the_baseline_pass() -> None:
    assert judged([True] * 57 + [False] * 3, before=[True] * 57 + [False] * 3, margin=0.06).outcome is Outcome.PASS


def test_a_few_other_answers_are_inconclusive_against_a_tight_margin() -> None:
    before = [True] * 52 + [False] * 8
    after = [False] * 4 + [True] * 50 + [False] * 6
    verdict = judged(after, before=before, margin=0.02)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "would decide" in verdict.message


def test_failed_requests_and_empty_answers_are_failures_and_counted() -> None:
    chosen = load_set("word-problems")
    answers = [
        Answer(path="/generate", status=503),
        Answer(path="/generate", status=200, text="", finish="stop"),
        *[Answer(path="/generate", status=200, text=f"The answer is {q.answer}.") for q in chosen.questions[2:]],
    ]
    verdict = judge(PROBE, Context(server=Server()), chosen, chosen.questions, answers).verdict
    assert verdict.outcome is Outcome.FAIL
    assert (verdict.figures["failed_requests"], verdict.figures["empty_answers"]) == (1, 1)
