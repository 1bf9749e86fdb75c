"""The nearest settings that avoid a suspect's code and that the release accepts."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine.flag_schema import load
from checks.suspects.experiments import experiments
from checks.suspects.settings import Setting, of_flag
from checks.vocabulary import Remedy

SCHEMA = load("0.5.11")


def tried(name: str, value: Any, *refused: str) -> list[Remedy]:
    return list(experiments(of_flag(name, value, SCHEMA), SCHEMA, lambda _, choice: choice in refused))


def test_an_option_with_choices_is_left_out_or_given_a_portable_choice() -> None:
    assert tried("attention-backend", "flashmla") == [
        Remedy(unset=("attention-backend",)),
        Remedy(set={"attention-backend": "triton"}),
    ]


def test_a_choice_that_the_check_refuses_is_not_proposed() -> None:
    assert tried("attention-backend", "flashmla", "triton")[1].set == {"attention-backend": "torch_native"}


def test_a_choice_is_not_proposed_instead_of_itself() -> None:
    assert all("triton" not in remedy.set.values() for remedy in tried("attention-backend", "triton"))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("tp-size", "4", Remedy(set={"tp-size": "1"})),
        ("chat-template", "/data/t.jinja", Remedy(inspect="ls -l /data/t.jinja")),
        ("enable-lora", True, Remedy(unset=("enable-lora",))),
    ],
)
def test_the_first_experiment_fits_the_kind_of_option(name: str, value: Any, expected: Remedy) -> None:
    assert tried(name, value)[0] == expected


def test_the_model_is_never_left_out() -> None:
    assert tried("model-path", "org/name") == []


def test_a_variable_is_unset_and_a_property_of_the_model_cannot_change() -> None:
    variable = Setting(fact="env.NAME", value="1", attributes=("$NAME",))
    architecture = Setting(fact="model.architectures", value="X", attributes=())
    assert experiments(variable, SCHEMA, lambda *_: False) == (Remedy(unset_env=("NAME",)),)
    assert experiments(architecture, SCHEMA, lambda *_: False) == ()


def test_an_option_that_the_launch_lacks_is_set() -> None:
    switch = Setting(fact="flag.trust-remote-code", value="(not set)", attributes=(), given=False)
    sized = Setting(fact="flag.page-size", value="(not set)", attributes=(), given=False)
    assert experiments(switch, SCHEMA, lambda *_: False) == (Remedy(set={"trust-remote-code": True}),)
    assert experiments(sized, SCHEMA, lambda *_: False) == (Remedy(set={"page-size": "<value>"}, concrete=False),)
