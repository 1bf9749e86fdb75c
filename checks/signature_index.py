"""The log side of the knowledge in one plain document: what scanning needs, without reading 250 YAML files.

`build` makes it from the folders, `Index.load` reads it back; where it is kept between runs is the launcher's matter
(`launcher.knowledge_cache`). Titles, remedies and reasons stay in the folders and are read for the few that match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from checks import literals, phases
from checks.catalog import KNOWLEDGE, Entry, load
from checks.match import Condition, parse_condition
from checks.model import EngineRange, Role
from checks.phases import Phase
from checks.regex import compile_line
from checks.yamlfile import Node, YamlError, read

FORMAT = 5
"""Raised when the document changes its form."""

# What the scan keeps besides the signatures' own words: the bones of incidents and the facts of a log.
STRUCTURE = (
    "Traceback (most", '  File "', "Error", "Exception", "rror: ", "terminate called", "Fatal Python", "Segfault",
    "Segmentation", "server_args=", "Killed", "Terminated", "SIGTERM", "SIGQUIT", "SIGINT", "KeyboardInterrupt",
    "exit code", "device_name=", "rc=", "RC=", "avail mem=",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One pattern of one entry."""

    entry: str
    title: str
    role: Role
    all: tuple[str, ...]
    anywhere: tuple[str, ...]
    without: tuple[str, ...]
    when: Any  # the condition as written, or None
    engine: tuple[EngineRange, EngineRange]  # of the entry and of the pattern
    weight: int

    @property
    def condition(self) -> Condition | None:
        """The parsed condition."""
        return parse_condition(self.when) if self.when else None


@dataclass(frozen=True, kw_only=True)
class Index:
    """Every rule, the words that lead to them, and the phases."""

    rules: tuple[Rule, ...]
    needs: dict[str, literals.Requirement]  # regex → words one of which stands in each line it matches
    words: tuple[str, ...]
    phases: tuple[Phase, ...]

    @classmethod
    def load(cls, document: dict[str, Any]) -> Index:
        """From the plain form."""
        return cls(
            rules=tuple(_rule(item) for item in document["rules"]),
            needs={regex: frozenset(words) for regex, words in document["needs"].items()},
            words=tuple(document["words"]),
            phases=tuple(Phase(**{**item, "starts": tuple(item["starts"])}) for item in document["phases"]),
        )

    @cached_property
    def regexes(self) -> tuple[str, ...]:
        """Every regex of every rule, once."""
        return tuple(self.needs)


def build(root: Path = KNOWLEDGE, drafts: Iterable[Path] = ()) -> dict[str, Any]:
    """The plain form of all folders and of drafts. Raises YamlError naming file, line and column of the first fault."""
    rules = [rule for folder in (*folders(root), *drafts) for rule in _rules(folder)]
    regexes = dict.fromkeys(regex for rule in rules for key in ("all", "anywhere", "without") for regex in rule[key])
    needs = {regex: sorted(literals.best(regex)) for regex in regexes}
    all_phases = phases.load(root)
    starts = [literals.best(pattern) for phase in all_phases for pattern in phase.starts]
    words = literals.cover([*(frozenset(need) for need in needs.values()), *starts])
    return {
        "format": FORMAT,
        "rules": rules,
        "needs": needs,
        "words": sorted({*words, *STRUCTURE}),
        "phases": [
            {
                "id": phase.id, "title": phase.title, "order": phase.order, "patience": phase.patience,
                "doing": phase.doing, "starts": list(phase.starts),
            }
            for phase in all_phases
        ],
    }  # fmt: skip


def folders(root: Path = KNOWLEDGE) -> Iterator[Path]:
    """The folders of entries; one without its YAML file is lint's business."""
    for kind, name in (("causes", "cause.yaml"), ("signs", "sign.yaml")):
        yield from sorted(path.parent for path in (root / kind).glob(f"*/{name}"))


def _rules(folder: Path) -> Iterator[dict[str, Any]]:
    entry = load(folder)
    kind = "cause" if entry.role is Role.CAUSE else "sign"
    node = read(folder / f"{kind}.yaml", f"{folder.parent.name}/{folder.name}/{kind}.yaml")
    during = node.get("during")
    for item, pattern in zip(during.sequence() if during else [], entry.during, strict=True):
        when = item.get("when")
        rule = {
            "entry": entry.id, "title": entry.title, "role": entry.role.value, "all": list(pattern.all),
            "anywhere": list(pattern.anywhere), "without": list(pattern.without),
            "when": when.plain() if when else None, "weight": pattern.weight,
            "engine": [entry.engine.text, pattern.engine.text],
        }  # fmt: skip
        _check(rule, item, entry)
        yield rule


def _check(rule: dict[str, Any], node: Node, entry: Entry) -> None:
    for regex in (*rule["all"], *rule["anywhere"], *rule["without"]):
        try:
            compile_line(regex)
        except ValueError as error:
            raise YamlError(str(error), node.where) from error
    if not rule["all"] and not rule["anywhere"] and "observed." not in str(rule["when"]):
        hint = "add `all`, or say in `when` what was observed"
        raise YamlError(f"a pattern of {entry.id} would hold for every log of such a launch", node.where, hint)


def _rule(item: dict[str, Any]) -> Rule:
    return Rule(
        entry=item["entry"],
        title=item["title"],
        role=Role(item["role"]),
        all=tuple(item["all"]),
        anywhere=tuple(item["anywhere"]),
        without=tuple(item["without"]),
        when=item["when"],
        engine=(EngineRange(item["engine"][0]), EngineRange(item["engine"][1])),
        weight=item["weight"],
    )
