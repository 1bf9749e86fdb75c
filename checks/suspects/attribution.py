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
from checks.suspects import suspected_host, suspected_request
from checks.suspects.clues import Clues, clues_of, last_words
from checks.suspects.experiments import Refuses, experiments
from checks.suspects.foreseen import Foreseen, died_before_ranks, explaining
from checks.suspects.other_release import other_release
from checks.suspects.plan import KINDS, plan, understood
from checks.suspects.ranking import Weighed, rank
from checks.suspects.settings import implied, settings_of
from checks.suspects.suspected_package import suspected_package
from checks.suspects.unstated import unstated
from checks.vocabulary import Diagnosis, Evidence, Experiment, Finding, LogVerdict, Match, Role, Severity, Suspect

MOST_SUSPECTS = 3
_CERTAIN = 5.0  # the score of a setting that outweighs a package on which a name is missing


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
        limit = suspected_host.suspected_host(Clues(message=last_words(judged)))
        return replace(diagnosis, suspects=(limit,)) if limit else _planned(diagnosis, facts, schema)
    named = [item.subject for item in findings if item.severity is Severity.ERROR]
    settings = [*settings_of(facts, schema), *implied(clues.message, facts, schema, named)]
    if not _knows_launch(facts):
        known = {setting.fact for setting in settings}
        settings += [item for item in unstated(clues, features, schema) if item.fact not in known]
    weighed = rank(settings, clues, features, findings, stated=judged.reading.stated, overridden=bool(recorded))
    foreseen = explaining(judged, clues, features, weighed, findings)
    if foreseen.errors:
        return _explained(judged, diagnosis, foreseen)
    suspects = _suspects(weighed, clues, facts, schema, _refuses(facts, rules))
    return replace(diagnosis, suspects=suspects) if suspects else _planned(diagnosis, facts, schema, clues)


def _knows_launch(facts: Facts) -> bool:
    return any(name.startswith("flag.") for name in facts)


def _planned(diagnosis: Diagnosis, facts: Facts, schema: FlagSchema, clues: Clues | None = None) -> Diagnosis:
    """Return the diagnosis with a plan of experiments; an observation of an unknown kind gets the list of kinds."""
    if not _knows_launch(facts):
        return replace(diagnosis, notes=(*diagnosis.notes, wording.LAUNCH_UNKNOWN))
    kind = diagnosis.observed or "crash"
    notes = diagnosis.notes if understood(kind) else (*diagnosis.notes, wording.unknown_kind(kind, KINDS))
    release = other_release(clues, str(facts.get("engine.version") or "")) if clues else None
    last = (Experiment(change=release, shows=wording.RELEASE_SHOWS),) if release else ()
    return replace(
        diagnosis,
        plan=(*plan(facts, schema, kind, diagnosis.phase, clues.message if clues else ""), *last),
        notes=notes,
    )


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
    others = (
        (suspected_host.SCORE, suspected_host.suspected_host(clues)),
        (suspected_request.SCORE, suspected_request.suspected_request(clues)),
    )
    suspects += [(score, other) for score, other in others if other is not None]
    suspects = sorted(suspects, key=lambda item: -item[0])[:MOST_SUSPECTS]
    package = suspected_package(clues, facts, schema)
    ranked = tuple(suspect for _, suspect in suspects)
    release = other_release(clues, str(facts.get("engine.version") or ""))
    if release and ranked:
        ranked = (replace(ranked[0], experiments=(*ranked[0].experiments, release)), *ranked[1:])
    if package is None:
        return ranked
    # a name that the engine itself lacks is no setting's doing, and an unknown launch has no settings to prefer
    weak = not weighed or (weighed[0].score < _CERTAIN and wording.is_missing(package))
    first = package.setting == "package.sglang" or not _knows_launch(facts) or weak
    return (package, *ranked) if first else (*ranked, package)
