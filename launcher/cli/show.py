"""`launch show`: print a profile after `extends`, with --resolved also the file and line of each value."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from launcher.cli.options import Envs, Json, ProfilesFolder, Sets, Unsets
from launcher.flows.launch.launch import profile_json
from launcher.profile.file import Profile
from launcher.profile.resolve import override, resolve, search_path


def main(
    name: Annotated[str, typer.Argument(metavar="PROFILE", help="profile name, or a .yaml file")],
    resolved: Annotated[bool, typer.Option("--resolved", help="add file, line and reason of each value")] = False,
    sets: Sets = None,
    unsets: Unsets = None,
    envs: Envs = None,
    profiles: ProfilesFolder = None,
    as_json: Json = False,
) -> int:
    """Show a profile after `extends`; --resolved adds the file and line of each value."""
    profile = override(resolve(name, search_path(profiles)), sets or [], unsets or [], envs or [])
    if as_json:
        sys.stdout.write(json.dumps(profile_json(profile), ensure_ascii=False) + "\n")
        return 0
    for line in lines(profile, resolved):
        sys.stdout.write(line + "\n")
    return 0


def lines(profile: Profile, resolved: bool) -> list[str]:
    """Return the profile as lines that read like its YAML; with `resolved` each value has its origin as a comment."""
    rows: list[tuple[str, str]] = [(f"# {profile.name} ({profile.digest})", short(profile.path))]
    if profile.why:
        rows.append((f"why: {profile.why}", ""))
    if profile.engine.text:
        rows.append((f"engine: '{profile.engine.text}'", ""))
    for section, items in (("model", profile.model), ("hardware", profile.hardware), ("flags", profile.flags)):
        if items:
            rows.append((f"{section}:", ""))
            rows += [(f"  {key}: {_text(item.value)}", _origin(item.where, item.why)) for key, item in items.items()]
    if profile.env:
        rows.append(("env:", ""))
        for key, variable in profile.env.items():
            value = "(secret, from the launcher's environment)" if variable.secret else f"'{variable.value}'"
            rows.append((f"  {key}: {value}", _origin(variable.where, variable.why)))
    for item in profile.accept:
        until = f" until {item.until}" if item.until else ""
        rows.append((f"accept: {item.id}{until}: {item.reason}", short(item.where)))
    if profile.expect:
        rows.append((f"expect: {json.dumps(dict(profile.expect))}", ""))
    if not resolved:
        return [left for left, _ in rows]
    width = min(64, max((len(left) for left, _ in rows if left[0] == " "), default=0))
    return [f"{left:<{width}}  # {right}" if right else left for left, right in rows]


def short(where: str) -> str:
    """Return `FILE.yaml:LINE` with the path relative to the current folder, when that is shorter."""
    path, _, position = where.partition(".yaml")
    relative = os.path.relpath(path) if path.startswith("/") else path
    return (relative if len(relative) < len(path) else path) + (
        ".yaml" + position if position or where.endswith(".yaml") else ""
    )


def _origin(where: str, why: str) -> str:
    return short(where) + (f"  {' '.join(why.split())}" if why else "")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, list) else str(value)
