"""Word the results of an attribution: this module writes every sentence about suspects and foreseen errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from checks.during.judgement import Judgement
from checks.engine.function_history import Changes
from checks.suspects.ranking import Reason, Weighed
from checks.vocabulary import Finding, Suspect

if TYPE_CHECKING:
    from checks.suspects.foreseen import Foreseen

_MOST_REASONS = 3
_WEAK = 0.5  # a reason below this weight is not worth a line


def reasons(item: Weighed) -> tuple[str, ...]:
    """Return the strongest reasons for a suspect, each as a sentence that a person can verify."""
    sentences = dict.fromkeys(_reason(reason) for reason in item.reasons if reason.weight >= _WEAK)
    return tuple(sentences)[:_MOST_REASONS] or (_reason(item.reasons[0]),)


_SENTENCES = {
    "foreseen": "`launch check` reports {word} about it",
    "names": "the message names {word}",
    "condition": "the engine raises this error under a condition on {word}",
    "value-quoted": "the message contains its value {word}",
    "selects": "{place} is reached only if an option selects {word}",
    "option-file": "{place} is imported only if it is set",
    "reads": "the function at {place} reads it",
    "source": "the source line at {place} uses it",
    "told": "the operation that the message reports depends on it",
    "affinity": "the outcome of `{word}` at {place} depends on it",
}


def _reason(reason: Reason) -> str:
    default = "`{word}` is in the path or function at {place}" if reason.place else "the message mentions `{word}`"
    return _SENTENCES.get(reason.kind, default).format(word=reason.word.lstrip("$"), place=reason.place)


def in_package(function: str, distribution: str, specifier: str, version: str) -> str:
    """Return why the package of the innermost frame is suspected."""
    return f"the innermost frame is in this package ({function}){_needed(distribution, specifier, version)}"


def missing_in_package(message: str, distribution: str, specifier: str, version: str) -> str:
    """Return why a package on which a name is missing is suspected."""
    mixed = (
        "; this release lacks it, or the installation mixes files of several versions"
        if distribution == "sglang"
        else ""
    )
    return f"{_REPORTS}`{message}`{mixed}{_needed(distribution, specifier, version)}"


def is_missing(package: Suspect) -> bool:
    """Return whether a package is suspected because a name is missing on it."""
    return package.setting != "package.torch" and package.reasons[0].startswith(_REPORTS)


def module_of_other_releases(module: str, first: str, last: str) -> str:
    """Return why the engine is suspected whose release lacks a module that another package imports."""
    return f"the message reports `No module named '{module}'`; releases {first} to {last} have it, this one does not"


REPEAT_REQUEST = "repeat the request alone, then without its special fields, to find the field"


def in_request(function: str, where: str) -> str:
    """Return why a request is suspected."""
    return f"it failed while it handled a request (`{function}` at {where})"


def system_error(message: str) -> str:
    """Return why a resource of the host is suspected."""
    return f"the operating system reports `{message}`"


def other_interface(where: str, distribution: str, specifier: str, version: str) -> str:
    """Return why a package is suspected that the engine's code calls in a way that it does not have."""
    return f"{where} calls {distribution} in a way that it does not have{_needed(distribution, specifier, version)}"


def _needed(distribution: str, specifier: str, version: str) -> str:
    if not specifier or distribution == "sglang":
        return ""
    return f"; the release requires {distribution}{specifier}" + (f", and {version} is installed" if version else "")


_REPORTS = "the message reports "
RELEASE_SHOWS = "the fault is in that function of the engine"


def changed_later(found: Changes) -> str:
    """Return why a later release is proposed."""
    what = "without" if found.gone else "with other code in"
    return f"the next release {what} {found.function}"


def changed_before(found: Changes) -> str:
    """Return why an earlier release is proposed."""
    return f"{found.function} last changed in {found.changed_in}; this is the release before"


def foreseen_title(foreseen: Foreseen, engine: str | None) -> str:
    """Return the headline for a failure that `launch check` foresees."""
    first = foreseen.errors[0].message
    if len(foreseen.errors) == 1 or not foreseen.before_ranks:
        return first
    release = f"SGLang {engine}" if engine else "this release"
    return f"this launch cannot start on {release}, for {len(foreseen.errors)} reasons; the first: {first}"


def foreseen_notes(judged: Judgement, foreseen: Foreseen, sentence: str) -> Iterator[str]:
    """Explain where it failed, how the error is known, and what else was foreseen."""
    if foreseen.before_ranks:
        yield "it failed in the main process while it resolved its arguments, before any rank started"
    if judged.at and not judged.at.tailless:
        yield f"the log reports: {sentence}"
    yield "`launch check` reports this error for the launch; the log alone does not name it"
    yield from (f"also foreseen: {_listed(item)}" for item in foreseen.errors[1:])


def _listed(finding: Finding) -> str:
    return f"{finding.id}: {finding.message}"


LAUNCH_UNKNOWN = (
    "the log does not show the launch; state it with --profile or --facts to get a plan of experiments for its features"
)


def unknown_kind(kind: str, kinds: Mapping[str, Sequence[str]]) -> str:
    """Return the note on an observation that is not understood, with every kind that is."""
    known = "; ".join(f"{group}: {', '.join(names)}" for group, names in kinds.items())
    return f"`{kind}` is not a known observation, so the plan is that for a crash; known are {known}"
