"""What `--trace` shows, once: rows for people, a document for `--json`. The judging is in `checks.*.trace`.

Free of rich, as `diagnose_view` is; `render.trace` adds the colours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from checks.catalog.conditions import Facts, Step
from checks.facts.origins import Sources, origin
from checks.facts.trace_words import asked, worded

if TYPE_CHECKING:
    from checks.before.rule_trace import RuleTrace, TracedRule
    from checks.during.trace import CauseTrace, TracedPattern

_SHOWN_CHARS = 100
_WORDS = {True: "yes", False: "no", None: "unknown"}


class Known(Struct, frozen=True, kw_only=True):
    """The facts that a trace was made with, and who stated or measured them."""

    facts: Facts
    sources: Sources


class TraceRow(Struct, frozen=True, kw_only=True):
    """One line of a trace."""

    label: str  # trace, rule 1, pattern 1, result; empty for a condition or a text
    text: str
    holds: str = ""  # yes, no, unknown; empty where that is no question
    depth: int = 0


def rule_rows(found: RuleTrace, known: Known) -> Iterator[TraceRow]:
    """A trace of rules in reading order."""
    yield TraceRow(label="trace", text=_head(found.id, found.release, found.engine, found.applies))
    for rule in found.rules:
        yield TraceRow(label=f"rule {rule.number}", text=_rule_head(rule), holds=_WORDS[rule.holds])
        for step in rule.condition.steps:
            yield from _step_rows(step, known, 0)
    yield TraceRow(label="result", text=found.sentence)


def cause_rows(found: CauseTrace, known: Known) -> Iterator[TraceRow]:
    """A trace of patterns in reading order."""
    yield TraceRow(label="trace", text=f"{found.id} ({found.role}), SGLang {found.release or 'of unknown release'}")
    for pattern in found.patterns:
        yield TraceRow(label=f"pattern {pattern.number}", text=_pattern_head(pattern), holds=_WORDS[pattern.speaks])
        for text in pattern.texts:
            at = f"line {', '.join(map(str, text.lines))}" if text.lines else "no line"
            good = bool(text.lines) is not (text.kind == "without")
            yield TraceRow(label="", text=f"{text.kind} `{text.regex}`: {at}", holds=_WORDS[good])
        for step in pattern.condition.steps if pattern.condition else ():
            yield from _step_rows(step, known, 0)
    yield TraceRow(label="result", text=found.sentence)


def write(rows: Iterator[TraceRow]) -> None:
    """The rows on standard output, in colours where that is a terminal."""
    if sys.stdout.isatty():
        from launcher.cli import render

        render.trace(render.out(), rows)
        return
    for row in rows:
        sys.stdout.write(plain_row(row) + "\n")


def plain_row(row: TraceRow) -> str:
    """One row without colours."""
    if row.label:
        return " ".join(filter(None, (f"{row.label:<10}", f"{row.holds:<8}" if row.holds else "", row.text)))
    return f"  {row.holds:<8} {'  ' * row.depth}{row.text}"


def rule_document(found: RuleTrace, known: Known) -> dict[str, Any]:
    """The JSON form of a trace of rules, a contract: keys are only ever added."""
    rules = [
        {
            "rule": rule.number, "severity": rule.severity, "message": rule.message, "engine": rule.engine,
            "applies": rule.applies, "holds": rule.holds, "condition": _step_document(rule.condition, known),
        }
        for rule in found.rules
    ]  # fmt: skip
    return {
        "id": found.id, "release": found.release, "engine": found.engine, "applies": found.applies, "rules": rules,
        "fired": found.fired > 0, "sentence": found.sentence,
    }  # fmt: skip


def cause_document(found: CauseTrace, known: Known) -> dict[str, Any]:
    """The JSON form of a trace of patterns, a contract: keys are only ever added."""
    patterns = [
        {
            "pattern": item.number, "weight": item.weight, "yields_to": list(item.yields_to),
            "engine": list(item.engine), "applies": item.applies,
            "texts": [{"kind": text.kind, "regex": text.regex, "lines": list(text.lines)} for text in item.texts],
            "condition": item.condition and _step_document(item.condition, known), "line": item.line,
            "speaks": item.speaks, "reason": item.reason,
        }
        for item in found.patterns
    ]  # fmt: skip
    return {
        "id": found.id, "role": found.role, "release": found.release, "patterns": patterns, "fired": found.fired,
        "winner": found.winner, "sentence": found.sentence,
    }  # fmt: skip


def _head(slug: str, release: str, engine: str, applies: bool) -> str:
    judged = f"judged for SGLang {release}" if release else "judged for an unknown release"
    scope = f"the cause is about SGLang {engine}" if engine else "the cause is about every release"
    return f"{slug}: {judged}; {scope}{'' if applies else ', which leaves this one out'}"


def _rule_head(rule: TracedRule) -> str:
    scope = "" if not rule.engine else f", SGLang {rule.engine}{'' if rule.applies else ', which leaves this one out'}"
    return f"{rule.severity}{scope}: {rule.message}"


def _pattern_head(item: TracedPattern) -> str:
    scope = "".join(f", SGLang {text}" for text in item.engine if text)
    left = "" if item.applies else ", which leaves this one out"
    at = f", speaks on line {item.line}" if item.line else ", speaks" if item.speaks else ", is silent"
    first = f", yields to {', '.join(item.yields_to)}" if item.yields_to else ""
    return f"weight {item.weight}{first}{scope}{left}{at}"


def _step_rows(step: Step, known: Known, depth: int) -> Iterator[TraceRow]:
    if step.name:
        yield TraceRow(label="", text=_compared(step, known), holds=_WORDS[step.holds], depth=depth)
        return
    yield TraceRow(label="", text=f"{step.word}:", holds=_WORDS[step.holds], depth=depth)
    for part in step.steps:
        yield from _step_rows(part, known, depth + 1)


def _compared(step: Step, known: Known) -> str:
    value = worded(step.value)
    value = value if len(value) <= _SHOWN_CHARS else value[:_SHOWN_CHARS] + " .."
    there = f"{value}, " if step.name in known.facts else ""
    return f"{step.name} is {asked(step)} — {there}{origin(step.name, known.facts, known.sources)}"


def _step_document(step: Step, known: Known) -> dict[str, Any]:
    if step.steps:
        return {"word": step.word, "holds": step.holds, "steps": [_step_document(part, known) for part in step.steps]}
    return {
        "word": step.word, "fact": step.name, "operand": step.operand, "known": step.known, "value": step.value,
        "holds": step.holds, "origin": origin(step.name, known.facts, known.sources),
    }  # fmt: skip
