"""The answer of a program that was sent to a host: its output, or the JSON document at its end. Failures are named."""

from __future__ import annotations

import json
from typing import Any

from launcher.errors import HostCommandFailed
from launcher.transport.base import Command, Transport


def output(transport: Transport, command: Command) -> bytes:
    """Standard output of a program that ended well. Raises HostCommandFailed, HostUnreachable, TransportTimeout."""
    result = transport.run(command)
    if result.exit != 0:
        raise failed(transport, command, result.exit, result.stderr)
    return result.stdout


def document(transport: Transport, command: Command, data: bytes) -> Any:
    """The JSON document that ends `data`: a login shell may print in front of it. Raises HostCommandFailed."""
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text[min(index for index in (text.find("{"), text.find("[")) if index >= 0) :])
    except ValueError as error:
        raise HostCommandFailed(
            f"`{command.label}` on {transport.name} answered {text[:200]!r} instead of JSON", where=transport.name
        ) from error


def ask(transport: Transport, command: Command) -> Any:
    """The JSON document that a program prints. Raises as `output`."""
    return document(transport, command, output(transport, command))


def failed(transport: Transport, command: Command, code: int, stderr: bytes) -> HostCommandFailed:
    """The error for a program that ended with `code`; 127 means that the host has no Python to run it."""
    if code == 127:
        return HostCommandFailed(
            f"{transport.name} has no python3",
            where=transport.name,
            hint="name one in hosts.yaml: `python: /path/to/python`",
        )
    return HostCommandFailed(
        f"`{command.label}` failed on {transport.name} (exit {code}): {last_line(stderr)}", where=transport.name
    )


def last_line(stderr: bytes) -> str:
    """The last line that a program wrote to standard error."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no message"
