"""The settings of a launch under every name that the engine uses for them."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine.flag_schema import load
from checks.suspects.settings import NOT_SET, Setting, implied, of_flag, settings_of

SCHEMA = load("0.5.11")


def setting(name: str, value: Any) -> Setting:
    return of_flag(name, value, SCHEMA)


def test_an_option_has_the_names_of_its_attribute_and_spellings() -> None:
    tp = setting("tp-size", "4")
    assert "tp_size" in tp.attributes
    assert {"--tp-size", "--tensor-parallel-size", "tp_size"} <= tp.names
    assert {"tensor", "parallel"} <= tp.words | tp.related


def test_words_that_every_setting_shares_do_not_count() -> None:
    assert setting("attention-backend", "flashmla").words == {"attention"}


@pytest.mark.parametrize(
    ("name", "value", "chooses"),
    [
        ("attention-backend", "flashmla", True),
        ("attention-backend", "banana", False),
        ("tp-size", "4", False),
        ("no-such-option", "x", False),
    ],
)
def test_a_value_is_a_choice_only_if_the_release_lists_it(name: str, value: str, chooses: bool) -> None:
    assert setting(name, value).chooses is chooses


def test_the_keys_of_an_override_are_names_in_the_engine() -> None:
    assert "num_hidden_layers" in setting("json-model-override-args", '{"num_hidden_layers": 2}').value_words


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("/data/model/", "/data/model"),
        ("lora0=/data/adapter", "/data/adapter"),
        ("org/name", "org/name"),
        ("flashmla", ""),
        ("~/x", "~/x"),
    ],
)
def test_the_path_in_a_value_is_known(value: str, path: str) -> None:
    assert setting("lora-paths", value).path == path


def test_options_variables_and_the_model_are_settings_and_switched_off_options_are_not() -> None:
    facts = {
        "flag.tp-size": "4",
        "flag.enable-lora": False,
        "env.CUDA_VISIBLE_DEVICES": "7",
        "model.architectures": ["LlamaForCausalLM"],
        "model.quant_method": "awq",
        "host.sm": 90,
        "flag.dtype": None,
    }
    names = [item.fact for item in settings_of(facts, SCHEMA)]
    assert names == ["env.CUDA_VISIBLE_DEVICES", "flag.tp-size", "model.architectures", "model.quant_method"]


def test_a_library_variable_is_related_to_what_the_library_calls_it() -> None:
    visible = next(settings_of({"env.CUDA_VISIBLE_DEVICES": "7"}, SCHEMA).__iter__())
    assert "ordinal" in visible.related


@pytest.mark.parametrize(
    "message", ["please pass the argument `trust_remote_code=True`", "set --trust-remote-code", "--trust-remote-code=1"]
)
def test_an_option_that_the_message_names_and_the_launch_lacks_is_a_setting(message: str) -> None:
    [item] = implied(message, {"flag.tp-size": "4"}, SCHEMA)
    assert (item.fact, item.value, item.given) == ("flag.trust-remote-code", NOT_SET, False)


@pytest.mark.parametrize("message", ["set --trust-remote-code", "--frobnicate-all", "a_b and no_option", "--port", ""])
def test_an_option_of_the_launch_or_of_no_release_is_not_implied(message: str) -> None:
    assert list(implied(message, {"flag.trust-remote-code": True}, SCHEMA)) == []
