"""Check the value of one flag against its declaration: number of values, type, choices. `flags` checks the names."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator

from checks.engine.flag_history import canonical_elsewhere
from checks.engine.flag_schema import Flag, FlagSchema
from checks.vocabulary import Finding, FlagValue, Remedy, Severity

SLUG = "flag-value-not-a-choice"
# srt/utils/common.py of 0.5.14 and later: plain integers, 16k, 1.5M, 1Ki
HUMAN_READABLE = re.compile(r"\s*(?:\d+(?:\.\d+)?[kMGT]|\d+[KMGT]i|[-+]?\d+)\s*\Z")


def check_value(name: str, value: FlagValue, flag: Flag, schema: FlagSchema) -> Iterator[Finding]:
    """Yield a finding for each reason why argparse would reject the value. `value` is never False (an absent flag)."""
    complaint = _words_complaint(value, flag)
    if complaint:
        yield _finding(name, f"--{name} {complaint}", (), Severity.ERROR)
        return
    for word in [value] if isinstance(value, str) else value if isinstance(value, list) else []:
        complaint = _type_complaint(word, flag)
        if complaint:
            yield _finding(name, f"--{name} {complaint}", (), Severity.ERROR)
        elif not _is_choice(word, flag):
            yield _not_a_choice(name, word, flag, schema)


def _words_complaint(value: FlagValue, flag: Flag) -> str:
    count = len(value) if isinstance(value, list) else 0 if value is True else 1
    match flag.nargs:
        case 0:
            return "" if value is True else f"is a switch and takes no value, but has {_shown(value)}"
        case None:
            return "" if count == 1 else f"takes exactly one value, but has {_shown(value)}"
        case "+":
            return "" if count else "takes at least one value"
        case "?":
            return "" if count < 2 else f"takes at most one value, but has {_shown(value)}"
        case int(expected):
            return "" if count == expected else f"takes {expected} values, but has {_shown(value)}"
        case _:
            return ""


def _shown(value: FlagValue) -> str:
    match value:
        case True:
            return "none"
        case list():
            return f"`{' '.join(value)}`" if value else "none"
        case _:
            return f"`{value}`"


def _type_complaint(word: str, flag: Flag) -> str:
    reader = TYPES.get(flag.type or "str")
    if reader is None or reader[1](word):
        return ""
    return f"takes {reader[0]}, not `{word}`"


def _reads(function: Callable[[str], object]) -> Callable[[str], bool]:
    def test(word: str) -> bool:
        try:
            function(word)
        except ValueError:
            return False
        return True

    return test


TYPES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "int": ("a whole number", _reads(int)),
    "float": ("a number", _reads(float)),
    "loads": ("JSON", _reads(json.loads)),
    "json_list_type": ("a JSON list", _reads(json.loads)),
    "human_readable_int": ("a whole number such as 8192, 16k or 1Mi", lambda w: bool(HUMAN_READABLE.match(w))),
}


def _is_choice(word: str, flag: Flag) -> bool:
    return flag.choices is None or word in {str(choice) for choice in flag.choices if choice is not None}


def _not_a_choice(name: str, word: str, flag: Flag, schema: FlagSchema) -> Finding:
    """Return the finding for a value outside the choices: an error only when the schema is exactly that release's.

    Another release, or a plug-in, may accept more choices.
    """
    choices = [str(choice) for choice in flag.choices or () if choice is not None]
    near = difflib.get_close_matches(word, choices, n=3, cutoff=0.5)
    near = [c for c in choices if c.replace("-", "_").lower() == word.replace("-", "_").lower()] or near
    canonical = canonical_elsewhere(name) or name
    remedies = tuple(Remedy(text=f"Did you mean `{choice}`?", set={canonical: choice}) for choice in near)
    listed = Remedy(text=f"Choose one of: {', '.join(choices)}.", set={canonical: "<choice>"}, concrete=False)
    message = f"--{name} {word}: SGLang {schema.version} accepts only {', '.join(choices)}"
    severity = Severity.ERROR if schema.exact else Severity.WARNING
    return _finding(name, message, (*remedies, listed), severity)


def _finding(name: str, message: str, remedies: tuple[Remedy, ...], severity: Severity) -> Finding:
    canonical = canonical_elsewhere(name) or name
    if not remedies:
        remedies = (Remedy(text=f"Correct the value of --{name}.", set={canonical: "<value>"}, concrete=False),)
    return Finding(id=SLUG, severity=severity, message=message, remedies=remedies, subject=f"flag.{name}")
