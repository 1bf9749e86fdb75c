"""Build the Index from the knowledge folders; this runs after a change of the knowledge.

`signature_index` defines the Index and stores it as one document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from checks import KNOWLEDGE
from checks.catalog.engine_phrases import ARGUMENTS, EXIT_MARKERS
from checks.catalog.entries import Entry, folders, load
from checks.catalog.line_patterns import compile_line
from checks.catalog.yaml_reader import Node, YamlError, read
from checks.during.log import native_lines, phases, required_words
from checks.during.log.phases import Phase
from checks.during.log.word_search import prepared
from checks.during.signature_index import Advice, Index, Rule
from checks.vocabulary import Role

# Fixed strings that every scan keeps: traceback markers, exit markers, and strings that show facts of the launch.
STRUCTURE = (
    "Traceback (most", '  File "', "Error", "Exception", "rror: ", "terminate called", "Fatal Python",
    "KeyboardInterrupt", ARGUMENTS, *EXIT_MARKERS,
    "device_name=", "rc=", "RC=", "avail mem=", "m sglang.launch_server", "sglang serve", "export ",
    "NaN in the", "500 Internal", "[http_server] Error", "Error in request: ", "transfer failed", "KVTransferError",
    *native_lines.WORDS,
)  # fmt: skip


def build(root: Path = KNOWLEDGE, drafts: Iterable[Path] = ()) -> Index:
    """Return the index of all folders and of drafts. Raises YamlError with file, line and column of the first fault."""
    entries_read = [(load(folder), _document(folder)) for folder in (*folders(root), *drafts)]
    rules = tuple(rule for entry, node in entries_read for rule in _rules(entry, node))
    regexes = dict.fromkeys(regex for rule in rules for regex in (*rule.all, *rule.anywhere, *rule.without))
    needs = {regex: tuple(sorted(required_words.best(regex))) for regex in regexes}
    all_phases = phases.load(root)
    starts = [required_words.best(pattern) for phase in all_phases for pattern in (*phase.starts, *phase.shown_by)]
    words = sorted({*required_words.cover([*(frozenset(need) for need in needs.values()), *starts]), *STRUCTURE})
    return Index(
        rules=rules,
        needs=needs,
        literals=prepared(sorted({literal for need in needs.values() for literal in need})),
        words=prepared(words),
        phases=tuple(map(_with_words, all_phases)),
        advices={entry.id: Raw(_advice(entry)) for entry, _ in entries_read if entry.role is Role.CAUSE},
    )


def _with_words(phase: Phase) -> Phase:
    needs = [required_words.best(pattern) for pattern in (*phase.starts, *phase.shown_by)]
    return replace(phase, words=tuple(sorted({word for need in needs for word in need}))) if all(needs) else phase


def _document(folder: Path) -> Node:
    path = next(path for path in (folder / "cause.yaml", folder / "sign.yaml") if path.exists())
    return read(path, f"{folder.parent.name}/{folder.name}/{path.name}")


def _advice(entry: Entry) -> bytes:
    return msgspec.json.encode(Advice(why=entry.why, remedies=entry.remedies))


def _rules(entry: Entry, node: Node) -> Iterator[Rule]:
    during = node.get("during")
    for number, (item, pattern) in enumerate(zip(during.sequence() if during else [], entry.during, strict=True)):
        when = item.get("when")
        rule = Rule(
            entry=entry.id,
            number=number,
            title=entry.title,
            role=entry.role,
            all=pattern.all,
            anywhere=pattern.anywhere,
            without=pattern.without,
            when=when.plain() if when else None,
            weight=pattern.weight,
            yields_to=tuple(dict.fromkeys((*entry.yields_to, *pattern.yields_to))),
            fails=pattern.fails,
            engine=(entry.engine, pattern.engine),
        )
        _check(rule, item)
        yield rule


def _check(rule: Rule, node: Node) -> None:
    for regex in (*rule.all, *rule.anywhere, *rule.without):
        try:
            compile_line(regex)
        except ValueError as error:
            raise YamlError(str(error), node.where) from error
    if not rule.all and not rule.anywhere and "observed." not in str(rule.when):
        hint = "add `all`, or a condition on an `observed.` fact to `when`"
        raise YamlError(f"a pattern of {rule.entry} would match every log of such a launch", node.where, hint)
