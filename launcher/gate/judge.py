"""Findings and policy → remarks: what stands in the way, what somebody accepted, what was there before.

Also the rules of the gate itself: forbidden flags, what every profile must have, secrets in a file. Pure.
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
from launcher.gate.static import Checked, Seen
from launcher.profile.file import Accepted, Profile


class Case(Struct, frozen=True, kw_only=True):
    """One profile to judge: what the check saw now, and on the base (None: it is new, or everything counts as new)."""

    profile: Profile
    now: Checked
    before: Mapping[tuple[str, str], frozenset[str]] | None = None


def known_findings(checked: Checked) -> dict[tuple[str, str], frozenset[str]]:
    """(id, subject) → where it held."""
    return {(row.finding.id, row.finding.subject): frozenset(row.targets) for row in checked.seen}


def judge(case: Case, policy: Policy, side: Side, today: date) -> list[Remark]:
    """Remarks on the findings of a profile."""
    remarks = [_refused_plan(case, label, str(error), error.where, side) for label, error in case.now.refused[:1]]
    for row in case.now.seen:
        if row.finding.id in policy.ignore:
            continue
        remarks.append(_remark(row, case, policy, side, today))
    pattern = next((item for item in policy.refused if fits(case.profile.name, (item[0],))), None)
    return remarks if pattern is None else _as_expected(remarks, case, side)


def own_rules(profile: Profile, policy: Policy, side: Side) -> list[Remark]:
    """What gate.yaml asks of a profile beside its findings."""
    return [*_forbidden(profile, policy, side), *_missing(profile, policy, side), *_secrets(profile, side)]


def position(profile: Profile, finding: Finding, side: Side) -> Place:
    """The line that a finding is about: its flag or variable, else the first fact it rests on that a file sets.

    Of several such facts one that the profile's own file sets comes first.
    """
    if where := _where(profile, finding.subject):
        return side.place(where)
    places = [where for part in finding.evidence if (where := _where(profile, part.source))]
    own = [where for where in places if where.startswith(f"{profile.path}:")]
    return side.place((*own, *places, profile.path)[0])


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
    for own, item in profile.flags.items():
        if canonical is not None and schema.canonical(own) == canonical:
            return item.where
    return ""


def _remark(row: Seen, case: Case, policy: Policy, side: Side, today: date) -> Remark:
    finding = row.finding
    accepted = next((item for item in case.profile.accept if item.id == finding.id), None)
    status, more = _status(row, case, policy, accepted, today)
    place = side.place(accepted.where) if accepted and more else position(case.profile, finding, side)
    return Remark(
        rule=finding.id,
        status=status,
        severity=finding.severity,
        message=f"{finding.message}{f' ({more})' if more else ''}",
        place=place,
        profile=case.profile.name,
        subject=finding.subject,
        targets=row.targets,
        why=finding.why,
        remedies=tuple(item.text for item in finding.remedies if item.text),
    )


def _status(row: Seen, case: Case, policy: Policy, accepted: Accepted | None, today: date) -> tuple[Status, str]:
    finding = row.finding
    weight = _weight(finding, policy)
    if accepted is not None and weight != "note":
        fault = _fault(accepted, weight, policy, today)
        return (Status.FAIL, fault) if fault else (Status.ACCEPTED, "")
    if weight == "note":
        return Status.NOTE, ""
    if _stood_before(row, case) and not policy.old_fails:
        return Status.KNOWN, "on the base too"
    return Status.FAIL, {"owner": "an owner must accept it"}.get(weight, "")


def _weight(finding: Finding, policy: Policy) -> str:
    """never, owner, fail or note; what names the finding's id beats what names its severity."""
    lists = (("never", policy.never), ("owner", policy.owner), ("fail", policy.fail))
    for word in (finding.id, str(finding.severity)):
        for weight, named in lists:
            if word in named:
                return weight
    return "note"


def _fault(accepted: Accepted, weight: str, policy: Policy, today: date) -> str:
    """Why an acceptance does not count; empty when it does."""
    if weight == "never":
        return "the policy lets nobody accept it"
    if accepted.until is not None and accepted.until < today:
        return f"accepted until {accepted.until}, which is past"
    if (weight == "owner" or "owner" in policy.acceptance_needs) and not accepted.owner:
        return "accepted, but without an `owner`"
    if "until" in policy.acceptance_needs and accepted.until is None:
        return "accepted, but without a day in `until`"
    limit = today + timedelta(days=policy.acceptance_days)
    if policy.acceptance_days and accepted.until is not None and accepted.until > limit:
        return f"accepted for longer than {policy.acceptance_days} days"
    return ""


def _stood_before(row: Seen, case: Case) -> bool:
    if case.before is None:
        return False
    return set(row.targets) <= case.before.get((row.finding.id, row.finding.subject), frozenset())


def _as_expected(remarks: list[Remark], case: Case, side: Side) -> list[Remark]:
    """Of a profile that is kept because it is refused: its errors are expected, their absence is a failure."""
    errors = [item for item in remarks if item.severity is Severity.ERROR]
    if errors:
        return [
            _with(item, Status.EXPECTED) if item.status in (Status.FAIL, Status.KNOWN) else item for item in remarks
        ]
    message = "gate.yaml lists this profile under `refused`, and no check refuses it any more"
    return [*remarks, _own("refused-profile-passes", message, side.place(case.profile.path), case.profile.name)]


def _refused_plan(case: Case, label: str, message: str, where: str, side: Side) -> Remark:
    place = side.place(where or case.profile.path)
    remark = _own("plan-refused", message, place, case.profile.name)
    return _with(remark, Status.FAIL, targets=(label,))


def _forbidden(profile: Profile, policy: Policy, side: Side) -> Iterator[Remark]:
    for item in policy.forbid:
        if fits(profile.name, item.exempt):
            continue
        for where, value in _uses(profile, item):
            if item.value is None or item.value.lower() == str(value).lower():
                shown = f"--{item.name}" if item.kind == "flag" else item.name
                told = f"{shown}{'' if item.value is None else f' {item.value}'} is forbidden by {policy.path}"
                yield _own(
                    f"forbidden-{item.kind}", f"{told}{f': {item.reason}' if item.reason else ''}",
                    side.place(where), profile.name,
                )  # fmt: skip


def _uses(profile: Profile, item: Forbidden) -> Iterator[tuple[str, object]]:
    if item.kind == "env":
        if item.name in profile.env:
            yield profile.env[item.name].where, profile.env[item.name].value
        return
    schema = load("")
    meant = schema.canonical(item.name) or item.name
    for name, setting in profile.flags.items():
        if (schema.canonical(name) or name) == meant:
            yield setting.where, setting.value


def _missing(profile: Profile, policy: Policy, side: Side) -> Iterator[Remark]:
    checks = {
        "baseline": (profile.name in policy.baselines, f"no baseline: name one under `baselines` in {policy.path}"),
        "engine-range": (bool(profile.engine.text), "no `engine` range: say for which releases it is meant"),
        "hardware": (bool(profile.hardware), "no `hardware`: say which GPUs it was made for"),
        "why": (bool(profile.why), "no `why`: say what it is for"),
    }
    for name, patterns in policy.require.items():
        present, message = checks[name]
        if fits(profile.name, patterns) and not present:
            yield _own(f"{name}-missing", message, side.place(profile.path), profile.name)


def _secrets(profile: Profile, side: Side) -> Iterator[Remark]:
    values: Iterable[tuple[str, str, object]] = (
        *((name, item.where, item.value) for name, item in profile.flags.items()),
        *((name, item.where, item.value) for name, item in profile.env.items()),
        *((name, item.where, item.value) for name, item in profile.model.items()),
    )
    for name, where, value in values:
        if has_secret(str(value)):
            message = f"the value of `{name}` is a secret: revoke it, it has been in a file"
            yield _own("secret-in-profile", message, side.place(where), profile.name)


def _own(rule: str, message: str, place: Place, profile: str) -> Remark:
    return Remark(rule=rule, status=Status.FAIL, severity=Severity.ERROR, message=message, place=place, profile=profile)


def _with(remark: Remark, status: Status, targets: tuple[str, ...] = ()) -> Remark:
    return replace(remark, status=status, targets=targets or remark.targets)
