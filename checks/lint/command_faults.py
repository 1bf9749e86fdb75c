"""What is wrong with the commands of remedies: prose where a person, or a program, will paste a command.

`run` changes something and is complete; `inspect` only looks; `require` names packages as pip takes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from checks.catalog.entries import Entry
from checks.vocabulary import Remedy

# What is on the hosts that run an engine, or comes with it; add a program here when a remedy needs it.
PROGRAMS = frozenset({
    "apt-get", "cat", "df", "dmesg", "docker", "git", "hf", "ibstat", "ibv_devices", "ip", "ldconfig", "ldd", "ls",
    "lsof", "modprobe", "nvcc", "nvidia-smi", "pip", "python", "python3", "rm", "ss", "systemctl", "ulimit",
})  # fmt: skip
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w.+-]+")
_PROSE = re.compile(r" or |, |; | \(|\.$")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OPEN = re.compile(r"<[\w ./-]+>|\{[\w .-]+\}")
_FACT = re.compile(r"\{[\w.-]+\}")


def commands_are_commands(item: Entry) -> Iterator[str]:
    """`run` and `inspect` start with a program and hold no prose, `run` no placeholder; `require` is what pip takes."""
    for remedy in item.remedies:
        for key, command in (("run", remedy.run), ("inspect", remedy.inspect)):
            if command and (fault := _fault(command)):
                yield f"`{key}: {command}` {fault}"
        if found := _OPEN.search(remedy.run):
            yield f"`run: {remedy.run}` leaves {found[0]} open; say it in `text`, or use `require`"
        yield from _requirement_faults(remedy)


def _fault(command: str) -> str:
    """Why a text is not a command; empty for one that is."""
    program = command.split(maxsplit=1)[0]
    if program not in PROGRAMS and not _PATH.match(program):
        return f"starts with `{program}`, which is not a known program; prose belongs in `text`"
    if found := _PROSE.search(_QUOTED.sub("''", command)):
        return f"reads like prose at `{found[0].strip()}`; keep the command and put the rest in `text`"
    return ""


def _requirement_faults(remedy: Remedy) -> Iterator[str]:
    for name, wanted in remedy.require.items():
        try:
            Requirement(name)
            SpecifierSet(_FACT.sub("1.0", wanted))
        except (InvalidRequirement, InvalidSpecifier):
            yield f"`require: {{{name}: {wanted}}}` is not a requirement such as torch: '>=2.9,<3'"
