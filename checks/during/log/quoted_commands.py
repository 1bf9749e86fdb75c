"""Read flags and variables from the launch command that a log or a report quotes.

Recognised are `VAR=x python3 -m sglang.launch_server --tp 4`, `sglang serve`, `export VAR=x`, `docker run -e VAR=x`,
also after shell prompts and over continued lines. The `server_args=` line of the engine takes precedence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from checks.during.log.lines import Line
from checks.vocabulary import FlagValue

_PROGRAM = re.compile(r"(?:python[\d.]* -m |/|^|[ \"'])sglang(?:\.launch_server| serve)\b(?=[ \\]|$)")
_EXPORT = re.compile(r"^\W{0,4}export ([A-Z][A-Z0-9_]*)=(\S+)")
_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
_EXAMPLE = re.compile(r"\s*Example: ")  # the engine's own notice, with placeholders
_SHELL = re.compile(r"\d?>|[|&;]")  # words after it are not arguments of the engine
_MAX_CHARS = 8_192
_MAX_LINES = 60  # of one continued command


class Command(Struct, frozen=True, kw_only=True):
    """The flags and variables of a command; names of flags are without dashes, as typed."""

    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


def read(lines: Iterable[Line]) -> Command:
    """Return the flags of the last command that starts an engine, its variables, and every exported variable."""
    flags: dict[str, FlagValue] = {}
    env: dict[str, str] = {}
    for text in _joined(line.text for line in lines if not line.headed):
        if exported := _EXPORT.match(text):
            env[exported[1]] = exported[2].strip("\"'")
            continue
        program = _PROGRAM.search(text) if "sglang" in text and not _EXAMPLE.match(text) else None
        if program and " --" in text[program.end() :] + " --":
            env.update(_assigned(_words(text[: program.start()])))
            flags = dict(_flags(_words(text[program.end() :])))
    return Command(flags=flags, env=env)


def _joined(texts: Iterable[str]) -> Iterator[str]:
    """Join lines that end with a backslash to the next line."""
    held: list[str] = []
    for text in texts:
        held.append(text.rstrip()[:_MAX_CHARS])
        if held[-1].endswith("\\") and len(held) < _MAX_LINES:
            held[-1] = held[-1][:-1]
            continue
        yield " ".join(held) if len(held) > 1 else held[0]
        held = []
    if held:
        yield " ".join(held)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote that is not closed
        return text.split()


def _assigned(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        if assignment := _ASSIGNMENT.fullmatch(word.removeprefix("--env=")):
            yield assignment[1], assignment[2]


def _flags(words: Iterable[str]) -> Iterator[tuple[str, FlagValue]]:
    name, values = "", []
    for word in (*words, "--"):
        if not word.startswith("--"):
            if _SHELL.match(word):
                break
            values.append(word)
            continue
        if name:
            yield name, _value(values)
        name, equals, value = word[2:].partition("=")
        values = [value] if equals else []
    else:
        return
    if name:
        yield name, _value(values)


def _value(values: list[str]) -> FlagValue:
    return True if not values else values[0] if len(values) == 1 else list(values)
