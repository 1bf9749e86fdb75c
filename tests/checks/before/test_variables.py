"""Variables of the engine against a release: unknown, removed, to come, deprecated, unreadable; no others."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from checks.before.variables import OWN_PREFIX, check_environment
from checks.engine.flag_schema import Environment, load
from checks.vocabulary import Finding, Severity
from launcher.engine_cpu.plugin import SWITCH

# A release that is known, with variables of our own.
SCHEMA = replace(
    load("0.5.9"),
    environment=Environment(
        types={
            "SGLANG_SWITCH": "EnvBool",
            "SGLANG_COUNT": "EnvInt",
            "SGLANG_SHARE": "EnvFloat",
            "SGLANG_NAME": "EnvStr",
            "SGLANG_ALIAS": "EnvBoolWithAlias",
            "SGLANG_COUNT_ALIAS": "EnvIntWithAlias",
        },
        mentioned=frozenset({"SGLANG_MENTIONED", "SGL_MENTIONED"}),
        deprecated={
            "SGLANG_OLD": {"replacement": "SGLANG_NAME", "note": "It moved."},
            "SGLANG_FLAGGED": {"replacement": None, "note": "Use '--page-size' instead."},
            "SGLANG_GONE_SOON": {"replacement": None, "note": "It has no effect."},
            "SGLANG_ELSEWHERE": {"replacement": "NCCL_X", "note": ""},
        },
        sgl_prefix_rewritten=True,
    ),
)


def check(name: str, value: str = "1") -> list[Finding]:
    return list(check_environment({name: value}, SCHEMA))


def only(name: str, value: str = "1") -> Finding:
    [finding] = check(name, value)
    assert (finding.severity, finding.subject) == (Severity.WARNING, f"env.{name}")
    return finding


@pytest.mark.parametrize(
    ("version", "name", "value", "slug", "message"),
    [
        ("0.5.23", "SGLANG_ENABLE_SPEC_V2", "1", "env-variable-removed", "was removed in 0.5."),
        ("0.5.3", "SGLANG_WARMUP_TIMEOUT", "600", "env-variable-unknown-to-engine", "exists only from 0.5."),
        ("0.5.9", "SGLANG_ENABLE_SPEC_V3", "1", "env-variable-unknown-to-engine", "no known release reads it"),
        ("0.5.9", "SGL_ENABLE_JIT_DEEPGEMM", "1", "env-variable-deprecated", "use SGLANG_ENABLE_JIT_DEEPGEMM"),
        ("0.5.9", "SGLANG_GC_LOG", "1", "env-variable-deprecated", "is deprecated in SGLang 0.5.9"),
        ("0.5.9", "SGLANG_ENABLE_SPEC_V2", "on", "env-value-not-read", "is not true or false"),
    ],
)
def test_a_variable_that_a_release_does_not_heed_is_a_warning(
    version: str, name: str, value: str, slug: str, message: str
) -> None:
    [finding] = check_environment({name: value}, load(version))
    assert (finding.id, finding.severity, finding.subject) == (slug, Severity.WARNING, f"env.{name}")
    assert message.replace("reads it", f"reads {name}") in finding.message


@pytest.mark.parametrize("name", ["NCCL_DEBUG", "CUDA_VISIBLE_DEVICES", "MY_SGLANG_X", "sglang_x", "SGLANG"])
def test_variables_of_others_are_not_judged(name: str) -> None:
    assert check(name) == []


@pytest.mark.parametrize("name", ["SGLANG_SWITCH", "SGLANG_COUNT", "SGLANG_MENTIONED", "SGL_MENTIONED"])
def test_a_known_variable_with_a_readable_value_is_fine(name: str) -> None:
    assert check(name) == []


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("SGLANG_SWITCH", "on", "true or false"),
        ("SGLANG_SWITCH", "", "true or false"),
        ("SGLANG_ALIAS", "2", "true or false"),
        ("SGLANG_COUNT", "many", "a whole number"),
        ("SGLANG_COUNT", "1.5", "a whole number"),
        ("SGLANG_COUNT", "16k", "a whole number"),
        ("SGLANG_COUNT", "--5", "a whole number"),
        ("SGLANG_COUNT", "²", "a whole number"),
        ("SGLANG_COUNT_ALIAS", "many", "a whole number"),
        ("SGLANG_SHARE", "half", "a number"),
    ],
)
def test_a_value_that_the_engine_cannot_read_is_a_warning(name: str, value: str, wanted: str) -> None:
    finding = only(name, value)
    assert finding.id == "env-value-not-read"
    assert finding.message == f"{name}={value} is not {wanted}: the engine warns once and uses its default"
    [remedy] = finding.remedies
    assert (dict(remedy.env), remedy.concrete) == ({name: "<value>"}, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("SGLANG_SWITCH", word) for word in ("true", "True", "1", "yes", "y", "FALSE", "0", "no", "n")),
        ("SGLANG_ALIAS", "true"),
        ("SGLANG_COUNT", " -7 "),
        ("SGLANG_SHARE", "0.5"),
        ("SGLANG_SHARE", "2"),
        ("SGLANG_NAME", "anything"),
        ("SGLANG_MENTIONED", "anything"),
    ],
)
def test_a_value_that_the_engine_reads_is_fine(name: str, value: str) -> None:
    assert check(name, value) == []


def test_a_misspelt_variable_gets_the_likely_name_before_the_advice_to_leave_it_out() -> None:
    likely, leave = only("SGLANG_SWICTH", "0").remedies
    assert (dict(likely.env), likely.unset_env) == ({"SGLANG_SWITCH": "0"}, ("SGLANG_SWICTH",))
    assert (dict(leave.env), leave.unset_env) == ({}, ("SGLANG_SWICTH",))
    assert len(only("SGLANG_NOTHING_LIKE_IT").remedies) == 1


def test_a_variable_of_another_release_gets_no_look_alike() -> None:
    found = list(check_environment({"SGLANG_ENABLE_SPEC_V2": "1"}, load("0.5.23")))
    assert [dict(remedy.env) for remedy in found[0].remedies] == [{}]


def test_an_unrecorded_release_takes_a_variable_that_went_for_removed() -> None:
    newer = replace(load("0.5.23"), version="0.9.0")
    assert [f.id for f in check_environment({"SGLANG_ENABLE_SPEC_V2": "1"}, newer)] == ["env-variable-removed"]


@pytest.mark.parametrize(
    ("name", "env", "concrete", "words"),
    [
        ("SGLANG_OLD", {"SGLANG_NAME": "7"}, True, "Use SGLANG_NAME."),
        ("SGL_COUNT", {"SGLANG_COUNT": "7"}, True, "Use SGLANG_COUNT."),
        ("SGLANG_FLAGGED", {}, False, "Use '--page-size' instead."),
        ("SGLANG_GONE_SOON", {}, True, "Remove SGLANG_GONE_SOON. It has no effect."),
        ("SGLANG_ELSEWHERE", {}, True, "Remove SGLANG_ELSEWHERE."),
    ],
)
def test_a_retired_variable_names_what_took_its_place(
    name: str, env: dict[str, str], concrete: bool, words: str
) -> None:
    finding = only(name, "7")
    assert finding.id == "env-variable-deprecated"
    [remedy] = finding.remedies
    assert (dict(remedy.env), remedy.unset_env, remedy.concrete, remedy.text) == (env, (name,), concrete, words)


def test_the_switch_of_our_own_platform_plug_in_is_not_taken_for_an_unknown_variable() -> None:
    assert SWITCH.startswith(OWN_PREFIX) and check(SWITCH) == []
