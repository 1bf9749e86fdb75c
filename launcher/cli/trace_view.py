"""The printed form of `--trace`: rows for people, a document for `--json`. The tracing itself is in `checks.*.trace`.

It does not import rich, like `diagnose_view`; `render.trace` adds the colours.
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
_EXCLUDED = ", which excludes this release"


class Known(Struct, frozen=True, kw_only=True):
    """The facts that a trace used, and the source that stated or measured each."""

    facts: Facts
    sources: Sources


class TraceRow(Struct, frozen=True, kw_only=True):
    """One line of a trace."""

    label: str  # trace, rule 1, pattern 1, result; empty for a condition or a text
    text: str
    holds: str = ""  # yes, no, unknown; empty if the row is not a condition
    depth: int = 0


def rule_rows(trace: RuleTrace, known: Known) -> Iterator[TraceRow]:
    """Yield the rows of a trace of rules in reading order."""
    yield TraceRow(label="trace", text=_head(trace.id, trace.release, trace.engine, trace.applies))
    for rule in trace.rules:
        yield TraceRow(label=f"rule {rule.number}", text=_rule_head(rule), holds=_WORDS[rule.holds])
        for step in rule.condition.steps:
            yield from _step_rows(step, known, 0)
    yield TraceRow(label="result", text=trace.sentence)


def cause_rows(trace: CauseTrace, known: Known) -> Iterator[TraceRow]:
    """Yield the rows of a trace of patterns in reading order."""
    yield TraceRow(label="trace", text=f"{trace.id} ({trace.role}), {_release(trace.release)}")
    for pattern in trace.patterns:
        yield TraceRow(label=f"pattern {pattern.number}", text=_pattern_head(pattern), holds=_WORDS[pattern.speaks])
        for text in pattern.texts:
            place = f"line {', '.join(map(str, text.lines))}" if text.lines else "on no line"
            holds = bool(text.lines) is not (text.kind == "without")
            yield TraceRow(label="", text=f"{text.kind} `{text.regex}`: {place}", holds=_WORDS[holds])
        for step in pattern.condition.steps if pattern.condition else ():
            yield from _step_rows(step, known, 0)
    yield TraceRow(label="result", text=trace.sentence)


def write(rows: Iterator[TraceRow]) -> None:
    """Print the rows to standard output, in colours if it is a terminal."""
    if sys.stdout.isatty():
        from launcher.cli import render

        render.trace(render.out(), rows)
        return
    for row in rows:
        sys.stdout.write(plain_row(row) + "\n")


def plain_row(row: TraceRow) -> str:
    """Return one row as text without colours."""
    if row.label:
        return " ".join(filter(None, (f"{row.label:<10}", f"{row.holds:<8}" if row.holds else "", row.text)))
    return f"  {row.holds:<8} {'  ' * row.depth}{row.text}"


def rule_document(trace: RuleTrace, known: Known) -> dict[str, Any]:
    """Return the JSON form of a trace of rules. It is a contract: keys are only ever added."""
    rules = [
        {
            "rule": rule.number, "severity": rule.severity, "message": rule.message, "engine": rule.engine,
            "applies": rule.applies, "holds": rule.holds, "condition": _step_document(rule.condition, known),
        }
        for rule in trace.rules
    ]  # fmt: skip
    return {
        "id": trace.id, "release": trace.release, "engine": trace.engine, "applies": trace.applies, "rules": rules,
        "fired": trace.fired > 0, "sentence": trace.sentence,
    }  # fmt: skip


def cause_document(trace: CauseTrace, known: Known) -> dict[str, Any]:
    """Return the JSON form of a trace of patterns. It is a contract: keys are only ever added."""
    patterns = [
        {
            "pattern": pattern.number, "weight": pattern.weight, "yields_to": list(pattern.yields_to),
            "engine": list(pattern.engine), "applies": pattern.applies,
            "texts": [{"kind": text.kind, "regex": text.regex, "lines": list(text.lines)} for text in pattern.texts],
            "condition": pattern.condition and _step_document(pattern.condition, known), "line": pattern.line,
            "speaks": pattern.speaks, "reason": pattern.reason,
        }
        for pattern in trace.patterns
    ]  # fmt: skip
    return {
        "id": trace.id, "role": trace.role, "release": trace.release, "patterns": patterns, "fired": trace.fired,
        "winner": trace.winner, "sentence": trace.sentence,
    }  # fmt: skip


def _release(release: str) -> str:
    return f"SGLang {release}" if release else "unknown SGLang release"


def _head(slug: str, release: str, engine: str, applies: bool) -> str:
    judged = f"judged for SGLang {release}" if release else "judged for an unknown release"
    scope = f"the cause concerns SGLang {engine}" if engine else "the cause concerns every release"
    return f"{slug}: {judged}; {scope}{'' if applies else _EXCLUDED}"


def _rule_head(rule: TracedRule) -> str:
    scope = "" if not rule.engine else f", SGLang {rule.engine}{'' if rule.applies else _EXCLUDED}"
    return f"{rule.severity}{scope}: {rule.message}"


def _pattern_head(pattern: TracedPattern) -> str:
    scope = "".join(f", SGLang {text}" for text in pattern.engine if text)
    excluded = "" if pattern.applies else _EXCLUDED
    result = f", fires on line {pattern.line}" if pattern.line else ", fires" if pattern.speaks else ", does not fire"
    yields = f", yields to {', '.join(pattern.yields_to)}" if pattern.yields_to else ""
    return f"weight {pattern.weight}{yields}{scope}{excluded}{result}"


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
    measured = f"{value}, " if step.name in known.facts else ""
    return f"{step.name} is {asked(step)} — {measured}{origin(step.name, known.facts, known.sources)}"


def _step_document(step: Step, known: Known) -> dict[str, Any]:
    if step.steps:
        return {"word": step.word, "holds": step.holds, "steps": [_step_document(part, known) for part in step.steps]}
    return {
        "word": step.word, "fact": step.name, "operand": step.operand, "known": step.known, "value": step.value,
        "holds": step.holds, "origin": origin(step.name, known.facts, known.sources),
    }  # fmt: skip
