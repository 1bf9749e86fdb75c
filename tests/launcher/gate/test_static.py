"""The static tier: a profile against each release of its range and each recorded host that it fits, without a GPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from checks.vocabulary import EngineRange, Severity
from launcher.gate.policy import Policy
from launcher.gate.report import Place
from launcher.gate.rulebook import Rulebook
from launcher.gate.side import Machine
from launcher.gate.static import Checked, check_profile, releases, runs_on
from launcher.knowledge_cache import rules
from launcher.profile.file import EnvSetting, Profile, Setting
from tests.support.gate_repo import FACTS

OWN = "/repo/profiles/a.yaml"
RANGE, TWO = ">=0.5.20,<0.5.22", ("0.5.20", "0.5.21")
NOTHING = Place(path="hosts.yaml")


def settings(**values: Any) -> dict[str, Setting]:
    return {name.replace("_", "-"): Setting(value=value, where=f"{OWN}:5:3") for name, value in values.items()}


def profile(engine: str = RANGE, hardware: dict[str, Setting] | None = None, **flags: Any) -> Profile:
    return Profile(
        name="chat", path=OWN, engine=EngineRange(engine), flags=settings(**flags), hardware=hardware or {},
        model=settings(path="/models/m", name="meta-llama/Llama-3.1-8B-Instruct"),
    )  # fmt: skip


def with_facts(engine: str | None, raw: dict[str, Any], recorded: str | None = "0.5.20") -> Machine:
    return Machine(
        name="gpu-box", place=NOTHING, engine=engine, engine_place=NOTHING, raw=raw, recorded_engine=recorded
    )


def machine(engine: str | None = "0.5.20", recorded: str | None = "0.5.20", /, **raw: Any) -> Machine:
    return with_facts(engine, {**FACTS, **raw} if recorded else {}, recorded)


@cache
def book() -> Rulebook:
    return Rulebook(rules())


def checked(item: Profile, *machines: Machine) -> Checked:
    return check_profile(item, machines, Policy(), book())


def rows(result: Checked) -> dict[str, tuple[str, ...]]:
    return {row.finding.id: row.targets for row in result.findings}


def test_a_finding_of_several_releases_is_one_row_with_all_of_them() -> None:
    result = checked(profile(no_such_flag="1"))
    assert rows(result)["flag-unknown-to-engine"] == result.targets == TWO


def test_a_clean_profile_has_targets_and_no_errors() -> None:
    result = checked(profile(tp_size="2"))
    assert result.targets == TWO
    assert [row for row in result.findings if row.finding.severity is Severity.ERROR] == []


def test_errors_come_before_everything_else() -> None:
    findings = checked(profile(no_such_flag="1"), machine("0.5.22", "0.5.20")).findings
    severities = [row.finding.severity for row in findings]
    assert severities == sorted(severities, key=[Severity.ERROR, Severity.WARNING, Severity.INFO].index)
    assert len(set(severities)) > 1


def test_a_launch_that_cannot_be_planned_is_refused_for_each_target_and_judged_for_none() -> None:
    result = checked(profile(port="http"), machine())
    assert [label for label, _ in result.refused] == [*TWO, "gpu-box (0.5.20)"]
    assert "http" in result.refused[0][1].message
    assert (result.targets, result.findings) == ((), ())


def test_releases_are_those_of_the_profile_and_the_policy_together() -> None:
    policy = Policy(engines=EngineRange(">=0.5.21"))
    assert [item.version for item in releases(profile(), policy)] == ["0.5.21"]
    assert releases(profile(">=9"), Policy()) == []
    assert checked(profile(">=9")).targets == ()


@pytest.mark.parametrize(
    ("hardware", "fits"),
    [
        ({}, True),
        ({"gpu": "h100"}, True),
        ({"gpu": "B200"}, False),
        ({"count": "2"}, True),
        ({"count": "3"}, False),
        ({"gpu": "B200", "platform": "cpu"}, True),
    ],
)
def test_a_profile_runs_where_the_recorded_gpus_are_those_that_it_was_made_for(
    hardware: dict[str, str], fits: bool
) -> None:
    made_for = profile(hardware=settings(**hardware))
    assert runs_on(made_for, machine(), Policy()) is fits
    assert runs_on(made_for, machine("0.5.20", None), Policy()) is True


def test_the_policy_decides_for_the_machines_that_it_lists() -> None:
    other = profile(hardware=settings(gpu="B200"))
    assert runs_on(other, machine(), Policy(runs_on={"gpu-box": ("ch*",)})) is True
    assert runs_on(profile(), machine(), Policy(runs_on={"gpu-box": ("batch",)})) is False
    assert runs_on(profile(), machine(), Policy(runs_on={"gpu-box": ()})) is False


def test_a_machine_that_a_profile_does_not_run_on_is_not_a_target() -> None:
    result = checked(profile(hardware=settings(gpu="B200")), machine(None))
    assert (result.targets, "host-engine-unknown" in rows(result)) == (TWO, False)


def test_recorded_gpus_count_on_their_machine_only() -> None:
    gpu = {**FACTS["gpus"][0], "name": "NVIDIA RTX PRO 6000", "compute_cap": "12.0"}
    blackwell = profile(attention_backend="fa3")
    result = checked(blackwell, machine(gpus=[gpu]))
    assert rows(result)["fa3-off-hopper"] == ("gpu-box (0.5.20)",)
    assert "fa3-off-hopper" not in rows(checked(blackwell, machine()))


def test_a_host_outside_the_range_of_the_profile_is_an_error() -> None:
    result = checked(profile(), machine("0.5.22", "0.5.22"))
    assert rows(result)["engine-outside-profile-range"] == ("gpu-box (0.5.22)",)
    [message] = [row.finding.message for row in result.findings if row.finding.id == "engine-outside-profile-range"]
    assert message == f"the profile supports SGLang {RANGE}, but gpu-box has 0.5.22"


def test_an_unknown_release_is_noted_and_the_newest_is_assumed() -> None:
    result = checked(profile(), machine(None, None))
    assert rows(result)["host-engine-unknown"] == ("gpu-box (engine unknown)",)
    assert "gpu-box (engine unknown)" in result.targets
    assert "engine-outside-profile-range" not in rows(result)


def test_facts_recorded_with_another_release_are_out_of_date() -> None:
    assert rows(checked(profile(), machine("0.5.21", "0.5.20")))["facts-out-of-date"] == ("gpu-box (0.5.21)",)
    assert "facts-out-of-date" not in rows(checked(profile(), machine()))


def test_packages_that_were_recorded_with_another_release_are_unknown_and_not_wrong() -> None:
    packages = {**FACTS["engine"]["packages"], "sglang-kernel": "0.0.1"}
    old = {**FACTS, "engine": {**FACTS["engine"], "packages": packages}}
    assert "kernel-package-below-minimum" in rows(checked(profile(), with_facts("0.5.20", old)))
    assert "kernel-package-below-minimum" not in rows(checked(profile(), with_facts("0.5.21", old)))


def test_a_port_that_was_taken_at_the_moment_of_the_recording_decides_nothing() -> None:
    holders = [{"pid": 1, "name": "nginx"}]
    busy = machine(port={"free": False, "holders": holders}, gpu_processes=[{"pid": 1, "memory": 80_000}])
    assert rows(checked(profile(), busy)) == rows(checked(profile(), machine()))


def test_variables_of_a_machine_are_part_of_its_launch() -> None:
    item = Machine(
        name="gpu-box", place=NOTHING, engine="0.5.20", engine_place=NOTHING, env={"SGLANG_NO_SUCH_VARIABLE": "1"}
    )
    assert rows(checked(profile(), item)) != rows(checked(profile(), machine("0.5.20", None)))


def test_a_variable_of_the_profile_is_judged_in_every_release() -> None:
    item = profile()
    env = {"SGLANG_NO_SUCH_VARIABLE": EnvSetting(value="1", where=OWN)}
    with_env = Profile(name="chat", path=OWN, engine=item.engine, flags=item.flags, model=item.model, env=env)
    new = set(rows(checked(with_env))) - set(rows(checked(item)))
    assert [rows(checked(with_env))[name] for name in new] == [TWO]


def test_a_recorded_model_counts_only_for_the_profile_of_that_model() -> None:
    checkpoint = {"path": "/models/m", "path_exists": False, "hub_id": None}
    recorded = machine(model=checkpoint, asked={"model": "/models/m"})
    other = machine(model=checkpoint, asked={"model": "/models/other"})
    assert rows(checked(profile(), other)) == rows(checked(profile(), machine()))
    assert rows(checked(profile(), recorded)) != rows(checked(profile(), other))


def test_the_worst_severity_and_the_newest_message_stand_for_all_targets() -> None:
    result = checked(profile(no_such_flag="1"))
    [row] = [row for row in result.findings if row.finding.id == "flag-unknown-to-engine"]
    assert row.finding.severity is Severity.ERROR
    assert TWO[-1] in row.finding.message
