"""The source of each fact of a launch, in words, for `--trace`: the line of a profile, a host, or a file.

The facts themselves are made in `launch_facts`. The sources of derived facts are in `checks.facts.origins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checks.engine.flag_schema import FlagSchema
from launcher.profile.file import Profile

_PROGRAMS = {
    "host.": "host_facts.py",
    "package.": "host_facts.py",
    "model.": "read_checkpoint.py",
    "draft.": "read_checkpoint.py",
}
_HUB = ("host.hub_reachable", "model.gated")
_MODEL = {"path": "flag.model-path", "name": "model.name", "served-name": "flag.served-model-name"}
_HARDWARE = {"gpu": "host.gpu_name", "count": "host.gpu_count", "platform": "host.platform"}


def of_profile(profile: Profile, schema: FlagSchema) -> dict[str, str]:
    """Return the source of every fact that a profile states: the file and line of its value."""
    sources = {"flag.": "added to the profile by the launcher", "env.": "added to the profile by the launcher"}
    sources |= {_MODEL[key]: _set(item.where) for key, item in profile.model.items() if key in _MODEL}
    sources |= {_HARDWARE[key]: _set(item.where) for key, item in profile.hardware.items() if key in _HARDWARE}
    sources |= {f"flag.{schema.canonical(name) or name}": _set(item.where) for name, item in profile.flags.items()}
    return sources | {f"env.{name}": _set(item.where) for name, item in profile.env.items()}


def of_host(raw: Mapping[str, Any], name: str, *, recorded: bool) -> dict[str, str]:
    """Return the source of every fact that was measured on a host.

    `name` is the host, or with `recorded` the file that `launch facts` wrote.
    """
    read = f"recorded in {name}, " if recorded else f"read from {name} "
    sources = {space: f"{read}by launcher/hostside/{program}" for space, program in _PROGRAMS.items()}
    sources |= dict.fromkeys(_HUB, f"{read}by launcher/hostside/hub_route.py")
    sources["engine.version"] = sources["package."]
    variables = (raw.get("host") or {}).get("env", {})
    return sources | {f"env.{variable}": f"{read}by launcher/hostside/host_facts.py" for variable in variables}


def of_file(path: str) -> dict[str, str]:
    """Return the source of all facts in a case file or facts file, for facts without a closer source."""
    spaces = ("flag", "env", "engine", "host", "model", "draft", "package", "observed")
    return {f"{space}.": f"given in {path}" for space in spaces}


def _set(where: str) -> str:
    return f"set in {where}" if not where.startswith("--") else f"set by {where}"
