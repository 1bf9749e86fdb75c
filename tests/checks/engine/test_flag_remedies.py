"""What a release has in place of a flag: a rename, a replacement with values filled in, or nothing at all."""

from __future__ import annotations

import pytest

from checks.engine.flag_remedies import leave_out, look_alikes, remedies_for
from checks.engine.flag_schema import load
from checks.vocabulary import FlagValue


@pytest.mark.parametrize(
    ("version", "name", "value", "wanted"),
    [
        ("0.5.20", "mamba-scheduler-strategy", "extra_buffer", {"mamba-radix-cache-strategy": "extra_buffer"}),
        ("0.5.9", "mamba-radix-cache-strategy", "extra_buffer", {"mamba-scheduler-strategy": "extra_buffer"}),
        ("0.5.20", "nsa-prefill-cp-mode", "round-robin-split", {"cp-strategy": "interleave"}),
    ],
)
def test_a_flag_is_set_under_the_name_and_value_of_the_release(
    version: str, name: str, value: FlagValue, wanted: dict[str, FlagValue]
) -> None:
    [remedy] = remedies_for(name, value, {name: value}, load(version))
    assert (dict(remedy.set), remedy.unset, remedy.concrete) == (wanted, (name,), True)


@pytest.mark.parametrize(("others", "value", "concrete"), [({"dp": "4"}, "4", True), ({}, "<dp-size>", False)])
def test_a_replacement_takes_the_value_of_another_flag_or_stays_open(
    others: dict[str, FlagValue], value: str, concrete: bool
) -> None:
    flags: dict[str, FlagValue] = {"enable-dp-attention": True, **others}
    [remedy] = remedies_for("enable-dp-attention", True, flags, load("0.5.23"))
    assert (dict(remedy.set), remedy.concrete) == ({"attn-dp-size": value}, concrete)
    assert f"--attn-dp-size {value}" in remedy.text


def test_a_variable_may_take_the_place_of_a_flag() -> None:
    [remedy] = remedies_for("enable-beta-spec", True, {}, load("0.5.9"))
    assert dict(remedy.env) == {"SGLANG_ENABLE_SPEC_V2": "1"}
    assert remedy.text.startswith("Use SGLANG_ENABLE_SPEC_V2=1 instead.")


def test_where_the_release_lost_the_replacement_too_the_flag_is_left_out() -> None:
    [remedy] = remedies_for("enforce-piecewise-cuda-graph", True, {}, load("0.5.23"))
    assert (dict(remedy.set), remedy.unset) == ({}, ("enforce-piecewise-cuda-graph",))
    assert remedy.text.startswith("Remove --enforce-piecewise-cuda-graph.")


@pytest.mark.parametrize("name", ["tp-size", "no-such-flag"])
def test_nothing_is_advised_where_the_release_takes_the_name_or_nobody_knows_it(name: str) -> None:
    assert remedies_for(name, "1", {}, load("0.5.9")) == ()


def test_look_alikes_take_over_the_value() -> None:
    first = look_alikes("mem_fraction_static", "0.8", load("0.5.9"))[0]
    assert (dict(first.set), first.unset, first.text) == (
        {"mem-fraction-static": "0.8"}, ("mem_fraction_static",), "Did you mean --mem-fraction-static?",
    )  # fmt: skip
    assert look_alikes("swap-space-in-gigabytes", "4", load("0.5.9")) == ()


def test_leaving_out_says_why() -> None:
    [remedy] = leave_out("x", "It has no effect.")
    assert (remedy.text, remedy.unset) == ("Remove --x. It has no effect.", ("x",))
    assert leave_out("x")[0].text == "Remove --x."
