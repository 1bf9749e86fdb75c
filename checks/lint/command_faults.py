"""Find faults in the commands of remedies: prose where a person or a program pastes a command.

`run` changes something and is complete; `inspect` changes nothing; `require` names packages as pip accepts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from checks.catalog.entries import Entry
from checks.vocabulary import Remedy

# Programs on the hosts that run an engine, or installed with it; add a program here when a remedy needs it.
PROGRAMS = frozenset({
    "apt-get", "cat", "df", "dmesg", "docker", "git", "hf", "ibstat", "ibv_devices", "ip", "ldconfig", "ldd", "ls",
    "lsof", "modprobe", "nvcc", "nvidia-smi", "pip", "python", "python3", "rm", "ss", "systemctl", "ulimit",
})  # fmt: skip
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w.+-]+")
_PROSE = re.compile(r" or |, |; | \(|\.$")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PLACEHOLDER = re.compile(r"<[\w ./-]+>|\{[\w .-]+\}")
_FACT = re.compile(r"\{[\w.-]+\}")


def commands_are_commands(item: Entry) -> Iterator[str]:
    """Check that `run` and `inspect` are commands without prose, `run` has no placeholder, and `require` is valid."""
    for remedy in item.remedies:
        for key, command in (("run", remedy.run), ("inspect", remedy.inspect)):
            if command and (fault := _fault(command)):
                yield f"`{key}: {command}` {fault}"
        if placeholder := _PLACEHOLDER.search(remedy.run):
            yield f"`run: {remedy.run}` contains the placeholder {placeholder[0]}; use `text` or `require` instead"
        yield from _requirement_faults(remedy)


def _fault(command: str) -> str:
    """Return why a text is not a command; empty for a command."""
    program = command.split(maxsplit=1)[0]
    if program not in PROGRAMS and not _PATH.match(program):
        return f"starts with `{program}`, which is not a known program; move prose to `text`"
    if prose := _PROSE.search(_QUOTED.sub("''", command)):
        return f"reads like prose at `{prose[0].strip()}`; keep only the command and move the prose to `text`"
    return ""


def _requirement_faults(remedy: Remedy) -> Iterator[str]:
    for name, specifier in remedy.require.items():
        try:
            Requirement(name)
            SpecifierSet(_FACT.sub("1.0", specifier))
        except (InvalidRequirement, InvalidSpecifier):
            yield f"`require: {{{name}: {specifier}}}` is not a requirement such as torch: '>=2.9,<3'"
