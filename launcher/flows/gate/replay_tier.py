"""Judge recorded runs again with today's knowledge, to see whether a verdict changes.

The verdicts are the refusal before the launch, the root cause in the log, and the outcome and level of the validation.
The recorded run is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from checks.after.probes.registry import probes
from checks.after.validation import level_of, outcome_of
from checks.after.validation import settle as settle_ledger
from checks.before.rules import check
from checks.facts.launch_evidence import Launch
from checks.vocabulary import Diagnosis, Evidence, Origin, Outcome, Severity, Verdict
from launcher.errors import LauncherError
from launcher.flows.diagnose.log_diagnosis import diagnose_log
from launcher.flows.diagnose.run_diagnosis import known, of_run
from launcher.flows.launch.prepare import settle
from launcher.gate.evidence_bundle import opened
from launcher.gate.policy import Recorded
from launcher.gate.report import Affected, Place, Remark, Replayed, Status
from launcher.gate.side import Side
from launcher.knowledge_cache import rules
from launcher.logfile import chunks
from launcher.profile.file import Accepted
from launcher.run.store import Run

# Rules about the moment of a launch, and the id of an engine's own refusal in runs recorded before findings had an
# origin.
_ONLY_LIVE = frozenset(
    {"http-port-in-use", "killed-at-logout", "engine-refuses-arguments", "engine-outside-profile-range"}
)
DECIDES = ("refused", "cause", "healthy", "outcome", "level")


class Unreadable(Replayed, frozen=True, kw_only=True):
    """A recorded run that cannot be read."""

    error: str


def replay(path: Path, expect: Mapping[str, Any] | None = None, name: str = "") -> Replayed:
    """Judge a run's folder or a bundle again. `expect` replaces recorded values as the expected ones.

    `name` is the path to report, by default `path`. Raises RunNotFound, UsageError.
    """
    with opened(path) as run:
        diagnosis = _diagnosis(run)
        recorded, now = _recorded(run), _now(run, diagnosis)
        expected = {**recorded, **{key: _plain(value) for key, value in (expect or {}).items()}}
        flipped = tuple(key for key in DECIDES if key in expected and key in now and expected[key] != now[key])
        return Replayed(
            run=run.id,
            profile=str(run.info.get("profile", "")),
            path=name or str(path),
            recorded=expected,
            now=now,
            flipped=flipped,
            notes=tuple(_notes(run, diagnosis)),
        )


def replay_tier(side: Side, affected: Sequence[Affected], *, everything: bool) -> tuple[Replayed, ...]:
    """Judge the recorded runs of the affected profiles again, or all recorded runs with `everything`."""
    profiles = {item.name for item in affected}
    results: list[Replayed] = []
    for item in side.policy.replay:
        for path in _paths(side, item):
            name = side.name_of(str(path))
            try:
                replayed = replay(path, item.expect, name)
            except LauncherError as error:
                results.append(_unreadable(name, item, error))
                continue
            if everything or (item.profile or replayed.profile) in profiles:
                results.append(replayed)
    return tuple(results)


def replay_remarks(replayed: Iterable[Replayed], side: Side) -> Iterator[Remark]:
    """Yield a failing remark for each verdict that changed, and for each recorded run that cannot be read."""
    places = {name: side.place(item.where) for item in side.policy.replay for name in _names(side, item)}
    for item in replayed:
        place = places.get(item.path, Place(path=item.path))
        if isinstance(item, Unreadable):
            yield _remark("recorded-run-unreadable", item.error, place, item.profile)
        for key in item.flipped:
            message = f"{item.run}: {key} was {_words(item.recorded[key])}, is now {_words(item.now[key])}"
            yield _remark("verdict-flipped", message, place, item.profile)


def _paths(side: Side, item: Recorded) -> list[Path]:
    if any(sign in item.run for sign in "*?["):
        return sorted(side.root.glob(item.run))
    return [side.root / item.run]


def _names(side: Side, item: Recorded) -> list[str]:
    return [side.name_of(str(path)) for path in _paths(side, item)]


def _unreadable(path: str, item: Recorded, error: LauncherError) -> Unreadable:
    return Unreadable(run=path, profile=item.profile, path=path, recorded={}, now={}, error=error.message)


def _recorded(run: Run) -> dict[str, Any]:
    """The verdicts that are stored in the run."""
    verdicts: dict[str, Any] = {}
    findings, diagnosis, validation = run.read("findings"), run.read("diagnosis"), run.read("validation")
    if findings is not None and run.read("launch"):
        errors = [item for item in findings if item["severity"] == Severity.ERROR]
        verdicts["refused"] = _refusing(item["id"] for item in errors if item.get("origin", Origin.RULE) == Origin.RULE)
    if diagnosis is not None:
        verdicts["cause"], verdicts["healthy"] = diagnosis.get("cause"), diagnosis.get("healthy")
    if validation is not None:
        verdicts["outcome"], verdicts["level"] = str(validation["outcome"]), str(validation["level"])
    return verdicts


def _now(run: Run, diagnosis: Diagnosis | None) -> dict[str, Any]:
    verdicts: dict[str, Any] = {}
    if run.read("launch"):
        verdicts["refused"] = _refusing(_error_ids(run))
    if diagnosis is not None:
        verdicts["cause"] = diagnosis.cause.id if diagnosis.cause else None
        verdicts["healthy"] = diagnosis.healthy
    if (validation := run.read("validation")) is not None:
        verdicts |= _judged(run, validation, diagnosis)
    return verdicts


def _diagnosis(run: Run) -> Diagnosis | None:
    if not run.log.exists() or run.log.stat().st_size == 0:
        return None
    engine = str((run.read("plan") or {}).get("engine", ""))
    return of_run(run, diagnose_log(chunks(str(run.log)), known(run), engine))


def _error_ids(run: Run) -> list[str]:
    """Ids of the error findings of today's rules on the recorded launch, without those that its profile accepted."""
    fields = Launch.__struct_fields__
    launch = Launch(**{name: value for name, value in run.read("launch").items() if name in fields})
    applying, _ = settle(check(launch, rules()), _accepted(run), _day(run))
    return [item.id for item in applying if item.severity is Severity.ERROR]


def _refusing(ids: Iterable[str]) -> bool:
    """Whether rules refuse the launch. Findings that need the live host are left out: a replay cannot repeat them."""
    return any(item not in _ONLY_LIVE for item in ids)


def _judged(run: Run, validation: Mapping[str, Any], diagnosis: Diagnosis | None) -> dict[str, Any]:
    """Outcome and level, from the recorded verdicts and the warnings that today's knowledge finds in the log."""
    verdicts = tuple(
        Verdict(
            id=str(item["id"]), outcome=Outcome(item["outcome"]), message=str(item.get("message", "")),
            evidence=tuple(Evidence(text=str(part.get("text", ""))) for part in item.get("evidence") or ()),
            figures=dict(item.get("figures") or {}),
        )
        for item in validation["verdicts"]
    )  # fmt: skip
    accepted = run.expectations.accept_warnings
    ledger = diagnosis.ledger if diagnosis is not None else ()
    warnings = settle_ledger(ledger, verdicts, probes(), accepted, _day(run))
    unresolved = sum(1 for item in warnings if item.state == "open")
    return {
        "outcome": str(outcome_of(verdicts, unresolved)),
        "level": str(level_of(verdicts, probes(), unresolved)),
    }


def _notes(run: Run, diagnosis: Diagnosis | None) -> Iterator[str]:
    """Changes that do not decide the verdict."""
    before = run.read("diagnosis") or {}
    if diagnosis is None or "ledger" not in before:
        return
    old, new = set(before["ledger"]), {item.id for item in diagnosis.ledger}
    if added := sorted(new - old):
        yield f"new warnings: {', '.join(added)}"
    if removed := sorted(old - new):
        yield f"warnings that no longer appear: {', '.join(removed)}"


def _accepted(run: Run) -> tuple[Accepted, ...]:
    items = (run.read("profile") or {}).get("accept") or ()
    return tuple(
        Accepted(
            id=item["id"], reason=item["reason"], where=item["where"], owner=item.get("owner", ""),
            until=date.fromisoformat(item["until"]) if item.get("until") else None,
        )
        for item in items
    )  # fmt: skip


def _day(run: Run) -> date:
    """The day of the run: an acceptance that has expired since then must not flip an old verdict."""
    return datetime.fromtimestamp(float(run.info.get("created") or 0), UTC).date()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) else str(value)


def _words(value: Any) -> str:
    return "unknown" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _remark(rule: str, message: str, place: Place, profile: str) -> Remark:
    return Remark(rule=rule, status=Status.FAIL, severity=Severity.ERROR, message=message, place=place, profile=profile)
