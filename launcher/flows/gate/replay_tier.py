"""Recorded runs judged again with the knowledge of today: does any of them get another verdict?

Refusal before the launch, first cause in the log, outcome and level of the validation. The recorded run is not changed.
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

# Rules on the moment of a launch, and what runs recorded before findings had an origin call the engine's own refusal.
_ONLY_LIVE = frozenset(
    {"http-port-in-use", "killed-at-logout", "engine-refuses-arguments", "engine-outside-profile-range"}
)
DECIDES = ("refused", "cause", "healthy", "outcome", "level")


class Unreadable(Replayed, frozen=True, kw_only=True):
    """A recorded run that cannot be read."""

    error: str


def replay(path: Path, expect: Mapping[str, Any] | None = None, name: str = "") -> Replayed:
    """Judge a run's folder or a bundle again. `expect` is what should come out, else what was recorded.

    Raises RunNotFound, UsageError.
    """
    with opened(path) as run:
        diagnosis = _diagnosis(run)
        recorded, now = _recorded(run), _now(run, diagnosis)
        wanted = {**recorded, **{key: _plain(value) for key, value in (expect or {}).items()}}
        flipped = tuple(key for key in DECIDES if key in wanted and key in now and wanted[key] != now[key])
        return Replayed(
            run=run.id,
            profile=str(run.info.get("profile", "")),
            path=name or str(path),
            recorded=wanted,
            now=now,
            flipped=flipped,
            notes=tuple(_notes(run, diagnosis)),
        )


def replay_tier(side: Side, reached: Sequence[Affected], *, everything: bool) -> tuple[Replayed, ...]:
    """The recorded runs of the profiles that a change reaches; all of them when it reaches everything."""
    names = {item.name for item in reached}
    found: list[Replayed] = []
    for item in side.policy.replay:
        for path in _paths(side, item):
            shown = side.name_of(str(path))
            try:
                replayed = replay(path, item.expect, shown)
            except LauncherError as error:
                found.append(_unreadable(shown, item, error))
                continue
            if everything or (item.profile or replayed.profile) in names:
                found.append(replayed)
    return tuple(found)


def replay_remarks(replayed: Iterable[Replayed], side: Side) -> Iterator[Remark]:
    """A flipped verdict fails; what cannot be read fails too."""
    places = {path: side.place(item.where) for item in side.policy.replay for path in _shown_paths(side, item)}
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


def _shown_paths(side: Side, item: Recorded) -> list[str]:
    return [side.name_of(str(path)) for path in _paths(side, item)]


def _unreadable(path: str, item: Recorded, error: LauncherError) -> Unreadable:
    return Unreadable(run=path, profile=item.profile, path=path, recorded={}, now={}, error=error.message)


def _recorded(run: Run) -> dict[str, Any]:
    """The verdicts that the run carries."""
    found: dict[str, Any] = {}
    findings, diagnosis, validation = run.read("findings"), run.read("diagnosis"), run.read("validation")
    if findings is not None and run.read("launch"):
        errors = [item for item in findings if item["severity"] == Severity.ERROR]
        found["refused"] = _refusing(item["id"] for item in errors if item.get("origin", Origin.RULE) == Origin.RULE)
    if diagnosis is not None:
        found["cause"], found["healthy"] = diagnosis.get("cause"), diagnosis.get("healthy")
    if validation is not None:
        found["outcome"], found["level"] = str(validation["outcome"]), str(validation["level"])
    return found


def _now(run: Run, diagnosis: Diagnosis | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if run.read("launch"):
        found["refused"] = _refusing(_standing(run))
    if diagnosis is not None:
        found["cause"] = diagnosis.cause.id if diagnosis.cause else None
        found["healthy"] = diagnosis.healthy
    if (validation := run.read("validation")) is not None:
        found |= _judged(run, validation, diagnosis)
    return found


def _diagnosis(run: Run) -> Diagnosis | None:
    if not run.log.exists() or run.log.stat().st_size == 0:
        return None
    engine = str((run.read("plan") or {}).get("engine", ""))
    return of_run(run, diagnose_log(chunks(str(run.log)), known(run), engine))


def _standing(run: Run) -> list[str]:
    """Ids of error findings of today's rules on the recorded launch, without what its profile accepted."""
    fields = Launch.__struct_fields__
    launch = Launch(**{name: value for name, value in run.read("launch").items() if name in fields})
    found = check(launch, rules())
    standing, _ = settle(found, _accepted(run), _day(run))
    return [item.id for item in standing if item.severity is Severity.ERROR]


def _refusing(ids: Iterable[str]) -> bool:
    """Whether rules refuse the launch. What only the host could say is left out: nothing here can say it again."""
    return any(item not in _ONLY_LIVE for item in ids)


def _judged(run: Run, validation: Mapping[str, Any], diagnosis: Diagnosis | None) -> dict[str, Any]:
    """Outcome and level from the recorded verdicts and the warnings that the log has today."""
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
    still_open = sum(1 for item in warnings if item.state == "open")
    return {
        "outcome": str(outcome_of(verdicts, still_open)),
        "level": str(level_of(verdicts, probes(), still_open)),
    }


def _notes(run: Run, diagnosis: Diagnosis | None) -> Iterator[str]:
    """What changed and decides nothing."""
    before = run.read("diagnosis") or {}
    if diagnosis is None or "ledger" not in before:
        return
    old, new = set(before["ledger"]), {item.id for item in diagnosis.ledger}
    if fresh := sorted(new - old):
        yield f"warnings that were not seen before: {', '.join(fresh)}"
    if gone := sorted(old - new):
        yield f"warnings that are not seen any more: {', '.join(gone)}"


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
    """The day of the run: an acceptance that has run out since must not flip an old verdict."""
    return datetime.fromtimestamp(float(run.info.get("created") or 0), UTC).date()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) else str(value)


def _words(value: Any) -> str:
    return "unknown" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _remark(rule: str, message: str, place: Place, profile: str) -> Remark:
    return Remark(rule=rule, status=Status.FAIL, severity=Severity.ERROR, message=message, place=place, profile=profile)
