"""Use what `launch check` knows about a launch as evidence: an error that agrees with the failure explains it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from checks.during.judgement import Judgement
from checks.engine.feature_map import FeatureMap, words_of
from checks.suspects.clues import Clues
from checks.suspects.ranking import Weighed, stem
from checks.suspects.settings import COMMON
from checks.vocabulary import Finding, Severity

_AGREES = 2.5  # evidence for the subject of a finding, beside the finding itself
_SHARED_WORDS = 2.0  # rare words that a finding and a failure share, added up by their rarity
_ENGINE_STARTED = frozenset({"distributed", "weights", "memory", "graph-capture", "warmup", "serving", "stopping"})
_FROM_MAIN = ("_run_module_as_m", "<module>", "_run_code", "serve", "main")  # outermost frames of the main process


class Foreseen(Struct, frozen=True, kw_only=True):
    """The errors that explain a failure, the most convincing first."""

    errors: tuple[Finding, ...] = ()
    before_ranks: bool = False  # whether the failure is known to be in the main process, before any rank


def explaining(
    judged: Judgement, clues: Clues, features: FeatureMap, weighed: Sequence[Weighed], findings: Iterable[Finding]
) -> Foreseen:
    """Return the errors that explain a failure.

    An error explains a failure if the failure points to its subject more than to any other setting, or, if the launch
    lacks the subject, if both name the same rare things. If the exception itself is missing and the main process died
    before any rank started, every error does: the engine refuses such a launch at that moment.
    """
    errors = [item for item in findings if item.severity is Severity.ERROR]
    if not errors:
        return Foreseen()
    early = died_before_ranks(judged)
    if early and _is_cut(judged):
        return Foreseen(errors=tuple(errors), before_ranks=True)
    agreement = {id(item): _agreement(item, clues, features, weighed) for item in errors}
    agreeing = sorted((item for item in errors if agreement[id(item)] >= 1), key=lambda item: -agreement[id(item)])
    return Foreseen(errors=tuple(agreeing), before_ranks=early)


def died_before_ranks(judged: Judgement) -> bool:
    """Return whether the main process failed while it resolved its arguments, before it started any rank."""
    failed = judged.at
    if failed is None or failed.rank or any(item.phase in _ENGINE_STARTED for item in judged.reading.milestones):
        return False
    if judged.phase == "args" or failed.kind == "usage":
        return True
    return bool(failed.frames) and failed.frames[0].function.startswith(_FROM_MAIN) and not failed.headless


def _is_cut(judged: Judgement) -> bool:
    return judged.at is not None and judged.at.tailless


def _agreement(finding: Finding, clues: Clues, features: FeatureMap, weighed: Sequence[Weighed]) -> float:
    """Return how well a finding agrees with a failure; from 1 on it explains it."""
    evidence = {item.setting.fact: _without_findings(item) for item in weighed}
    if finding.subject in evidence:
        own = evidence[finding.subject]
        return own / _AGREES if own >= max(evidence.values()) and _shared(finding, clues, features) > 0 else 0.0
    return _shared(finding, clues, features) / _SHARED_WORDS if not evidence else 0.0


def _without_findings(item: Weighed) -> float:
    return sum(reason.weight for reason in item.reasons if reason.kind != "foreseen")


def _shared(finding: Finding, clues: Clues, features: FeatureMap) -> float:
    """Return the rare words that a finding and a failure share, added up by their rarity."""
    shown = {stem(word) for word in words_of(clues.message)}
    for place in clues.places[:8]:
        shown.update(stem(word) for word in (*words_of(place.file), *words_of(place.function), *words_of(place.source)))
    own = {word for word in words_of(f"{finding.id} {finding.message}") if len(word) > 2 and word not in COMMON}
    return sum(features.rarity(word) for word in own if stem(word) in shown)
