"""`diagnose unknowns`: failures that no signature names, grouped over all runs."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from msgspec import to_builtins

from launcher.run.store import RunStore

_SHOWN = 3  # runs of a group that are named


def main(
    host: Annotated[str, typer.Option("--host", "-H", help="only runs on this host")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """List failures without a known cause, those with one fingerprint together."""
    from launcher.flows.diagnose.unknowns import unknowns

    runs = (run for run in RunStore().all() if host in ("", str(run.info.get("host", ""))))
    found = unknowns(runs)
    if as_json:
        sys.stdout.write(json.dumps({"unknowns": [to_builtins(item) for item in found]}, ensure_ascii=False) + "\n")
        return 0
    for item in found:
        sys.stdout.write(f"{len(item.runs)}x {item.fingerprint}  (SGLang {', '.join(item.engines)})\n")
        sys.stdout.write(f"   {item.sentence[:200]}\n")
        more = f" and {len(item.runs) - _SHOWN} more" if len(item.runs) > _SHOWN else ""
        sys.stdout.write(f"   {', '.join(item.runs[:_SHOWN])} on {', '.join(item.hosts)}{more}\n")
    sys.stdout.write("`diagnose scaffold RUN NAME` drafts a cause from one of them\n" if found else "no unknowns\n")
    return 0
