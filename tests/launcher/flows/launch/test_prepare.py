"""A launch is prepared from a profile and the facts of a host: one plan, and every finding for or against it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from checks.engine.flag_schema import load
from checks.vocabulary import EngineRange, Finding, Severity
from launcher.errors import HostCommandFailed, PlanRefused
from launcher.flows.launch.prepare import clock_finding, host_findings, look, prepare, range_finding, settle
from launcher.plan.launch_plan import LaunchPlan
from launcher.profile.file import Accepted, Profile, Setting
from launcher.profile.resolve import override
from launcher.transport.base import Command, Result
from launcher.transport.inventory import Host
from launcher.transport.local import LocalTransport
from tests.support.bench import Bench, bench

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
PLAN = LaunchPlan(
    profile="p", digest="d", host="gpu-box", engine="0.5.23", python="python3", work_dir="/w",
    flags={"port": "30000"}, env={}, server_port=30000,
)  # fmt: skip
FREE: dict[str, Any] = {
    "detach": {"kill_user_processes": False, "linger": False}, "port": {"free": True, "holders": []},
    "host": {"disk": {"free": 10**12}, "time": NOW.timestamp()},
}  # fmt: skip
ERROR = Finding(id="x", severity=Severity.ERROR, message="bad")


class Silent(LocalTransport):
    """A host that answers each question with nothing."""

    def run(self, command: Command) -> Result:
        return Result(exit=0, stdout=b"{}", stderr=b"", seconds=0.0)


@pytest.fixture
def local(tmp_path: Path) -> Bench:
    return bench(tmp_path, LocalTransport())


def ids(findings: list[Finding]) -> list[str]:
    return [item.id for item in findings]


def accepted(until: date | None = None) -> Accepted:
    return Accepted(id="x", reason="known", where="p.yaml:1:1", until=until)


def test_a_plan_rests_on_the_facts_of_the_host(local: Bench) -> None:
    prepared = prepare(local.transport, local.profile(), local.host, datetime.now(UTC))
    assert (prepared.plan.engine, prepared.plan.host) == ("0.5.23", local.host.name)
    assert prepared.plan.server_port == local.port
    assert prepared.plan.work_dir == local.host.work_dir
    assert prepared.launch.engine == "0.5.23"
    assert prepared.facts["asked"]["port"] == local.port
    assert {item.severity for item in prepared.errors} <= {Severity.ERROR}
    assert list((local.folder / "work").glob("*")) == []


def test_only_the_values_of_the_installed_release_are_planned(local: Bench) -> None:
    profile = local.profile()
    ranged = {
        "page-size": Setting(value="16", where="-", engine=EngineRange("<0.5.23")),
        "tp-size": Setting(value="1", where="-", engine=EngineRange(">=0.5.23")),
    }
    prepared = prepare(local.transport, replace(profile, flags={**profile.flags, **ranged}), local.host, NOW)
    assert ("page-size" in prepared.plan.flags, prepared.plan.flags["tp-size"]) == (False, "1")


def test_an_accepted_finding_does_not_refuse_the_launch(local: Bench) -> None:
    profile = override(local.profile(), ["no-such-flag=1"], [], [])
    refused = prepare(local.transport, profile, local.host, NOW)
    assert "flag-unknown-to-engine" in ids(list(refused.errors))
    items = tuple(Accepted(id=item.id, reason="a stand-in", where="-") for item in refused.errors)
    agreed = prepare(local.transport, replace(profile, accept=items), local.host, NOW)
    assert agreed.errors == ()
    assert "flag-unknown-to-engine" in [finding.id for finding, _ in agreed.accepted]


def test_a_host_without_the_engine_says_what_was_tried(local: Bench) -> None:
    bare = replace(local.host, env={}, python="/usr/bin/python3")
    with pytest.raises(HostCommandFailed, match="no SGLang found on") as caught:
        prepare(local.transport, local.profile(), bare, NOW)
    assert (caught.value.where, "hosts.yaml" in caught.value.hint) == (bare.name, True)
    assert "/usr/bin/python3" in caught.value.message


def test_an_abstract_profile_is_refused(local: Bench) -> None:
    with pytest.raises(PlanRefused, match="abstract"):
        prepare(local.transport, replace(local.profile(), abstract=True), local.host, NOW)


@pytest.mark.parametrize(
    ("sets", "asked"),
    [
        ([], {"model": "", "draft": "", "host": "127.0.0.1", "port": 30000}),
        (["model=/a"], {"model": "/a"}),
        (["model=/a", "model-path=/b"], {"model": "/b"}),
        (["port=8000", "host=0.0.0.0"], {"port": 8000, "host": "0.0.0.0"}),
        (["port=http"], {"port": 0}),
        (["port=²"], {"port": 0}),
        (["speculative-draft-model-path=/d"], {"draft": "/d"}),
    ],
)
def test_the_host_is_asked_about_what_the_profile_needs(sets: list[str], asked: dict[str, Any]) -> None:
    profile = override(Profile(name="p", path="p.yaml"), sets, [], ["A=1", "HF_TOKEN"])
    raw = look(Silent(), profile, Host(name="gpu-box", work_dir="~/w", env={"A": "0", "B": "2"}))
    assert {name: raw["asked"][name] for name in asked} == asked
    assert raw["asked"]["env"] == {"A": "1", "B": "2"}


def test_a_finding_that_is_accepted_in_time_moves_to_the_accepted_ones() -> None:
    item = accepted(NOW.date())
    assert settle([ERROR], (item,), NOW.date()) == ((), ((ERROR, item),))
    assert settle([ERROR], (), NOW.date()) == ((ERROR,), ())
    assert settle([ERROR], (replace(item, id="other"),), NOW.date()) == ((ERROR,), ())


def test_an_acceptance_that_has_expired_has_no_effect_and_says_so() -> None:
    [applying], agreed = settle([ERROR], (accepted(date(2026, 11, 30)),), NOW.date())
    assert (applying.message, agreed) == ("bad (its acceptance expired on 2026-11-30)", ())


def test_an_engine_outside_the_range_of_the_profile_is_an_error() -> None:
    profile = Profile(name="p", path="p.yaml", engine=EngineRange("<0.5.20"))
    [finding] = range_finding(profile, load("0.5.23"))
    assert (finding.severity, "<0.5.20" in finding.message, "0.5.23" in finding.message) == (Severity.ERROR, True, True)
    assert range_finding(profile, load("0.5.19")) == range_finding(Profile(name="p", path=""), load("0.5.23")) == []


@pytest.mark.parametrize(("skew", "words"), [(130, "130 s ahead of"), (-130, "130 s behind"), (60, ""), (-60, "")])
def test_a_clock_that_differs_is_reported_with_its_direction(skew: int, words: str) -> None:
    findings = clock_finding(FREE, NOW - timedelta(seconds=skew))
    assert [words in item.message for item in findings] == ([True] if words else [])
    assert all(item.severity is Severity.WARNING for item in findings)


def test_a_host_that_is_free_has_no_finding() -> None:
    assert host_findings(FREE, PLAN) == []


@pytest.mark.parametrize(
    ("holders", "words"),
    [
        ([{"pid": 7, "command": "nginx", "run": ""}], "pid 7 (nginx)"),
        ([{"pid": 7, "command": "x", "run": "r-1"}], "`launch stop r-1`"),
        ([], "a process that this user cannot see"),
    ],
)
def test_a_taken_port_is_an_error_that_names_its_holder(holders: list[dict[str, Any]], words: str) -> None:
    [finding] = host_findings({**FREE, "port": {"free": False, "holders": holders}}, PLAN)
    assert (finding.id, finding.severity, finding.subject) == ("http-port-in-use", Severity.ERROR, "flag.port")
    assert "port 30000" in finding.message and words in finding.message


@pytest.mark.parametrize(
    ("disk", "expected"),
    [({"free": 10**9}, ["disk-nearly-full"]), ({"free": 0}, ["disk-nearly-full"]), ({"free": None}, []), (None, [])],
)
def test_a_disk_that_is_nearly_full_is_a_warning_and_an_unknown_one_is_not(disk: Any, expected: list[str]) -> None:
    findings = host_findings({**FREE, "host": {"disk": disk}}, PLAN)
    assert ids(findings) == expected
    assert all("GB are free under /w" in item.message for item in findings)


@pytest.mark.parametrize(
    ("kills", "linger", "refused"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_processes_that_end_at_logout_refuse_the_launch(kills: bool, linger: bool, refused: bool) -> None:
    findings = host_findings({**FREE, "detach": {"kill_user_processes": kills, "linger": linger}}, PLAN)
    assert ids(findings) == (["killed-at-logout"] if refused else [])
    assert all("loginctl enable-linger" in item.why for item in findings)


def test_a_host_that_was_not_asked_about_a_port_has_none_that_is_taken() -> None:
    assert host_findings({**FREE, "port": None}, PLAN) == []
