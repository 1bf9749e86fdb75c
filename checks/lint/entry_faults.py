"""Find faults in entries of the knowledge, one line per fault.

Every case of a rule must behave as stated; every match log must be diagnosed as its cause and no miss log may be; every
flag that a remedy sets must exist in some spelling in every release of its range; every regex must compile in both
regex engines. `fact_faults` checks the facts that an entry names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from checks import KNOWLEDGE
from checks.after.probes.registry import probes
from checks.before.rules import first_holding
from checks.catalog.entries import FAMILIES, Entry, entries
from checks.catalog.fragments import fragments
from checks.catalog.line_patterns import re2_module
from checks.catalog.yaml_reader import read
from checks.during.diagnosis import diagnose_chunks
from checks.during.proposed_entry import NEAR_MISS
from checks.during.signature_build import build
from checks.during.signature_index import Index
from checks.engine.flag_schema import available, load
from checks.facts import derived
from checks.lint.command_faults import commands_are_commands
from checks.lint.fact_faults import fact_faults
from checks.lint.fragment_faults import fragments_are_shared
from checks.lint.pattern_faults import facts_beside, patterns_fire, yields_with_reason
from checks.vocabulary import Remedy, Role

_PLACEHOLDER = re.compile(r"[<{]")


def lint(items: Iterable[Entry] | None = None, index: Index | None = None) -> list[str]:
    """Return every fault of these entries (by default of all shipped entries), each as `slug: fault`."""
    chosen = tuple(entries() if items is None else items)
    judge = index or build()
    rules: tuple[Callable[[Entry], Iterator[str]], ...] = (
        has_what_it_needs, is_finished, names_known_flags, compiles, behaves_as_stated, names_known_probes,
        holds_for_releases, commands_are_commands, fact_faults,
        lambda item: logs_behave(item, judge),
        lambda item: patterns_fire(item, judge),
        lambda item: yields_with_reason(item, judge),
    )  # fmt: skip
    faults = [f"{item.id}: {fault}" for item in chosen for rule in rules for fault in rule(item)]
    if items is not None:
        return faults
    return [*folders_without_an_entry(), *faults, *fragments_are_shared(chosen, fragments())]


def folders_without_an_entry(root: Path = KNOWLEDGE) -> Iterator[str]:
    """Report folders that are not read as an entry because their YAML file is missing or misnamed."""
    for kind, name in (("causes", "cause.yaml"), ("signs", "sign.yaml")):
        for path in sorted((root / kind).iterdir()):
            if path.is_dir() and not (path / name).exists():
                yield f"{kind}/{path.name}: {name} is missing"


def has_what_it_needs(item: Entry) -> Iterator[str]:
    """Check that an entry is complete: explanation, family, remedies, cases for rules, logs for patterns."""
    if not item.title:
        yield "`title` is missing"
    if not item.why:
        yield "`why` is missing"
    if item.role is Role.CAUSE and item.family not in FAMILIES:
        yield f"`family: {item.family or '(missing)'}` is not one of {', '.join(FAMILIES)}"
    if item.role is Role.CAUSE and not item.remedies:
        yield "a cause needs a remedy"
    for remedy in item.remedies:
        if remedy == Remedy(engine=remedy.engine, when=remedy.when):
            yield "a remedy is empty"
    if item.before and {case.fires for case in item.cases} != {True, False}:
        yield "`before` needs a case that fires and a case that does not"
    with_text = [pattern for pattern in item.during if pattern.all or pattern.anywhere]
    if with_text and not list(item.folder.glob("match-*.log")):
        yield "`during` needs a match-*.log"
    if with_text and not list(item.folder.glob("miss-*.log")):
        yield "`during` needs a miss-*.log"


def is_finished(item: Entry) -> Iterator[str]:
    """Check that nothing of the draft that `diagnose scaffold` writes is left for its author to do."""
    for path in sorted(item.folder.glob("*.yaml")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if re.search(r"#.*\bTODO\b", line):
                yield f"{path.name}:{number}: a TODO of the draft is left"
    for path in sorted(item.folder.glob("*.log")):
        if NEAR_MISS in path.read_text("utf-8", "replace"):
            yield f"{path.name} is still the placeholder of the draft; put a similar message of another cause there"


def names_known_flags(item: Entry) -> Iterator[str]:
    """Check that each flag set by a remedy exists in the releases to which the remedy applies."""
    for remedy in item.remedies:
        yield from _remedy_faults(item, remedy)


def _remedy_faults(item: Entry, remedy: Remedy) -> Iterator[str]:
    for name in remedy.set:
        if _PLACEHOLDER.search(name):
            continue
        absent = [
            version
            for version in available()
            if remedy.engine.contains(version) and item.engine.contains(version) and load(version).spell(name) is None
        ]
        if absent and (remedy.engine.text or len(absent) == len(available())):
            yield f"a remedy sets --{name}, which {', '.join(absent[:4])} does not have"


def compiles(item: Entry) -> Iterator[str]:
    """Check that both regex engines compile every pattern, so that the fallback engine gives the same result."""
    engine = re2_module()
    for pattern in item.during:
        for text in (*pattern.all, *pattern.anywhere, *pattern.without):
            try:
                re.compile(text)
                if engine is not None:
                    engine.compile(text)
            except Exception as error:
                yield f"`{text}` does not compile: {error}"


def behaves_as_stated(item: Entry) -> Iterator[str]:
    """Check that the rules fire, or do not fire, on each case as the case states."""
    for case in item.cases:
        facts = derived.extend({"host.platform": "cuda", "engine.version": case.engine, **case.facts})
        if (first_holding(item, facts) is not None) is not case.fires:
            yield f"{case.where}: the rule {'does not fire' if case.fires else 'fires'}"


def names_known_probes(item: Entry) -> Iterator[str]:
    """Check that the probes in `cleared-by` exist."""
    known = {probe.id for probe in probes()}
    for name in item.cleared_by:
        if name not in known:
            yield f"`cleared-by` names `{name}`, which is not a probe"


def holds_for_releases(item: Entry) -> Iterator[str]:
    """Check that each range of releases, intersected with that of the entry, contains a known release."""
    parts = [("the entry", item.engine)]
    parts += [(f"a rule in `before` ({rule.message})", rule.engine) for rule in item.before]
    parts += [(pattern.where, pattern.engine) for pattern in item.during]
    parts += [(f"a remedy ({remedy.text})", remedy.engine) for remedy in item.remedies]
    for what, engine in parts:
        if not any(item.engine.contains(version) and engine.contains(version) for version in available()):
            yield f"{what}: `engine: {engine.text}` contains no known release ({available()[0]} to {available()[-1]})"


def logs_behave(item: Entry, index: Index) -> Iterator[str]:
    """Check that each match-*.log is recognised as this entry and no miss-*.log is."""
    for path in sorted(item.folder.glob("*.log")):
        diagnosis = diagnose_chunks([path.read_bytes()], index, facts_beside(path))
        by_role = {
            Role.CAUSE: {diagnosis.cause.id} if diagnosis.cause else set(),
            Role.SYMPTOM: {match.id for match in diagnosis.symptoms},
            Role.BENIGN: {match.id for match in diagnosis.dismissed},
            Role.LEDGER: {match.id for match in diagnosis.ledger},
        }
        recognised = item.id in by_role[item.role]
        if recognised is not path.name.startswith("match-"):
            names = ", ".join(sorted(by_role[item.role])) or "nothing"
            wanted = f"must be diagnosed as {item.id}" if not recognised else f"must not be diagnosed as {item.id}"
            yield f"{path.name} {wanted}; it is diagnosed as {names}"
    for path in sorted(item.folder.glob("match-*.facts.yaml")):
        if not path.with_name(path.name.replace(".facts.yaml", ".log")).exists():
            cause = diagnose_chunks([b""], index, read(path).plain()).cause
            if cause is None or cause.id != item.id:
                yield f"{path.name} is recognised as {cause.id if cause else 'nothing'}"
