"""Attribute an unknown failure to an error that was foreseen, else to settings that lead to the code that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from checks.before.flags import check_flags
from checks.before.rule_index import Rules
from checks.before.rules import constrain
from checks.catalog.conditions import Facts
from checks.during.judgement import Judgement
from checks.engine import feature_map
from checks.engine.flag_schema import FlagSchema, load
from checks.suspects import attribution_wording as wording
from checks.suspects.clues import Clues, clues_of
from checks.suspects.experiments import Refuses, experiments
from checks.suspects.foreseen import Foreseen, died_before_ranks, explaining
from checks.suspects.plan import KINDS, plan, understood
from checks.suspects.ranking import Weighed, rank
from checks.suspects.settings import implied, settings_of
from checks.suspects.suspected_host import SCORE, suspected_host
from checks.suspects.suspected_package import suspected_package
from checks.vocabulary import Diagnosis, Evidence, Finding, LogVerdict, Match, Role, Severity, Suspect

MOST_SUSPECTS = 3


def attribute(
    judged: Judgement, diagnosis: Diagnosis, rules: Iterable[Rules], recorded: Sequence[Finding] = ()
) -> Diagnosis:
    """Return the diagnosis of an unknown failure with the errors that explain it, or with suspects.

    `rules` are the rules of `launch check`; `recorded` are the findings of the launch itself, which had facts that the
    log does not show. A diagnosis with another verdict does not change.
    """
    if diagnosis.verdict is not LogVerdict.UNKNOWN or judged.rivals:
        return diagnosis
    rules = tuple(rules)
    facts = judged.reading.facts
    version = str(facts.get("engine.version") or "")
    schema, features = load(version), feature_map.load(version)
    findings = _findings(judged, schema, rules, recorded)
    clues = clues_of(judged)
    if clues.empty:
        return _planned(diagnosis, facts, schema)
    named = [item.subject for item in findings if item.severity is Severity.ERROR]
    settings = [*settings_of(facts, schema), *implied(clues.message, facts, schema, named)]
    weighed = rank(settings, clues, features, findings, stated=judged.reading.stated, overridden=bool(recorded))
    foreseen = explaining(judged, clues, features, weighed, findings)
    if foreseen.errors:
        return _explained(judged, diagnosis, foreseen)
    suspects = _suspects(weighed, clues, facts, schema, _refuses(facts, rules))
    return replace(diagnosis, suspects=suspects) if suspects else _planned(diagnosis, facts, schema)


def _planned(diagnosis: Diagnosis, facts: Facts, schema: FlagSchema) -> Diagnosis:
    """Return the diagnosis with a plan of experiments; an observation of an unknown kind gets the list of kinds."""
    if not any(name.startswith("flag.") for name in facts):
        return replace(diagnosis, notes=(*diagnosis.notes, wording.LAUNCH_UNKNOWN))
    kind = diagnosis.observed or "crash"
    notes = diagnosis.notes if understood(kind) else (*diagnosis.notes, wording.unknown_kind(kind, KINDS))
    return replace(diagnosis, plan=plan(facts, schema, kind), notes=notes)


def _findings(
    judged: Judgement, schema: FlagSchema, rules: Sequence[Rules], recorded: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Return the findings on the launch behind a log, one per id and subject: the recorded ones, else those of a check.

    An engine that started its ranks has accepted its flags: only the rules count then.
    """
    facts = judged.reading.facts
    flags = {name.removeprefix("flag."): value for name, value in facts.items() if name.startswith("flag.")}
    env = {name.removeprefix("env."): str(value) for name, value in facts.items() if name.startswith("env.")}
    if not flags and not recorded:
        return ()
    spelled = {schema.spell(name) or name: value for name, value in flags.items()}
    refused = check_flags(spelled, env, schema) if died_before_ranks(judged) else ()
    checked = () if recorded else (*refused, *constrain(facts, rules))
    unique: dict[tuple[str, str], Finding] = {}
    for finding in (*recorded, *checked):
        unique.setdefault((finding.id, finding.subject), finding)
    return tuple(unique.values())


def _refuses(facts: Facts, rules: Sequence[Rules]) -> Refuses:
    already = {item.id for item in constrain(facts, rules) if item.severity is Severity.ERROR}

    def refuses(name: str, value: str) -> bool:
        found = constrain({**facts, f"flag.{name}": value}, rules)
        return any(item.severity is Severity.ERROR and item.id not in already for item in found)

    return refuses


def _explained(judged: Judgement, diagnosis: Diagnosis, foreseen: Foreseen) -> Diagnosis:
    first, at = foreseen.errors[0], judged.at
    lines = at.lines[:1] if at and at.tailless else at.lines[-1:] if at else ()
    evidence = tuple(
        Evidence(text=line.text.strip()[:400], line=line.number, rank=line.rank, time=line.time) for line in lines
    )
    title = wording.foreseen_title(foreseen, diagnosis.engine)
    remedies = tuple(remedy for item in foreseen.errors for remedy in item.remedies[:2])
    return replace(
        diagnosis,
        verdict=LogVerdict.CAUSE,
        cause=Match(id=first.id, role=Role.CAUSE, title=title, evidence=evidence),
        sentence=title,
        why=first.why,
        remedies=remedies,
        foreseen=foreseen.errors,
        phase="args" if foreseen.before_ranks else diagnosis.phase,
        notes=(*wording.foreseen_notes(judged, foreseen, diagnosis.sentence), *diagnosis.notes),
    )


def _suspects(
    weighed: Sequence[Weighed], clues: Clues, facts: Facts, schema: FlagSchema, refuses: Refuses
) -> tuple[Suspect, ...]:
    suspects = [
        (
            item.score,
            Suspect(
                setting=item.setting.fact,
                value=item.setting.value,
                reasons=wording.reasons(item),
                experiments=experiments(item.setting, schema, refuses),
            ),
        )
        for item in weighed[:MOST_SUSPECTS]
    ]
    resource = suspected_host(clues)
    if resource is not None:
        suspects = sorted([*suspects, (SCORE, resource)], key=lambda item: -item[0])[:MOST_SUSPECTS]
    package = suspected_package(clues, facts, schema)
    ranked = tuple(suspect for _, suspect in suspects)
    if package is None:
        return ranked
    # a name that the engine itself lacks is no setting's doing
    return (package, *ranked) if package.setting == "package.sglang" else (*ranked, package)
