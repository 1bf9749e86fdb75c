"""A remedy fits the launch: nothing overrules it, numbers are concrete where they can be, no name is left open."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine.flag_schema import load
from checks.engine.tailoring import is_empty, tailored
from checks.vocabulary import FlagValue, Remedy

SCHEMA = load("0.5.12")


def fitted(remedy: Remedy, resolved: dict[str, Any] | None = None, **flags: Any) -> Remedy:
    facts = {f"flag.{name.replace('_', '-')}": value for name, value in flags.items()}
    return tailored(remedy, facts, SCHEMA, resolved or {})


@pytest.mark.parametrize(
    ("name", "wanted", "now", "value"),
    [
        ("mem-fraction-static", "<smaller>", "0.88", "0.83"),
        ("mem-fraction-static", "<larger>", "0.85", "0.9"),
        ("mem-fraction-static", "<larger>", "0.96", "0.97"),
        ("chunked-prefill-size", "<smaller>", "8192", "4096"),
        ("max-running-requests", "<smaller>", "1", "<smaller>"),
        ("max-running-requests", "<smaller>", "many", "<smaller>"),
        ("tp-size", "<larger>", "4", "<larger>"),
        ("mem-fraction-static", "0.5", "0.88", "0.5"),
    ],
)
def test_a_number_is_given_where_arithmetic_can_give_it(name: str, wanted: str, now: str, value: FlagValue) -> None:
    remedy = Remedy(set={name: wanted}, concrete=False)
    result = fitted(remedy, **{name: now})
    assert result.set == {name: value}
    assert result.concrete is (value != wanted)
    assert (f"is now {now}" in result.text) is (value != wanted)


def test_what_the_engine_chose_itself_counts_as_the_value_now() -> None:
    assert fitted(Remedy(set={"mem-fraction-static": "<smaller>"}), {"mem_fraction_static": 0.8}).set == {
        "mem-fraction-static": "0.75"
    }


def test_a_remedy_with_a_further_open_value_stays_a_template() -> None:
    remedy = Remedy(set={"mem-fraction-static": "<smaller>", "tp-size": "<larger>"}, concrete=False)
    assert not fitted(remedy, mem_fraction_static="0.8", tp_size="2").concrete


def test_an_option_that_overrules_the_remedy_is_removed_with_it() -> None:
    remedy = Remedy(set={"disable-piecewise-cuda-graph": True})
    assert fitted(remedy, enforce_piecewise_cuda_graph=True).unset == ("enforce-piecewise-cuda-graph",)
    assert fitted(remedy).unset == ()


def test_no_name_is_left_open() -> None:
    result = fitted(Remedy(text="Use a value for {flag} other than {value}.", unset=("{flag}",), set={"{flag}": "1"}))
    assert (result.unset, dict(result.set)) == ((), {})
    assert result.text == "Use a value for the option other than the value."


def test_a_remedy_without_anything_to_do_or_to_say_is_empty() -> None:
    assert is_empty(Remedy())
    assert not is_empty(Remedy(text="Ask."))
    assert not is_empty(Remedy(unset=("x",)))
