"""`launch schema`: print the JSON Schema of profiles, for `# yaml-language-server: $schema=...`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from checks.engine.flag_schema import load
from launcher.cli.options import release
from launcher.profile.editor_schema import profile_schema


def main(
    engine: Annotated[
        str,
        typer.Option("--engine", callback=release, help="SGLang release whose flags to complete; default: newest"),
    ] = "",
) -> int:
    """Print the JSON Schema of profiles, for editors."""
    sys.stdout.write(json.dumps(profile_schema(load(engine)), indent=1) + "\n")
    return 0
