"""Parsers and models that do not fit, as SmolLM2-135M showed them on the real engine (0.5.23, CPU)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checks.after.probes.accuracy import load_set
from checks.after.probes.context import Context, Server
from checks.after.probes.exchange import Answer
from checks.after.probes.features import schema_problem
from checks.after.probes.registry import probes
from checks.vocabulary import Outcome
from tests.support.driving import drive, said

TOOLS = Context(server=Server(model="smol", running=8, tool_parser="qwen25"))
THINKS = Context(server=Server(model="smol", running=8, reasoning_parser="deepseek-r1"))
PROSE = said("The weather in Paris is currently a mix of warm and cool.", finish="length")
FORCED = '[{"type": "text", "content": "The weather in Paris is quite...interesting."}]'


def called(arguments: str, finish: str = "tool_calls") -> Answer:
    call = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    return Answer(path="/v1/chat/completions", status=200, finish=finish, tool_calls=(call,))


@pytest.mark.parametrize(
    ("forced", "said_of_it"),
    [
        (PROSE, "the model does not call the tool"),
        (called('{"city": "Paris"}'), "the model calls the tool only when forced to: "),
        (called(FORCED), "and then incorrectly (the arguments lack `city`"),
    ],
)
def test_a_model_that_does_not_call_by_itself_decides_nothing_about_the_parser(forced: Answer, said_of_it: str) -> None:
    verdict, asked = drive("tool-call", [[PROSE, PROSE], [forced]], TOOLS)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert said_of_it in verdict.message
    assert "does not show whether the tool call parser qwen25 fits" in verdict.message
    assert (asked[-1].payload or {})["tool_choice"] == "required"


def test_a_forced_call_that_is_left_in_the_text_is_the_parser_s_fault_all_the_same() -> None:
    left = said('<tool_call>{"name": "get_weather"}</tool_call>')
    verdict, _ = drive("tool-call", [[PROSE, PROSE], [left]], TOOLS)
    assert (verdict.outcome, "left in the text" in verdict.message) == (Outcome.FAIL, True)


def test_a_call_that_was_cut_at_the_token_limit_is_not_called_broken() -> None:
    cut = called('{"city": "Par', finish="length")
    verdict, _ = drive("tool-call", [[cut, cut]], TOOLS)
    assert (verdict.outcome, "cut off at the token limit" in verdict.message) == (Outcome.INCONCLUSIVE, True)


def thought(reasoning: str, text: str, finish: str = "stop") -> Answer:
    return said(text, reasoning=reasoning, finish=finish)


def test_an_answer_that_is_taken_for_thoughts_names_the_parser() -> None:
    plain, eaten = said("17 + 25 = 42."), thought("17 + 25 = 42.", "")
    verdict, _ = drive("reasoning", [[plain, plain], [eaten, eaten]], THINKS)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.message.startswith("the reasoning parser deepseek-r1 treats the whole answer as reasoning")


def test_thoughts_without_an_answer_are_no_proof_that_the_two_are_separated() -> None:
    plain, endless = said("42."), thought("First I add the tens, then the ones, and then I check it.", "", "length")
    verdict, _ = drive("reasoning", [[plain, plain], [endless, endless]], THINKS)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "tokens on reasoning and gave no answer" in verdict.message


@pytest.mark.parametrize(
    ("answer", "outcome", "message"),
    [
        (said(json.dumps({"city": "Paris", "letters": 5})), Outcome.PASS, "JSON that matches the schema"),
        (thought('```json\n{"name": "Paris"', "", "length"), Outcome.INCONCLUSIVE, "in reasoning_content"),
        (said('{"city": "Paris and so on', finish="length"), Outcome.INCONCLUSIVE, "incomplete after 128 tokens"),
        (
            said('```json\n{"name": "Paris"', finish="length"),
            Outcome.FAIL,
            "not valid JSON although a schema was requested",
        ),
    ],
)
def test_output_under_a_schema_is_judged_by_where_it_went(answer: Answer, outcome: Outcome, message: str) -> None:
    verdict, _ = drive("json-schema", [[answer]])
    assert (verdict.outcome, message in verdict.message) == (outcome, True), verdict


@pytest.mark.parametrize("score", [True, False])
def test_accuracy_asks_everything_at_once(score: bool) -> None:
    # one question sent ahead would double the time of a server that takes all of them together
    questions = load_set("general-knowledge").questions
    right: list[Any] = [said(f"The answer is {item.answer if score else 'E'}.") for item in questions]
    verdict, asked = drive("accuracy-general-knowledge", [right])
    assert len(asked) == len(questions)
    assert verdict.figures["score"] == float(score)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"city": "Paris", "letters": 5}, ""),
        ({"city": "Paris"}, "the value lacks letters"),
        ({"city": "Paris", "letters": "5"}, "letters is not of type integer"),
        ({"city": "Paris", "letters": True}, "letters is not of type integer"),
        (["Paris"], "the value is not of type object"),
    ],
)
def test_a_value_is_compared_with_its_schema(value: object, problem: str) -> None:
    schema = next(probe for probe in probes() if probe.id == "json-schema").params["schema"]
    assert schema_problem(value, schema) == problem
