"""`diagnose unknowns`: list failures that no signature matches, grouped by fingerprint over all runs."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from msgspec import to_builtins

from launcher.run.store import RunStore

_SHOWN = 3  # run ids listed per group


def main(
    host: Annotated[str, typer.Option("--host", "-H", help="only runs on this host")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> int:
    """List failures without a known cause, grouped by fingerprint."""
    from launcher.flows.diagnose.unknowns import unknowns

    runs = (run for run in RunStore().all() if host in ("", str(run.info.get("host", ""))))
    groups = unknowns(runs)
    if as_json:
        sys.stdout.write(json.dumps({"unknowns": [to_builtins(group) for group in groups]}, ensure_ascii=False) + "\n")
        return 0
    for group in groups:
        sys.stdout.write(f"{len(group.runs)}x {group.fingerprint}  (SGLang {', '.join(group.engines)})\n")
        sys.stdout.write(f"   {group.sentence[:200]}\n")
        more = f" and {len(group.runs) - _SHOWN} more" if len(group.runs) > _SHOWN else ""
        sys.stdout.write(f"   {', '.join(group.runs[:_SHOWN])} on {', '.join(group.hosts)}{more}\n")
    sys.stdout.write(
        "draft a knowledge entry from one of these runs: `diagnose scaffold RUN NAME`\n"
        if groups
        else "no failures without a known cause\n"
    )
    return 0
