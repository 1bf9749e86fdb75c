"""Small standard-library programs that are sent to the host and run there under whatever python3 it has (3.8+).

They travel as text on standard input together with their arguments, so that nothing has to be installed and nothing
shows in `ps`. `bundle` joins a program with the modules of this package that it imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from launcher.transport.base import Command

_IMPORT = "from launcher.hostside."
# The first python3 that runs; the engine's own interpreter is the last resort. -E -s: nothing of the user's leaks in.
_SHELL = (
    'for p in python3 "$1" /usr/bin/python3; do command -v "$p" >/dev/null 2>&1 && exec "$p" -E -s -u -; done; exit 127'
)


def command(name: str, arguments: Mapping[str, Any], *, python: str = "", timeout: float = 60.0) -> Command:
    """The command that runs a program of this package with `arguments` (JSON-able) as its global ARGS."""
    return Command(
        argv=("sh", "-c", _SHELL, "sh", python or "python3"),
        label=name,
        stdin=bundle(name, arguments),
        timeout=timeout,
    )


def bundle(name: str, arguments: Mapping[str, Any]) -> bytes:
    """One self-contained program text."""
    head = f"from __future__ import annotations\nARGS = {dict(arguments)!r}\n"
    return (head + "\n".join(_source(part) for part in _parts(name))).encode()


@cache
def _parts(name: str) -> tuple[str, ...]:
    """The modules a program consists of, imported ones first."""
    found: list[str] = []
    for line in _text(name).splitlines():
        if line.startswith(_IMPORT):
            found += [part for part in _parts(line.split()[1].rpartition(".")[2]) if part not in found]
    return (*found, name)


@cache
def _source(name: str) -> str:
    lines = _text(name).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith((_IMPORT, "from __future__", "ARGS = {}")))


def _text(name: str) -> str:
    return (files(__name__) / f"{name}.py").read_text()
