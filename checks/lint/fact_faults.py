"""Find faults in the facts that an entry names: unknown names, facts without a measuring module, comparisons that the
type of the fact makes impossible, placeholders that are never filled.

`checks.facts.names` is the registry; `entry_faults` checks that a rule behaves as its cases state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from checks.catalog.conditions import Comparison, as_number, comparisons
from checks.catalog.entries import Entry
from checks.catalog.yaml_reader import did_you_mean
from checks.facts.names import Fact, flag_choices, flag_types, known_names, lookup, namespaces
from checks.vocabulary import EngineRange, Remedy

_PLACEHOLDER = re.compile(r"\{([a-z_]\w*(?:\.[A-Za-z0-9_.-]+)?)\}")
_GROUP = re.compile(r"\(\?P<(\w+)>")
_ORDERED = "at_least"


def fact_faults(item: Entry) -> Iterator[str]:
    """Yield every fault of the facts that an entry names."""
    groups = captured_groups(item)
    for place, written, engine in _conditions(item):
        for comparison in comparisons(written):
            yield from (f"{fault} ({place})" for fault in comparison_faults(comparison, engine, groups, place))
    yield from _template_faults(item, groups)
    for number, rule in enumerate(item.before, 1):
        if rule.subject:
            yield from (f"{fault} (subject of rule {number})" for fault in name_faults(rule.subject, frozenset()))
    for case in item.cases:
        yield from _case_faults(case.facts, case.where)


def captured_groups(item: Entry) -> frozenset[str]:
    """Return the named groups of all patterns of an entry."""
    texts = (text for pattern in item.during for text in (*pattern.all, *pattern.anywhere))
    return frozenset(name for text in texts for name in _GROUP.findall(text))


def name_faults(name: str, groups: frozenset[str]) -> Iterator[str]:
    """Yield the reason why a fact of that name can never be known, if there is one."""
    space, _, rest = name.partition(".")
    if space == "captured" and rest not in groups:
        yield f"`{name}`: no pattern of this entry has a group `{rest}`; {did_you_mean(rest, groups)}".rstrip("; ")
        return
    fact = lookup(name)
    if fact is None:
        known = known_names() if space in namespaces() else namespaces()
        hint = did_you_mean(name if space in namespaces() else space, known)
        yield f"`{name}` is not a registered fact{': ' + hint if hint else ''}"
    elif not fact.measured:
        yield f"`{name}` is registered, but no module measures it"


def comparison_faults(
    item: Comparison, engine: EngineRange, groups: frozenset[str], place: str = "remedy"
) -> Iterator[str]:
    """Yield the reasons why a comparison can never hold, or never be decided."""
    if item.name.startswith("captured.") and not place.startswith("remedy"):
        yield f"`{item.name}`: only remedies can use the groups that a pattern captures"
        return
    faults = list(name_faults(item.name, groups))
    yield from faults
    fact = None if faults else lookup(item.name)
    if fact is None:
        return
    types = flag_types(item.name.removeprefix("flag.")) if item.name.startswith("flag.") else frozenset({fact.type})
    match item.operator:
        case "at_least" if "number" not in types:
            yield f"`{item.name}` is {_worded(types)}: `{_ORDERED}` compares numbers"
        case "matches":
            yield from _match_faults(item, fact, types)
        case "equals" | "in":
            operands = item.operand if item.operator == "in" else [item.operand]
            for operand in operands:
                yield from _operand_faults(item.name, operand, types, _choices(fact, engine))


def _match_faults(item: Comparison, fact: Fact, types: frozenset[str]) -> Iterator[str]:
    if types <= {"number", "flag"}:
        yield f"`{item.name}` is {_worded(types)}: `matches` searches text"
    elif fact.type == "choice" and not item.name.startswith("flag."):
        pattern = re.compile(str(item.operand))
        if not any(pattern.search(choice) for choice in fact.choices):
            yield f"`{item.operand}` matches none of the values of `{item.name}`: {', '.join(fact.choices)}"


def _operand_faults(name: str, operand: Any, types: frozenset[str], choices: frozenset[str]) -> Iterator[str]:
    if isinstance(operand, bool):
        if "flag" not in types:
            yield f"`{name}` is {_worded(types)} and never {str(operand).lower()}; use `present` to test for it"
    elif types == {"flag"}:
        yield f"`{name}` is true or false and never `{operand}`"
    elif types == {"number"}:
        if as_number(operand) is None:
            yield f"`{name}` is a number and never `{operand}`"
    elif types == {"mapping"}:
        yield f"`{name}` is a mapping and cannot be compared with `equals` or `in`"
    elif choices and str(operand) not in choices:
        hint = did_you_mean(str(operand), sorted(choices))
        yield f"`{name}` is never `{operand}`{': ' + hint if hint else ''}"


def _choices(fact: Fact, engine: EngineRange) -> frozenset[str]:
    if fact.name.startswith("flag."):
        return flag_choices(fact.name.removeprefix("flag."), engine)
    return frozenset(fact.choices)


def _conditions(item: Entry) -> Iterator[tuple[str, Mapping[str, Any], EngineRange]]:
    for number, rule in enumerate(item.before, 1):
        yield f"rule {number}", rule.when.written, _both(item.engine, rule.engine)
    for number, pattern in enumerate(item.during, 1):
        if pattern.when:
            yield f"pattern {number}", pattern.when.written, _both(item.engine, pattern.engine)
    for number, remedy in enumerate(item.remedies, 1):
        if remedy.when:
            yield f"remedy {number}", remedy.when, _both(item.engine, remedy.engine)


def _both(first: EngineRange, second: EngineRange) -> EngineRange:
    return EngineRange(",".join(filter(None, (first.text, second.text))))


def _template_faults(item: Entry, groups: frozenset[str]) -> Iterator[str]:
    """Check placeholders: rule messages and `require` use facts, all other texts use captured groups."""
    for place, text in _texts_with_facts(item):
        for name in _PLACEHOLDER.findall(text):
            if "." not in name:
                yield f"`{{{name}}}` is not filled: use a fact here, such as {{model.name}} ({place})"
            else:
                yield from (f"{fault} ({place})" for fault in name_faults(name, frozenset()))
    texts = [("title", item.title), ("why", item.why)]
    texts += [(f"remedy {n}", text) for n, remedy in enumerate(item.remedies, 1) for text in _texts(remedy)]
    for place, text in texts:
        for name in _PLACEHOLDER.findall(text):
            if "." in name:
                yield f"`{{{name}}}` is not filled: only rule messages and `require` can use facts ({place})"
            elif name not in groups:
                yield f"`{{{name}}}`: no pattern of this entry has a group `{name}` ({place})"


def _texts_with_facts(item: Entry) -> Iterator[tuple[str, str]]:
    yield from ((f"message of rule {number}", rule.message) for number, rule in enumerate(item.before, 1))
    for number, remedy in enumerate(item.remedies, 1):
        yield from ((f"`require` of remedy {number}", text) for text in remedy.require.values())


def _texts(remedy: Remedy) -> Iterable[str]:
    values = (value for value in remedy.set.values() if isinstance(value, str))
    return (remedy.text, *remedy.set, *values, *remedy.unset, *remedy.env.values())


def _case_faults(facts: Mapping[str, Any], where: str) -> Iterator[str]:
    for name, value in facts.items():
        fact = lookup(name)
        if fact is None:
            yield from (f"{where}: {fault}" for fault in name_faults(name, frozenset()))
        elif not name.startswith("flag.") and not fact.accepts(value):
            yield f"{where}: `{name}` is {_worded(frozenset({fact.type}))}, not {value!r}"


def _worded(types: frozenset[str]) -> str:
    words = {"text": "text", "number": "a number", "flag": "true or false", "list": "a list", "mapping": "a mapping"}
    return " or ".join(sorted(words.get(kind, "one of a few words") for kind in types)) or "without a type"
