"""`launch list`: list the profiles on the search path that can be launched, with engine range and purpose."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from launcher.cli.options import Json, ProfilesFolder
from launcher.errors import ProfileError
from launcher.profile.resolve import available, resolve, search_path


def main(
    profiles: ProfilesFolder = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="include profiles that exist only to be extended")
    ] = False,
    as_json: Json = False,
) -> int:
    """List the profiles that can be launched."""
    folders = search_path(profiles)
    rows, broken = [], []
    for name in available(folders):
        try:
            profile = resolve(name, folders)
        except ProfileError as error:
            broken.append({"name": name, "error": f"{error.where}: {error.message}"})
            continue
        if everything or not (profile.abstract or name.rpartition("/")[2].startswith("_") or name.startswith("_")):
            purpose = profile.why.split(". ")[0].rstrip(".")
            rows.append({"name": name, "engine": profile.engine.text, "why": purpose, "path": profile.path})
    if as_json:
        sys.stdout.write(json.dumps({"profiles": rows, "broken": broken}) + "\n")
        return 2 if broken else 0
    width = max((len(row["name"]) for row in rows), default=0)
    ranges = max((len(row["engine"]) for row in rows), default=0)
    for row in rows:
        sys.stdout.write(f"{row['name']:<{width}}  {row['engine'] or 'any':<{ranges}}  {row['why']}\n")
    for item in broken:
        sys.stderr.write(f"broken: {item['name']}: {item['error']}\n")
    return 2 if broken else 0
