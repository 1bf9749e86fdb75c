"""The knowledge folders → the document that `signature_index` reads back. Runs when the knowledge changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from checks import literals, phases
from checks.catalog import KNOWLEDGE, Entry, load
from checks.model import Remedy, Role
from checks.regex import compile_line
from checks.signature_index import FORMAT
from checks.yamlfile import Node, YamlError, read

# What the scan keeps besides the signatures' own words: the bones of incidents and the facts of a log.
STRUCTURE = (
    "Traceback (most", '  File "', "Error", "Exception", "rror: ", "terminate called", "Fatal Python", "Segfault",
    "Segmentation", "server_args=", "Killed", "Terminated", "SIGTERM", "SIGQUIT", "SIGINT", "KeyboardInterrupt",
    "exit code", "device_name=", "rc=", "RC=", "avail mem=",
)  # fmt: skip


def build(root: Path = KNOWLEDGE, drafts: Iterable[Path] = ()) -> dict[str, Any]:
    """The plain form of all folders and of drafts. Raises YamlError naming file, line and column of the first fault."""
    found = [(load(folder), _document(folder)) for folder in (*folders(root), *drafts)]
    rules = [rule for entry, node in found for rule in _rules(entry, node)]
    regexes = dict.fromkeys(regex for rule in rules for key in ("all", "anywhere", "without") for regex in rule[key])
    needs = {regex: sorted(literals.best(regex)) for regex in regexes}
    all_phases = phases.load(root)
    starts = [literals.best(pattern) for phase in all_phases for pattern in phase.starts]
    words = literals.cover([*(frozenset(need) for need in needs.values()), *starts])
    return {
        "format": FORMAT,
        "rules": rules,
        "needs": needs,
        "covers": _covers(needs, sorted({*words, *STRUCTURE})),
        "words": sorted({*words, *STRUCTURE}),
        "advice": {entry.id: _advice(entry, node) for entry, node in found if entry.role is Role.CAUSE},
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


def _document(folder: Path) -> Node:
    path = next(path for path in (folder / "cause.yaml", folder / "sign.yaml") if path.exists())
    return read(path, f"{folder.parent.name}/{folder.name}/{path.name}")


def _covers(needs: Mapping[str, Iterable[str]], words: Iterable[str]) -> dict[str, str]:
    """Each literal with a word that stands wherever the literal stands."""
    literals_of = sorted({literal for need in needs.values() for literal in need})
    found = ((literal, next((word for word in words if word in literal), "")) for literal in literals_of)
    return {literal: word for literal, word in found if word}


def _advice(entry: Entry, node: Node) -> dict[str, Any]:
    written = node.get("remedies")
    rows = zip(written.sequence() if written else [], entry.remedies, strict=True)
    return {"why": entry.why, "remedies": [_remedy(remedy, item.get("when")) for item, remedy in rows]}


def _remedy(remedy: Remedy, when: Node | None) -> dict[str, Any]:
    """The YAML form again, numbers as they were typed."""
    form = {
        "text": remedy.text, "set": dict(remedy.set), "unset": list(remedy.unset), "env": dict(remedy.env),
        "unset-env": list(remedy.unset_env), "install": remedy.install, "upgrade": dict(remedy.upgrade),
        "engine": remedy.engine.text, "when": when.plain() if when else None,
    }  # fmt: skip
    return {name: value for name, value in form.items() if value}


def _rules(entry: Entry, node: Node) -> Iterator[dict[str, Any]]:
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
