"""Read the flag schema of an engine that is not a known release from its source: on a host, in a wheel or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checks.engine.source.program import describe
from checks.engine.source.remote_program import program_text
from checks.engine.source.tree import SourceError, from_root, from_wheel
from launcher.errors import HostCommandFailed, UsageError
from launcher.transport.answers import document, last_line
from launcher.transport.base import Command, Transport
from launcher.transport.inventory import Host


def capture_host(transport: Transport, host: Host, python: str = "") -> dict[str, Any]:
    """Return the schema document of the engine that the host's interpreter would import, without importing it.

    Raises HostCommandFailed if that interpreter finds no engine or cannot read its source.
    """
    words = (python or host.python or "python3", "-")
    command = Command(argv=words, label="schema", stdin=program_text().encode(), env=dict(host.env), timeout=60)
    result = transport.run(command)
    if result.exit != 0:
        reason = last_line(result.stderr)
        raise HostCommandFailed(f"cannot read the engine's source on {host.name}: {reason}", where=host.name)
    return dict(document(transport, command, result.stdout))


def capture_file(path: Path) -> dict[str, Any]:
    """Return the schema document of a local wheel or source folder. Raises UsageError if it contains no engine."""
    try:
        return describe(from_wheel(str(path)) if path.is_file() else from_root(str(path)))
    except (SourceError, OSError) as error:
        raise UsageError(f"{path}: {error}") from error
