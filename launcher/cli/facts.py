"""`launch facts`: capture the facts that checks need about a host, as one JSON document to commit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import HostName, HostsFile, ProfilesFolder, check_output, connected, host_of
from launcher.flows.launch.prepare import look
from launcher.profile.file import Profile
from launcher.profile.resolve import resolve, search_path


def main(
    host: HostName = "",
    profile: Annotated[str, typer.Option("--profile", help="also capture model and port of this profile")] = "",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="write to this file instead of standard output")
    ] = None,
    profiles: ProfilesFolder = None,
    hosts_file: HostsFile = None,
) -> int:
    """Capture the facts of a host as JSON, e.g. for `launch check --facts`."""
    check_output("--out", out)
    where = host_of(host, hosts_file)
    about = resolve(profile, search_path(profiles)) if profile else Profile(name="", path="")
    with connected(where) as transport:
        facts = look(transport, about, where)
    text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text)
    missing = [] if facts["engine"] else [f"no SGLang: {item}" for item in facts["engine_tried"]]
    for note in [*facts["notes"], *missing]:
        sys.stderr.write(f"note: {note}\n")
    return 0
