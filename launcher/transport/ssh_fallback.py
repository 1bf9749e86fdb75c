"""~/.ssh/config by paramiko's reader, for machines without an ssh program.

It ignores Include and takes `Match tagged` and `Match localnetwork` for true (seen with 5.1.0): a last resort.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paramiko

from launcher.errors import ProfileError


def read_config(path: Path, name: str) -> Mapping[str, tuple[str, ...]]:
    """Options for a host in the shape `ssh -G` gives. A missing file is an empty one."""
    if not path.exists():
        return {}
    try:
        found: Mapping[str, Any] = paramiko.SSHConfig.from_path(str(path)).lookup(name)
    except (paramiko.ConfigParseError, paramiko.CouldNotCanonicalize, OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"unreadable ssh configuration: {error}", where=str(path)) from error
    return {key: tuple(value) if isinstance(value, list) else (str(value),) for key, value in found.items()}
