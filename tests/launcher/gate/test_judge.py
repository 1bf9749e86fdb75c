"""Findings and the policy become remarks: what blocks, what is accepted, what stood on the base, and on which line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace

from checks.vocabulary import EngineRange, Evidence, Finding, Remedy, Severity
from launcher.errors import PlanRefused
from launcher.gate.judge import Case, judge, known_findings, own_rules, position
from launcher.gate.policy import Forbidden, Policy
from launcher.gate.report import Remark, Status
from launcher.gate.side import Side
from launcher.gate.static import Checked, GroupedFinding
from launcher.profile.file import Accepted, EnvSetting, Profile, Setting

ROOT = Path("/repo")
OWN, PARENT = "/repo/profiles/a.yaml", "/repo/profiles/_base/p.yaml"
DEFAULTS = Policy()
TODAY = date(2026, 12, 1)
PROFILE = Profile(
    name="a",
    path=OWN,
    why="Chat.",
    engine=EngineRange(">=0.5.20"),
    model={"path": Setting(value="/models/m", where=f"{PARENT}:2:3")},
    hardware={"gpu": Setting(value="H100", where=f"{OWN}:2:3")},
    flags={
        "tensor-parallel-size": Setting(value="2", where=f"{OWN}:5:3"),
        "page-size": Setting(value="16", where=f"{PARENT}:6:3"),
    },
    env={"MY_VAR": EnvSetting(value="On", where=f"{OWN}:8:3")},
)
ERROR = Finding(id="some-finding", severity=Severity.ERROR, message="bad", subject="flag.tp-size")
ACCEPTED = Accepted(id="some-finding", reason="known", where=f"{OWN}:10:3")


def side(policy: Policy = DEFAULTS) -> Side:
    return Side(ROOT, policy)


def judged(
    finding: Finding = ERROR,
    policy: Policy = DEFAULTS,
    accept: Sequence[Accepted] = (),
    before: dict[tuple[str, str], frozenset[str]] | None = None,
    targets: tuple[str, ...] = ("0.5.22", "0.5.23"),
) -> list[Remark]:
    checked = Checked(findings=(GroupedFinding(finding=finding, targets=targets),), targets=targets)
    case = Case(profile=replace(PROFILE, accept=tuple(accept)), now=checked, before=before)
    return judge(case, policy, side(policy), TODAY)


@pytest.mark.parametrize(
    ("policy", "severity", "status"),
    [
        (Policy(), Severity.ERROR, Status.FAIL),
        (Policy(), Severity.WARNING, Status.NOTE),
        (Policy(fail=("warning",)), Severity.WARNING, Status.FAIL),
        (Policy(fail=()), Severity.ERROR, Status.NOTE),
        (Policy(fail=("some-finding",)), Severity.INFO, Status.FAIL),
    ],
)
def test_the_policy_decides_which_findings_block(policy: Policy, severity: Severity, status: Status) -> None:
    [remark] = judged(replace(ERROR, severity=severity), policy)
    assert remark.status is status


def test_an_ignored_finding_leaves_no_remark() -> None:
    assert judged(policy=Policy(ignore=("some-finding",))) == []


def test_an_entry_for_a_finding_beats_one_for_its_severity() -> None:
    policy = Policy(never=("error",), fail=("some-finding",))
    assert [item.status for item in judged(policy=policy, accept=[ACCEPTED])] == [Status.ACCEPTED]


@pytest.mark.parametrize(
    ("policy", "accepted", "reason"),
    [
        (Policy(), ACCEPTED, ""),
        (Policy(never=("some-finding",)), replace(ACCEPTED, owner="ops"), "does not allow accepting"),
        (Policy(), replace(ACCEPTED, until=date(2026, 11, 30)), "expired on 2026-11-30"),
        (Policy(), replace(ACCEPTED, until=TODAY), ""),
        (Policy(owner=("some-finding",)), ACCEPTED, "needs an `owner`"),
        (Policy(owner=("some-finding",)), replace(ACCEPTED, owner="ops"), ""),
        (Policy(acceptance_needs=("owner",)), ACCEPTED, "needs an `owner`"),
        (Policy(acceptance_needs=("until",)), ACCEPTED, "needs a date in `until`"),
        (Policy(acceptance_days=30), replace(ACCEPTED, until=date(2026, 12, 31)), ""),
        (Policy(acceptance_days=30), replace(ACCEPTED, until=date(2027, 1, 1)), "the limit of 30 days"),
        (Policy(acceptance_days=30), ACCEPTED, ""),
    ],
)
def test_an_acceptance_counts_only_as_the_policy_allows(policy: Policy, accepted: Accepted, reason: str) -> None:
    [remark] = judged(policy=policy, accept=[accepted])
    assert remark.status is (Status.FAIL if reason else Status.ACCEPTED)
    assert reason in remark.message
    assert remark.place.line == (10 if reason else 5)


def test_an_acceptance_of_another_finding_does_not_count() -> None:
    assert [item.status for item in judged(accept=[replace(ACCEPTED, id="other")])] == [Status.FAIL]


def test_an_owner_must_accept_what_the_policy_reserves_for_owners() -> None:
    [remark] = judged(policy=Policy(owner=("some-finding",)))
    assert (remark.status, "an owner must accept this finding" in remark.message) == (Status.FAIL, True)


@pytest.mark.parametrize(
    ("before", "old_fails", "status"),
    [
        ({("some-finding", "flag.tp-size"): frozenset({"0.5.21", "0.5.22", "0.5.23"})}, False, Status.KNOWN),
        ({("some-finding", "flag.tp-size"): frozenset({"0.5.22"})}, False, Status.FAIL),
        ({("some-finding", "flag.other"): frozenset({"0.5.22", "0.5.23"})}, False, Status.FAIL),
        ({("some-finding", "flag.tp-size"): frozenset({"0.5.22", "0.5.23"})}, True, Status.FAIL),
        (None, False, Status.FAIL),
    ],
)
def test_a_finding_is_old_only_if_it_held_for_the_same_subject_and_every_target(
    before: dict[tuple[str, str], frozenset[str]] | None, old_fails: bool, status: Status
) -> None:
    [remark] = judged(before=before, policy=Policy(old_fails=old_fails))
    assert remark.status is status


def test_what_one_side_knows_is_read_as_the_base_of_the_other() -> None:
    checked = Checked(findings=(GroupedFinding(finding=ERROR, targets=("0.5.22", "0.5.23")),), targets=("0.5.22",))
    assert [item.status for item in judged(before=known_findings(checked))] == [Status.KNOWN]


def test_a_remark_carries_what_the_finding_says() -> None:
    finding = replace(ERROR, why="It stops.", remedies=(Remedy(text="Leave it out."), Remedy(run="pip x")))
    [remark] = judged(finding)
    assert (remark.rule, remark.message, remark.why, remark.remedies) == (
        "some-finding", "bad", "It stops.", ("Leave it out.",),
    )  # fmt: skip
    assert (remark.profile, remark.subject, remark.targets) == ("a", "flag.tp-size", ("0.5.22", "0.5.23"))


@pytest.mark.parametrize(
    ("subject", "evidence", "where"),
    [
        ("flag.tp-size", (), "profiles/a.yaml:5:3"),
        ("flag.page-size", (), "profiles/_base/p.yaml:6:3"),
        ("env.MY_VAR", (), "profiles/a.yaml:8:3"),
        ("model.gated", (), "profiles/_base/p.yaml:2:3"),
        ("flag.unset", (), "profiles/a.yaml:1:1"),
        ("", ("flag.page-size", "env.MY_VAR"), "profiles/a.yaml:8:3"),
        ("host.gpu_count", ("host.gpu_count", "flag.page-size"), "profiles/_base/p.yaml:6:3"),
    ],
)
def test_a_finding_is_shown_on_the_line_that_causes_it(subject: str, evidence: tuple[str, ...], where: str) -> None:
    finding = replace(ERROR, subject=subject, evidence=tuple(Evidence(text="", source=name) for name in evidence))
    assert str(position(PROFILE, finding, side())) == where


def test_a_plan_that_cannot_be_made_is_one_blocking_remark() -> None:
    refused = (("0.5.22", PlanRefused("no such flag", where=f"{OWN}:5:3")), ("0.5.23", PlanRefused("no such flag")))
    [remark] = judge(
        Case(profile=PROFILE, now=Checked(findings=(), targets=(), refused=refused)), Policy(), side(), TODAY
    )
    assert (remark.rule, remark.status, remark.targets) == ("plan-refused", Status.FAIL, ("0.5.22",))
    assert (str(remark.place), remark.message) == ("profiles/a.yaml:5:3", "no such flag")


def test_the_errors_of_a_profile_that_must_be_refused_are_expected_and_its_notes_stay() -> None:
    policy = Policy(refused=(("a*", "gate.yaml:3:3"),))
    assert [item.status for item in judged(policy=policy)] == [Status.EXPECTED]
    warning = replace(ERROR, severity=Severity.WARNING)
    note, passes = judged(warning, policy)
    assert (note.status, passes.rule, passes.status) == (Status.NOTE, "refused-profile-passes", Status.FAIL)


def own(policy: Policy, profile: Profile = PROFILE) -> list[tuple[str, str]]:
    return [(item.rule, str(item.place)) for item in own_rules(profile, policy, side(policy))]


def forbidden(kind: str, name: str, value: str | None = None, **more: tuple[str, ...]) -> Policy:
    return Policy(forbid=(Forbidden(kind=kind, name=name, value=value, reason="slow", where="gate.yaml:1:1", **more),))


@pytest.mark.parametrize(
    ("policy", "remarks"),
    [
        (forbidden("flag", "tp-size"), [("forbidden-flag", "profiles/a.yaml:5:3")]),
        (forbidden("flag", "page-size", "16"), [("forbidden-flag", "profiles/_base/p.yaml:6:3")]),
        (forbidden("flag", "page-size", "1"), []),
        (forbidden("flag", "page-size", exempt=("a",)), []),
        (forbidden("env", "MY_VAR", "on"), [("forbidden-env", "profiles/a.yaml:8:3")]),
        (forbidden("env", "page-size"), []),
        (forbidden("flag", "MY_VAR"), []),
    ],
)
def test_a_forbidden_setting_is_reported_where_it_is_set(policy: Policy, remarks: list[tuple[str, str]]) -> None:
    assert own(policy) == remarks


def test_a_forbidden_setting_names_the_reason_and_the_purpose_of_the_policy() -> None:
    policy = replace(forbidden("flag", "page-size", "16"), why="One cache for all.", path="gate.yaml")
    [remark] = own_rules(PROFILE, policy, side(policy))
    assert remark.message == "`--page-size 16` is forbidden by gate.yaml: slow"
    assert remark.why == "One cache for all."


@pytest.mark.parametrize(
    ("rule", "bare"),
    [
        ("why", replace(PROFILE, why="")),
        ("hardware", replace(PROFILE, hardware={})),
        ("engine-range", replace(PROFILE, engine=EngineRange())),
    ],
)
def test_a_required_key_that_is_absent_is_reported(rule: str, bare: Profile) -> None:
    policy = Policy(require={rule: ("a",)})
    assert own(policy, bare) == [(f"{rule}-missing", "profiles/a.yaml:1:1")]
    assert own(policy) == own(Policy(require={rule: ("b",)}), bare) == []


def test_a_required_baseline_is_one_that_the_policy_names() -> None:
    policy = Policy(require={"baseline": ("*",)})
    assert own(policy) == [("baseline-missing", "profiles/a.yaml:1:1")]
    assert own(replace(policy, baselines={"a": ("evidence/a.json", "gate.yaml:1:1")})) == []


def test_a_secret_in_a_flag_a_variable_or_the_model_is_reported_and_not_repeated() -> None:
    token = "hf_" + "a1B2" * 8
    leaky = replace(
        PROFILE,
        flags={"x": Setting(value=["a", token], where=f"{OWN}:5:3")},
        env={"GREETING": EnvSetting(value=token, where=f"{OWN}:8:3")},
        model={"path": Setting(value=f"/models/{token}", where=f"{OWN}:2:3")},
    )
    remarks = own_rules(leaky, Policy(why="ours"), side())
    assert [(item.rule, item.place.line) for item in remarks] == [("secret-in-profile", line) for line in (5, 8, 2)]
    assert not [item for item in remarks if token in item.message or item.why]
