"""Turn findings and the policy into remarks: which of them block, are accepted, or exist on the base already.

This module also applies the gate's own rules: forbidden flags, required keys, secrets in a file. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta

from msgspec import Struct
from msgspec.structs import replace

from checks.engine.flag_schema import load
from checks.vocabulary import Finding, Severity
from launcher.gate.policy import Forbidden, Policy, fits
from launcher.gate.redact import has_secret
from launcher.gate.report import Place, Remark, Status
from launcher.gate.side import Side
from launcher.gate.static import Checked, GroupedFinding
from launcher.profile.file import Accepted, Profile


class Case(Struct, frozen=True, kw_only=True):
    """One profile to judge: its findings now, and on the base (None: it is new, or everything counts as new)."""

    profile: Profile
    now: Checked
    before: Mapping[tuple[str, str], frozenset[str]] | None = None


def known_findings(checked: Checked) -> dict[tuple[str, str], frozenset[str]]:
    """Map (id, subject) of each finding to the releases and hosts that it holds for."""
    return {(row.finding.id, row.finding.subject): frozenset(row.targets) for row in checked.findings}


def judge(case: Case, policy: Policy, side: Side, today: date) -> list[Remark]:
    """Return the remarks on a profile's findings, and on plans that cannot be made for it."""
    remarks = [_refused_plan(case, label, str(error), error.where, side) for label, error in case.now.refused[:1]]
    for row in case.now.findings:
        if row.finding.id in policy.ignore:
            continue
        remarks.append(_remark(row, case, policy, side, today))
    pattern = next((item for item in policy.refused if fits(case.profile.name, (item[0],))), None)
    return remarks if pattern is None else _as_expected(remarks, case, side)


def own_rules(profile: Profile, policy: Policy, side: Side) -> list[Remark]:
    """Return the remarks from the gate's own rules: forbidden flags, required keys and secrets."""
    stated = [*_forbidden(profile, policy, side), *_missing(profile, policy, side)]
    return [*(replace(item, why=policy.why) for item in stated), *_secrets(profile, side)]


def position(profile: Profile, finding: Finding, side: Side) -> Place:
    """Return the line of a finding: its flag or variable, otherwise the first fact in its evidence that a file sets.

    If several facts qualify, one that the profile's own file sets comes first.
    """
    if where := _where(profile, finding.subject):
        return side.place(where)
    places = [where for part in finding.evidence if (where := _where(profile, part.source))]
    in_own_file = [where for where in places if where.startswith(f"{profile.path}:")]
    return side.place((*in_own_file, *places, profile.path)[0])


def _where(profile: Profile, subject: str) -> str:
    kind, _, name = subject.partition(".")
    if kind == "flag":
        return _flag_where(profile, name)
    if kind == "env" and name in profile.env:
        return profile.env[name].where
    if kind == "model" and profile.model:
        return next(iter(profile.model.values())).where
    return ""


def _flag_where(profile: Profile, name: str) -> str:
    if name in profile.flags:
        return profile.flags[name].where
    schema = load("")
    canonical = schema.canonical(name)
    for flag, item in profile.flags.items():
        if canonical is not None and schema.canonical(flag) == canonical:
            return item.where
    return ""


def _remark(row: GroupedFinding, case: Case, policy: Policy, side: Side, today: date) -> Remark:
    finding = row.finding
    accepted = next((item for item in case.profile.accept if item.id == finding.id), None)
    status, reason = _status(row, case, policy, accepted, today)
    place = side.place(accepted.where) if accepted and reason else position(case.profile, finding, side)
    return Remark(
        rule=finding.id,
        status=status,
        severity=finding.severity,
        message=f"{finding.message}{f' ({reason})' if reason else ''}",
        place=place,
        profile=case.profile.name,
        subject=finding.subject,
        targets=row.targets,
        why=finding.why,
        remedies=tuple(item.text for item in finding.remedies if item.text),
    )


def _status(
    row: GroupedFinding, case: Case, policy: Policy, accepted: Accepted | None, today: date
) -> tuple[Status, str]:
    """The status of a finding, and the reason where the message should give one."""
    finding = row.finding
    weight = _weight(finding, policy)
    if accepted is not None and weight != "note":
        fault = _fault(accepted, weight, policy, today)
        return (Status.FAIL, fault) if fault else (Status.ACCEPTED, "")
    if weight == "note":
        return Status.NOTE, ""
    if _on_base(row, case) and not policy.old_fails:
        return Status.KNOWN, "already on the base"
    return Status.FAIL, {"owner": "an owner must accept this finding"}.get(weight, "")


def _weight(finding: Finding, policy: Policy) -> str:
    """`never`, `owner`, `fail` or `note`; an entry for the finding's id beats one for its severity."""
    lists = (("never", policy.never), ("owner", policy.owner), ("fail", policy.fail))
    for word in (finding.id, str(finding.severity)):
        for weight, entries in lists:
            if word in entries:
                return weight
    return "note"


def _fault(accepted: Accepted, weight: str, policy: Policy, today: date) -> str:
    """Why an acceptance does not count; empty if it does."""
    if weight == "never":
        return "the policy does not allow accepting this finding"
    if accepted.until is not None and accepted.until < today:
        return f"its acceptance expired on {accepted.until}"
    if (weight == "owner" or "owner" in policy.acceptance_needs) and not accepted.owner:
        return "its acceptance needs an `owner`"
    if "until" in policy.acceptance_needs and accepted.until is None:
        return "its acceptance needs a date in `until`"
    limit = today + timedelta(days=policy.acceptance_days)
    if policy.acceptance_days and accepted.until is not None and accepted.until > limit:
        return f"its acceptance exceeds the limit of {policy.acceptance_days} days"
    return ""


def _on_base(row: GroupedFinding, case: Case) -> bool:
    if case.before is None:
        return False
    return set(row.targets) <= case.before.get((row.finding.id, row.finding.subject), frozenset())


def _as_expected(remarks: list[Remark], case: Case, side: Side) -> list[Remark]:
    """The remarks on a profile that the policy expects to be refused: its errors are expected, their absence fails."""
    errors = [item for item in remarks if item.severity is Severity.ERROR]
    if errors:
        return [
            _with(item, Status.EXPECTED) if item.status in (Status.FAIL, Status.KNOWN) else item for item in remarks
        ]
    message = "gate.yaml lists this profile under `refused`, but no check refuses it"
    return [*remarks, _gate_remark("refused-profile-passes", message, side.place(case.profile.path), case.profile.name)]


def _refused_plan(case: Case, label: str, message: str, where: str, side: Side) -> Remark:
    place = side.place(where or case.profile.path)
    remark = _gate_remark("plan-refused", message, place, case.profile.name)
    return _with(remark, Status.FAIL, targets=(label,))


def _forbidden(profile: Profile, policy: Policy, side: Side) -> Iterator[Remark]:
    for item in policy.forbid:
        if fits(profile.name, item.exempt):
            continue
        for where, value in _uses(profile, item):
            if item.value is None or item.value.lower() == str(value).lower():
                setting = f"--{item.name}" if item.kind == "flag" else item.name
                setting += "" if item.value is None else f" {item.value}"
                message = f"`{setting}` is forbidden by {policy.path}{f': {item.reason}' if item.reason else ''}"
                yield _gate_remark(f"forbidden-{item.kind}", message, side.place(where), profile.name)


def _uses(profile: Profile, item: Forbidden) -> Iterator[tuple[str, object]]:
    if item.kind == "env":
        if item.name in profile.env:
            yield profile.env[item.name].where, profile.env[item.name].value
        return
    schema = load("")
    canonical = schema.canonical(item.name) or item.name
    for name, setting in profile.flags.items():
        if (schema.canonical(name) or name) == canonical:
            yield setting.where, setting.value


def _missing(profile: Profile, policy: Policy, side: Side) -> Iterator[Remark]:
    checks = {
        "baseline": (profile.name in policy.baselines, f"no baseline: name one under `baselines` in {policy.path}"),
        "engine-range": (bool(profile.engine.text), "no `engine` range: add the releases that the profile supports"),
        "hardware": (bool(profile.hardware), "no `hardware`: add the GPUs that the profile was made for"),
        "why": (bool(profile.why), "no `why`: add the purpose of the profile"),
    }
    for name, patterns in policy.require.items():
        present, message = checks[name]
        if fits(profile.name, patterns) and not present:
            yield _gate_remark(f"{name}-missing", message, side.place(profile.path), profile.name)


def _secrets(profile: Profile, side: Side) -> Iterator[Remark]:
    values: Iterable[tuple[str, str, object]] = (
        *((name, item.where, item.value) for name, item in profile.flags.items()),
        *((name, item.where, item.value) for name, item in profile.env.items()),
        *((name, item.where, item.value) for name, item in profile.model.items()),
    )
    for name, where, value in values:
        if has_secret(str(value)):
            message = f"the value of `{name}` is a secret: revoke it, because it has been in a file"
            yield _gate_remark("secret-in-profile", message, side.place(where), profile.name)


def _gate_remark(rule: str, message: str, place: Place, profile: str) -> Remark:
    return Remark(rule=rule, status=Status.FAIL, severity=Severity.ERROR, message=message, place=place, profile=profile)


def _with(remark: Remark, status: Status, targets: tuple[str, ...] = ()) -> Remark:
    return replace(remark, status=status, targets=targets or remark.targets)
