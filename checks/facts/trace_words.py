"""Sentences about a condition that was evaluated against facts, for `--trace` of a launch and of a log."""

from __future__ import annotations

from typing import Any

from checks.catalog.conditions import CLOSED, Step

_OPERATORS = {"equals": "", "in": "one of ", "at_least": "at least ", "matches": "a match of "}


def why_not(step: Step) -> str:
    """Return the first reason why a condition does not hold: a false part, else the unknown fact it depends on."""
    if not step.steps:
        return _comparison(step)
    if step.word == "unless":
        inner = next((part for part in step.steps if part.holds is not False), step.steps[0])
        return f"`unless` {'holds: ' if step.holds is False else 'is undecided: '}{_state(inner)}"
    if step.word == "any":
        return f"nothing under `any` holds: {why_not(step.steps[0])}"
    failing = next((part for part in step.steps if part.holds is False), None)
    return why_not(failing or next((part for part in step.steps if part.holds is None), step.steps[0]))


def asked(step: Step) -> str:
    """Return what a comparison requires, such as `at least 90`."""
    if step.word == "present":
        return "present" if step.operand else "not present"
    return f"{_OPERATORS[step.word]}{worded(step.operand)}"


def worded(value: Any) -> str:
    """Return a value as a rule writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return "[" + ", ".join(map(worded, value)) + "]"
        case _:
            return str(value)


def _comparison(step: Step) -> str:
    requirement = f"it to be {asked(step)}" if step.word == "present" else asked(step)
    return f"{_state(step)}, but the condition requires {requirement}"


def _state(step: Step) -> str:
    if step.steps:
        return why_not(step) if step.holds is not True else f"`{step.word}` holds"
    if not step.known:
        return f"`{step.name}` is unknown"
    if step.value is None:
        return f"`{step.name}` is {'not set' if step.name.startswith(CLOSED) else 'known to be absent'}"
    return f"`{step.name}` is {worded(step.value)}"
