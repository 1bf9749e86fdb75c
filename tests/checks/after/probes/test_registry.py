"""The bundled probes are well-formed, and their scripts judge what they are told as stated."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.after.probes.context import Context, Server
from checks.after.probes.deep import running_requests, sweep_sizes
from checks.after.probes.exchange import Answer
from checks.after.probes.expectations import parse_expect
from checks.after.probes.features import schema_problem
from checks.after.probes.fingerprint import kl, read_rows
from checks.after.probes.registry import KINDS, load, of_suite, probes
from checks.after.probes.requests import agreement
from checks.after.probes.texts import code_word, long_text, with_needle
from checks.catalog.yaml_reader import YamlError
from checks.vocabulary import Outcome
from tests.support.driving import drive, said

# --- the bundled entries


def test_each_kind_of_the_table_has_an_entry_and_each_entry_a_kind() -> None:
    assert {probe.kind for probe in probes()} == set(KINDS)


def test_the_suites_grow() -> None:
    smoke, standard, full = ({probe.id for probe in of_suite(name)} for name in ("smoke", "standard", "full"))
    assert smoke < standard < full


def test_smoke_spends_few_tokens() -> None:
    tokens = sum(int(probe.params.get("max_tokens", 0)) * 2 for probe in of_suite("smoke"))
    assert tokens <= 300


@pytest.mark.parametrize("probe", probes(), ids=lambda probe: probe.id)
def test_an_entry_says_what_and_why(probe: object) -> None:
    assert getattr(probe, "title", "")
    assert len(getattr(probe, "why", "")) > 40


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: t\nwhy: w\nkind: nonsense\nlevel: ready\nsuites: [smoke]\n", "nonsense"),
        ("title: t\nwhy: w\nkind: health\nlevel: fine\nsuites: [smoke]\n", "fine"),
        ("title: t\nwhy: w\nkind: health\nlevel: ready\nsuite: [smoke]\n", "suites"),
    ],
)
def test_a_malformed_entry_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(YamlError, match=message) as error:
        load(path)
    assert "bad.yaml:" in str(error.value)


# --- single scripts


def test_a_thinking_model_that_ran_out_of_tokens_is_asked_again_with_more() -> None:
    thought = said("", reasoning="The user asks for the capital of France, which", finish="length")
    verdict, asked = drive("known-answer", [[thought, thought], [said("Paris"), said("Seven.")]])
    assert verdict.outcome is Outcome.PASS
    assert asked[-1].payload is not None
    assert asked[-1].payload["max_tokens"] == 1024


def test_a_base_model_without_template_is_asked_in_completion_form() -> None:
    refused = Answer(path="/v1/chat/completions", status=400, body={"message": "tokenizer.chat_template is not set"})
    verdict, asked = drive("known-answer", [[refused, refused], [said(" Paris"), said(" 7 days")]])
    assert verdict.outcome is Outcome.PASS
    assert asked[-1].path == "/generate"


def test_a_weak_model_gets_its_own_questions_or_none() -> None:
    own = Context(server=Server(), expect=parse_expect({"known_answer": [{"prompt": "1, 2, 3,", "accept": ["4"]}]}))
    assert drive("known-answer", [[said("4, 5")]], own)[0].outcome is Outcome.PASS
    none = Context(server=Server(), expect=parse_expect({"known_answer": False}))
    assert drive("known-answer", [], none)[0].outcome is Outcome.SKIP


def test_an_accepted_word_must_stand_alone() -> None:
    verdict, _ = drive("known-answer", [[said("Parisian food"), said("17 days")]])
    assert verdict.outcome is Outcome.FAIL


def test_greedy_answers_may_part_at_a_near_tie_only() -> None:
    one = said("a b c", ids=(1, 2, 3), logprobs=(-0.1, -0.7, -0.2))
    tie = said("a x c", ids=(1, 9, 3), logprobs=(-0.1, -0.72, -0.2))
    sure = said("a x c", ids=(1, 9, 3), logprobs=(-0.1, -0.01, -0.2))
    assert agreement(one, tie).near_tie
    assert not agreement(one, sure).close
    assert drive("greedy-repeat", [[one, tie]])[0].outcome is Outcome.PASS
    assert drive("greedy-repeat", [[one, sure]])[0].outcome is Outcome.FAIL


def test_one_answer_that_ends_earlier_is_not_equal() -> None:
    assert not agreement(said("a", ids=(1,), logprobs=(-0.1,)), said("a b", ids=(1, 2), logprobs=(-0.1, -0.1))).equal


@pytest.mark.parametrize(
    ("shown", "finish", "outcome"),
    [
        ("May, June, July, ", "stop", Outcome.PASS),
        ("May, June, July, August", "length", Outcome.FAIL),
        ("May, June, July, ", "length", Outcome.FAIL),
        ("of course", "stop", Outcome.INCONCLUSIVE),
    ],
)
def test_a_stop_string_is_taken_from_the_models_own_words(shown: str, finish: str, outcome: Outcome) -> None:
    free = said("May, June, July, August", finish="length", completion_tokens=12)
    verdict, asked = drive("limits", [[free], [said(shown, finish=finish)]])
    assert asked[1].payload is not None
    assert asked[1].payload["sampling_params"]["stop"] == ["August"]
    assert verdict.outcome is outcome


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"city": "Paris", "letters": 5}, ""),
        ({"city": "Paris"}, "the value lacks letters"),
        ({"city": "Paris", "letters": "5"}, "letters is no integer"),
        ({"city": "Paris", "letters": True}, "letters is no integer"),
        (["Paris"], "the value is no object"),
    ],
)
def test_a_value_is_compared_with_its_schema(value: object, problem: str) -> None:
    schema = next(probe for probe in probes() if probe.id == "json-schema").params["schema"]
    assert schema_problem(value, schema) == problem


def test_batch_sizes_cover_the_captured_ones_and_the_gaps_between() -> None:
    assert sweep_sizes((1, 2, 4, 8), 8, 14) == (1, 2, 3, 4, 5, 8)
    many = sweep_sizes(tuple(range(1, 65)), 64, 14)
    assert len(many) <= 14
    assert many[0] == 1
    assert many[-1] == 64


def test_running_requests_are_read_in_the_old_and_the_new_form() -> None:
    assert running_requests(Answer(path="", status=200, body={"loads": [{"num_running_reqs": 2}]})) == 2
    assert running_requests(Answer(path="", status=200, body=[{"dp_rank": 0, "num_reqs": 1}, {"num_reqs": 2}])) == 3
    assert running_requests(Answer(path="", status=200, body={"load": 0})) is None
    assert running_requests(Answer(path="", status=404)) is None


def test_divergence_is_zero_for_equal_rows_and_grows_with_the_difference() -> None:
    row = {1: -0.2, 2: -2.0, 3: -4.0}
    assert kl(row, row) == pytest.approx(0, abs=1e-12)
    assert kl(row, {1: -0.25, 2: -1.9, 3: -3.9}) < 0.01
    assert kl(row, {1: -1.5, 2: -0.4, 3: -4.0}) > 0.5
    assert kl(row, {7: -0.2, 8: -2.0}) > 0


def test_rows_without_numbers_are_left_out() -> None:
    assert read_rows([None, [[-0.1, 5, None], [None, 6, None]], []]) == [{5: -0.1}]


def test_a_long_text_is_about_as_long_as_asked_and_always_the_same() -> None:
    text = long_text(1000, 1)
    assert text == long_text(1000, 1) != long_text(1000, 2)
    assert 0.9 < len(text) / 4000 < 1.2


def test_a_needle_stands_where_it_should() -> None:
    text = with_needle(1000, 0.5, code_word(3), 1)
    assert 0.35 < text.find(code_word(3)) / len(text) < 0.65
