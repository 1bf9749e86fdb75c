"""A caller's facts take precedence over the log's; the release of an argument list; flags that are not defaults."""

from __future__ import annotations

from typing import Any

import pytest

from checks.during.log.server_args import LogFacts
from checks.during.log_facts import merge, release_of
from checks.engine.flag_schema import load

LOG = LogFacts(
    flags={"tp-size": "8", "page-size": "64"},
    env={"SGLANG_A": "1", "NCCL_DEBUG": "INFO"},
    engine="0.5.9",
    gpu={"name": "NVIDIA H100 80GB HBM3", "count": 8},
    model={"name": "Qwen3-8B", "architectures": ["Qwen3ForCausalLM"]},
    observed={"kind": "nan-output"},
)


def merged(
    known: dict[str, Any] | None = None, log: LogFacts = LOG, engine: str = "", phase: str = ""
) -> dict[str, Any]:
    return dict(merge(log, known or {}, engine, phase))


def test_a_log_speaks_where_the_caller_is_silent() -> None:
    facts = merged(phase="weights")
    assert facts["engine.version"] == "0.5.9"
    assert (facts["flag.tp-size"], facts["env.SGLANG_A"], facts["host.gpu_count"]) == ("8", "1", 8)
    assert (facts["model.name"], facts["host.sm"], facts["observed.kind"]) == ("Qwen3-8B", 90, "nan-output")
    assert facts["log.phase"] == "weights"


@pytest.mark.parametrize(
    ("known", "name", "value"),
    [
        ({"engine_version": "0.5.14"}, "engine.version", "0.5.14"),
        ({"flags": {"tp-size": "4"}}, "flag.tp-size", "4"),
        ({"flags": {"--tp_size": "4"}}, "flag.tp-size", "4"),
        ({"env": {"SGLANG_A": "0"}}, "env.SGLANG_A", "0"),
        ({"gpu": {"name": "NVIDIA B200"}}, "host.gpu_name", "NVIDIA B200"),
        ({"gpu": "NVIDIA B200"}, "host.gpu_name", "NVIDIA B200"),
        ({"model": "GLM-5"}, "model.name", "GLM-5"),
        ({"model": {"name": "GLM-5"}}, "model.name", "GLM-5"),
        ({"observed": {"kind": "hang"}}, "observed.kind", "hang"),
        ({"host": {"driver": "580.95.05"}}, "host.driver", "580.95.05"),
        ({"packages": {"torch": None}}, "package.torch", None),
    ],
)
def test_the_callers_facts_take_precedence(known: dict[str, Any], name: str, value: object) -> None:
    assert merged(known)[name] == value


def test_what_the_caller_leaves_open_of_a_part_is_filled_by_the_log() -> None:
    facts = merged({"flags": {"tp-size": "4"}, "gpu": {"name": "NVIDIA B200", "count": None}, "env": {"X": "1"}})
    assert (facts["flag.page-size"], facts["host.gpu_count"], facts["env.NCCL_DEBUG"]) == ("64", 8, "INFO")


@pytest.mark.parametrize(
    "empty", [{"flags": {}}, {"flags": None}, {"gpu": ""}, {"observed": {}}, {"engine_version": ""}]
)
def test_an_empty_answer_of_the_caller_is_none(empty: dict[str, Any]) -> None:
    assert merged(empty) == merged()


def test_an_option_that_names_the_release_takes_precedence() -> None:
    assert merged({"engine_version": "0.5.14"}, engine="0.5.20")["engine.version"] == "0.5.20"
    assert merged(engine="0.5.20")["engine.version"] == "0.5.20"


def test_a_value_at_the_default_of_the_release_is_not_a_flag() -> None:
    assert str(load("0.5.9").by_name["watchdog-timeout"].default) == "300"
    assert "flag.watchdog-timeout" not in merged(log=LogFacts(flags={"watchdog-timeout": "300"}, engine="0.5.9"))
    assert merged(log=LogFacts(flags={"watchdog-timeout": "77"}))["flag.watchdog-timeout"] == "77"
    assert merged({"flags": {"watchdog-timeout": "300"}})["flag.watchdog-timeout"] == "300"


def arguments(version: str) -> list[str]:
    """The names in the `server_args=` line of a release."""
    return [flag.names[0].replace("-", "_") for flag in load(version).flags]


@pytest.mark.parametrize(("version", "newer"), [("0.5.9", "0.5.10"), ("0.5.14", "0.5.15"), ("0.5.20", "0.5.21")])
def test_the_release_is_that_of_the_newest_argument(version: str, newer: str) -> None:
    assert release_of(arguments(version)) == version
    assert release_of([*arguments(newer), *arguments(version)]) == newer
    assert merged(log=LogFacts(arguments=dict.fromkeys(arguments(version))))["engine.version"] == version


def test_an_excerpt_of_the_arguments_names_no_release() -> None:
    assert release_of(arguments("0.5.9")[:99]) == ""
    assert release_of(arguments("0.5.9")[:100]) != ""
    assert release_of(["no_such_argument"] * 200) == ""
    assert merged(log=LogFacts(arguments={"tp_size": 8}))["engine.version"] is None
