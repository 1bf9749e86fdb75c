"""Reads ~/.ssh/config with paramiko, for machines without an ssh program.

This is a last resort: paramiko 5.1.0 ignores Include and treats `Match tagged` and `Match localnetwork` as true.
`ssh_config` uses `ssh -G` wherever it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paramiko

from launcher.errors import ProfileError


def read_config(path: Path, name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the options for a host in the form of `ssh -G`; empty for a missing file. Raises ProfileError."""
    if not path.exists():
        return {}
    try:
        options: Mapping[str, Any] = paramiko.SSHConfig.from_path(str(path)).lookup(name)
    except (paramiko.ConfigParseError, paramiko.CouldNotCanonicalize, OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"cannot parse the ssh configuration: {error}", where=str(path)) from error
    return {key: tuple(value) if isinstance(value, list) else (str(value),) for key, value in options.items()}
