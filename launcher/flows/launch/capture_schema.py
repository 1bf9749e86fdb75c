"""The flag schema of an engine that is no known release, out of its own source: on a host, in a wheel or folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from checks.engine.source.program import describe
from checks.engine.source.remote_program import program_text
from checks.engine.source.tree import SourceError, from_root, from_wheel
from launcher.errors import HostCommandFailed, UsageError
from launcher.transport.base import Command, Transport
from launcher.transport.inventory import Host


def capture_host(transport: Transport, host: Host, python: str = "") -> dict[str, Any]:
    """Schema document of the engine that the host's interpreter would import; nothing is imported there."""
    words = (python or host.python or "python3", "-")
    result = transport.run(
        Command(argv=words, label="schema", stdin=program_text().encode(), env=dict(host.env), timeout=60)
    )
    if result.exit != 0:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise HostCommandFailed(
            f"no engine source to read on {host.name}: {lines[-1] if lines else 'no message'}", where=host.name
        )
    return dict(json.loads(result.stdout))


def capture_file(path: Path) -> dict[str, Any]:
    """Schema document of a wheel or a source folder here. Raises UsageError when there is no engine in it."""
    try:
        return describe(from_wheel(str(path)) if path.is_file() else from_root(str(path)))
    except (SourceError, OSError) as error:
        raise UsageError(f"{path}: {error}") from error
