"""Runs a program on a host and returns its output, or the JSON document that it prints.

A Transport only reports an exit code; this module turns a non-zero code or unreadable output into an error.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from launcher.errors import HostCommandFailed
from launcher.transport.base import Command, Transport

_FIRST_OR_LINE = re.compile(r"\A[^\[{]*[\[{]|^[\[{]", re.MULTILINE)


def output(transport: Transport, command: Command) -> bytes:
    """Return the standard output of a program that exits 0.

    Raises HostCommandFailed, HostUnreachable, TransportTimeout.
    """
    result = transport.run(command)
    if result.exit != 0:
        raise failed(transport, command, result.exit, result.stderr)
    return result.stdout


def document(transport: Transport, command: Command, data: bytes) -> Any:
    """Return the JSON document at the end of `data`, skipping what a login shell printed. Raises HostCommandFailed.

    It begins at the first bracket, or at a later one that begins a line, as a greeting may contain brackets.
    """
    text = data.decode("utf-8", "replace")
    for start in _FIRST_OR_LINE.finditer(text):
        with suppress(ValueError):
            return json.loads(text[start.end() - 1 :])
    raise HostCommandFailed(
        f"`{command.label}` on `{transport.name}` printed {text[:200]!r} instead of JSON", where=transport.name
    )


def ask(transport: Transport, command: Command) -> Any:
    """Run a program and return the JSON document that it prints. Raises the errors of `output`."""
    return document(transport, command, output(transport, command))


def failed(transport: Transport, command: Command, code: int, stderr: bytes) -> HostCommandFailed:
    """Return the error for a program that exited with `code`; 127 means that the host has no Python to run it."""
    if code == 127:
        return HostCommandFailed(
            f"no python3 was found on `{transport.name}`",
            where=transport.name,
            hint="name an interpreter in hosts.yaml: `python: /path/to/python`",
        )
    return HostCommandFailed(
        f"`{command.label}` failed on `{transport.name}` (exit {code}): {last_line(stderr)}", where=transport.name
    )


def last_line(stderr: bytes) -> str:
    """Return the last line that a program wrote to standard error."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no error message"
