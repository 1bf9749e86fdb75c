"""Flags as people type them against releases: what the parser refuses, what it silently mistakes, what it takes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from checks.before.flags import check_flags
from checks.engine.flag_schema import available, load
from checks.vocabulary import Finding, FlagValue, Severity

MODEL: dict[str, FlagValue] = {"model-path": "m"}
SEED: dict[str, FlagValue] = {
    "model-path": "nvidia/Qwen3.5-397B-A17B-NVFP4",
    "tp": "8",
    "trust-remote-code": True,
    "quantization": "modelopt_fp4",
    "speculative-algorithm": "NEXTN",
    "speculative-num-draft-tokens": "2",
    "speculative-eagle-topk": "1",
    "mamba-scheduler-strategy": "extra_buffer",
    "mem-fraction-static": "0.9",
}


@pytest.mark.parametrize("version", ["0.5.7", "0.5.9", "0.5.10", "0.5.13"])
def test_the_seed_launch_is_taken_where_its_names_exist(version: str) -> None:
    assert _shown(SEED, version) == [("flag-abbreviated", "info", "flag.tp")]


def test_the_seed_launch_warns_where_the_name_is_deprecated() -> None:
    assert ("flag-deprecated", "warning", "flag.mamba-scheduler-strategy") in _shown(SEED, "0.5.14")


@pytest.mark.parametrize("version", ["0.5.20", "0.5.23"])
def test_a_renamed_flag_is_refused_where_the_old_name_is_gone(version: str) -> None:
    finding = _only("flag-removed-or-renamed", SEED, version)
    assert finding.severity is Severity.ERROR
    assert "0.5.20" in finding.message
    assert finding.remedies[0].set == {"mamba-radix-cache-strategy": "extra_buffer"}
    assert finding.remedies[0].unset == ("mamba-scheduler-strategy",)


def test_a_flag_of_a_later_release_says_from_which_one_it_exists() -> None:
    finding = _only("flag-unknown-to-engine", {**MODEL, "mamba-radix-cache-strategy": "extra_buffer"}, "0.5.9")
    assert "exists only from 0.5.14 on" in finding.message
    assert "--mamba-scheduler-strategy" in finding.remedies[0].text


def test_a_typing_error_gets_a_suggestion() -> None:
    finding = _only("flag-unknown-to-engine", {**MODEL, "mem_fraction_static": "0.8"}, "0.5.9")
    assert finding.severity is Severity.ERROR
    assert finding.remedies[0].set == {"mem-fraction-static": "0.8"}


def test_a_flag_of_another_engine_can_only_be_left_out() -> None:
    finding = _only("flag-unknown-to-engine", {**MODEL, "swap-space-in-gigabytes": "4"}, "0.5.23")
    assert finding.remedies[0].unset == ("swap-space-in-gigabytes",)


@pytest.mark.parametrize(
    ("version", "flag", "wanted"),
    [
        ("0.5.13", "pp", "pp-size"),
        ("0.5.22", "cuda-graph-max-bs", "cuda-graph-max-bs-decode"),
        ("0.5.23", "cuda-graph-bs", "cuda-graph-bs-decode"),
    ],
)
def test_an_ambiguous_beginning_is_an_error_with_the_likely_name(version: str, flag: str, wanted: str) -> None:
    finding = _only("flag-abbreviation-ambiguous", {**MODEL, flag: "2"}, version)
    assert finding.severity is Severity.ERROR
    assert list(finding.remedies[0].set) == [wanted]


@pytest.mark.parametrize(
    ("flag", "value", "says"),
    [
        ("attention-backend", "flash_infer", "flashinfer"),
        ("tp-size", "eight", "a whole number"),
        ("mem-fraction-static", "90%", "a number"),
        ("json-model-override-args", True, "takes exactly one value"),
        ("tp-size", ["1", "2"], "takes exactly one value"),
        ("trust-remote-code", "yes", "is a switch"),
        ("cuda-graph-bs-decode", ["1", "two"], "a whole number"),
        ("cuda-graph-bs-decode", True, "at least one value"),
        ("extra-metric-labels", "{a: 1", "JSON"),
        ("max-total-tokens", "16 k", "16k or 1Mi"),
    ],
)
def test_a_value_argparse_refuses_is_an_error(flag: str, value: FlagValue, says: str) -> None:
    finding = _only("flag-value-not-a-choice", {**MODEL, flag: value}, "0.5.23")
    assert finding.severity is Severity.ERROR
    assert says in finding.message


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("max-total-tokens", "16k"),
        ("max-total-tokens", "1Mi"),
        ("log-requests-level", "3"),
        ("cuda-graph-bs-decode", ["1", "2"]),
        ("cuda-graph-bs-decode", "1"),
        ("lora-paths", ["a=b", "c"]),
        ("extra-metric-labels", '{"a": "1"}'),
        ("chunked-prefill-size", "-1"),
        ("no-enable-tf32-matmul", True),
    ],
)
def test_a_value_argparse_takes_gives_no_finding(flag: str, value: FlagValue) -> None:
    assert _shown({**MODEL, flag: value}, "0.5.23") == []


def test_a_wrong_parser_name_lists_what_this_release_has() -> None:
    finding = _only("flag-value-not-a-choice", {**MODEL, "tool-call-parser": "glm47"}, "0.5.3")
    assert "glm45" in finding.message
    assert {"tool-call-parser": "glm45"} in [dict(r.set) for r in finding.remedies]


def test_a_choice_that_differs_only_in_a_dash_is_the_only_suggestion() -> None:
    finding = _only("flag-value-not-a-choice", {**MODEL, "tool-call-parser": "gpt_oss"}, "0.5.9")
    assert [dict(r.set) for r in finding.remedies if r.concrete] == [{"tool-call-parser": "gpt-oss"}]


def test_a_false_switch_is_absent() -> None:
    assert _shown({**MODEL, "trust-remote-code": False, "no-such-flag": False}, "0.5.9") == []


@pytest.mark.parametrize("version", available())
def test_a_launch_without_a_model_misses_a_required_argument(version: str) -> None:
    assert _only("required-argument-missing", {"tp-size": "1"}, version).subject == "flag.model-path"


def test_a_config_file_may_hold_the_model() -> None:
    assert _shown({"config": "launch.yaml"}, "0.5.9") == []


def test_a_config_file_behind_an_equals_sign_is_not_read() -> None:
    found = check_flags({"config=launch.yaml": True}, {}, load("0.5.9"))
    assert [f.id for f in found] == ["config-file-rejected", "required-argument-missing"]
    assert found[0].remedies[0].set == {"config": "launch.yaml"}


def test_a_config_file_must_be_named_yaml() -> None:
    assert _only("config-file-rejected", {"config": "launch.json"}, "0.5.9").severity is Severity.ERROR


def test_two_spellings_with_different_values_are_an_error() -> None:
    finding = _only("flag-given-twice", {**MODEL, "tp-size": "4", "tensor-parallel-size": "8"}, "0.5.9")
    assert finding.severity is Severity.ERROR
    assert finding.remedies[0].unset == ("tp-size",)


def test_two_spellings_with_one_value_are_a_warning() -> None:
    finding = _only("flag-given-twice", {**MODEL, "tp-size": "8", "tensor-parallel-size": "8"}, "0.5.9")
    assert finding.severity is Severity.WARNING


def test_a_retired_switch_contradicts_the_value_it_stands_for() -> None:
    flags = {**MODEL, "disable-piecewise-cuda-graph": True, "cuda-graph-backend-prefill": "full"}
    assert _only("flag-given-twice", flags, "0.5.14").severity is Severity.ERROR


def test_a_switch_and_its_negation_contradict() -> None:
    flags = {**MODEL, "enable-tf32-matmul": True, "no-enable-tf32-matmul": True}
    assert _only("flag-given-twice", flags, "0.5.23").severity is Severity.ERROR


def test_a_flag_the_release_refuses_with_a_message_of_its_own_is_an_error() -> None:
    flags: dict[str, FlagValue] = {**MODEL, "enable-expert-distribution-metrics": True}
    finding = _only("flag-removed-or-renamed", flags, "0.5.18")
    assert finding.severity is Severity.ERROR
    assert "expert-balancedness-report-mode" in finding.message


def test_a_replaced_flag_takes_the_value_of_another_one() -> None:
    finding = _only("flag-deprecated", {**MODEL, "dp": "4", "enable-dp-attention": True}, "0.5.23")
    assert finding.remedies[0].set == {"attn-dp-size": "4"}
    assert finding.remedies[0].concrete


def test_a_replacement_without_that_other_value_is_left_open() -> None:
    finding = _only("flag-deprecated", {**MODEL, "enable-dp-attention": True}, "0.5.23")
    assert not finding.remedies[0].concrete


def test_old_values_are_translated() -> None:
    finding = _only("flag-removed-or-renamed", {**MODEL, "nsa-prefill-cp-mode": "round-robin-split"}, "0.5.20")
    assert finding.remedies[0].set == {"cp-strategy": "interleave"}


def test_a_replacement_the_release_lost_again_is_not_offered() -> None:
    finding = _only("flag-removed-or-renamed", {**MODEL, "enforce-piecewise-cuda-graph": True}, "0.5.23")
    assert finding.remedies[0].set == {}


def test_a_replacement_may_be_a_variable() -> None:
    finding = _only("flag-removed-or-renamed", {**MODEL, "enable-beta-spec": True}, "0.5.9")
    assert finding.remedies[0].env == {"SGLANG_ENABLE_SPEC_V2": "1"}


def test_an_inexact_schema_only_warns_of_a_flag_that_other_releases_have() -> None:
    finding = _only("flag-removed-or-renamed", SEED, "0.5.24.dev3+gabcdef0")
    assert finding.severity is Severity.WARNING


def test_an_inexact_schema_still_refuses_what_no_release_has() -> None:
    finding = _only("flag-unknown-to-engine", {**MODEL, "mem_fraction_static": "0.8"}, "0.5.24.dev3")
    assert finding.severity is Severity.ERROR


def test_variables_are_judged_together_with_the_flags() -> None:
    found = check_flags({**MODEL, "no-such-flag": "1"}, {"SGLANG_ENABLE_SPEC_V2": "1"}, load("0.5.23"))
    assert sorted(f.subject for f in found) == ["env.SGLANG_ENABLE_SPEC_V2", "flag.no-such-flag"]


@pytest.mark.parametrize("version", available())
def test_every_flag_with_its_own_default_is_taken(version: str) -> None:
    schema = load(version)
    for flag in schema.flags:
        if flag.deprecated or flag.is_switch or not isinstance(flag.default, str | int | float):
            continue
        # a few releases declare defaults that their own parser would refuse on the command line
        if (flag.type == "int" and isinstance(flag.default, float)) or flag.default not in (
            flag.choices or [flag.default]
        ):
            continue
        found = check_flags({**MODEL, flag.names[0]: str(flag.default)}, {}, schema)
        assert [f.message for f in found if f.severity is Severity.ERROR] == []


def _shown(flags: Mapping[str, FlagValue], version: str) -> list[tuple[str, str, str]]:
    return [(f.id, str(f.severity), f.subject) for f in check_flags(flags, {}, load(version))]


def _only(slug: str, flags: Mapping[str, FlagValue], version: str) -> Finding:
    found = [f for f in check_flags(flags, {}, load(version)) if f.id == slug]
    assert len(found) == 1
    return found[0]
