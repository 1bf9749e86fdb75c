"""Small standard-library programs that are sent to the host and run with whatever python3 it has (3.8+).

A program and its arguments are sent as text on standard input, so that nothing has to be installed and nothing is
visible in `ps`. `bundle` joins a program with the modules of this package that it imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from launcher.transport.base import Command

_IMPORT = "from launcher.hostside."
# Runs the first interpreter that exists: on PATH, the engine's, /usr/bin. -E -s ignore user variables and packages.
_SHELL = (
    'for p in python3 "$1" /usr/bin/python3; do command -v "$p" >/dev/null 2>&1 && exec "$p" -E -s -u -; done; exit 127'
)


def command(name: str, arguments: Mapping[str, Any], *, python: str = "", timeout: float = 60.0) -> Command:
    """Return the command that runs a program of this package with `arguments` as its global ARGS.

    `arguments` holds JSON types only; `python` is the interpreter to try after python3; `timeout` is in seconds.
    """
    return Command(
        argv=("sh", "-c", _SHELL, "sh", python or "python3"),
        label=name,
        stdin=bundle(name, arguments),
        timeout=timeout,
    )


def bundle(name: str, arguments: Mapping[str, Any]) -> bytes:
    """Return the self-contained text of a program, with its arguments and the modules that it imports."""
    head = f"from __future__ import annotations\nARGS = {dict(arguments)!r}\n"
    return (head + "\n".join(_source(part) for part in _parts(name))).encode()


@cache
def _parts(name: str) -> tuple[str, ...]:
    """Return the modules of which a program consists, imported ones first."""
    imported: list[str] = []
    for line in _text(name).splitlines():
        if line.startswith(_IMPORT):
            imported += [part for part in _parts(line.split()[1].rpartition(".")[2]) if part not in imported]
    return (*imported, name)


@cache
def _source(name: str) -> str:
    lines = _text(name).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith((_IMPORT, "from __future__", "ARGS = {}")))


def _text(name: str) -> str:
    return (files(__name__) / f"{name}.py").read_text()
