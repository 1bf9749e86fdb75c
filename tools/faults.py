"""`make faults`: plants serving faults in a stand-in server, validates it, and counts what is found.

usage: faults.py [--suite smoke|standard|full] [--baseline] [--healthy] [--only NAME …] [--jobs N] [--out FILE]

Each fault of `tests.serving` is planted alone; --baseline compares with a validation of the same server without it.
--healthy validates the servers that are odd but sound instead: there, every failure is a false alarm. Prints what was
missed (or alarmed) and the figures as Markdown; --out keeps every verdict as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from checks.after.probes.expectations import parse_expect  # noqa: E402
from checks.after.validation import Validation, as_dict  # noqa: E402
from launcher.client.endpoint import Endpoint  # noqa: E402
from launcher.clock import SystemClock  # noqa: E402
from launcher.errors import LauncherError  # noqa: E402
from launcher.flows.validate.request import Subject, ValidationRequest  # noqa: E402
from launcher.flows.validate.suite import run_suite  # noqa: E402
from launcher.transport.local import LocalTransport  # noqa: E402
from tests.serving.oddities import ODDITIES  # noqa: E402
from tests.serving.server import FEATURES, serving  # noqa: E402
from tests.serving.table import FAULTS  # noqa: E402

# This machine is shared: a slower stand-in is no fault of the kind that is counted here.
EXPECT: Mapping[str, Any] = {"speed": {"margin": 0.5, "floor": 0.01, "repeats": 3}}


def main() -> int:
    options = parse()
    names = options.only or list(ODDITIES if options.healthy else FAULTS)
    jobs = [(name, options.suite, options.healthy, options.baseline) for name in names]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = []
        for row in pool.map(validated, jobs):
            rows.append(row)
            sys.stderr.write(f"{row['name']:<36} {row['outcome']:<13} {row['seconds']:6.1f} s  {row['by']}\n")
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sys.stdout.write(table(rows, healthy=options.healthy))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="standard", choices=("smoke", "standard", "full"))
    parser.add_argument("--baseline", action="store_true")
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def validated(job: tuple[str, str, bool, bool]) -> dict[str, Any]:
    """Validate one server; return its name, outcome, the failed probes, requests and seconds."""
    name, suite, healthy, with_baseline = job
    needs = () if healthy else tuple(sorted(FAULTS[name].needs))
    baseline = healthy_baseline(needs, suite) if with_baseline and not healthy else None
    began = time.monotonic()
    try:
        with serving(() if healthy else (name,), name if healthy else None) as (url, state):
            result = validate(url, suite, baseline, getattr(state.options, "api_key", ""))
            requests = getattr(state, "number", 0)
    except LauncherError as error:
        return {"name": name, "outcome": "refused", "by": str(error), "seconds": time.monotonic() - began}
    verdicts = [
        {"id": item.id, "outcome": str(item.outcome), "message": item.message}
        for item in result.verdicts
        if str(item.outcome) not in ("pass", "skip")
    ]
    failed = [item["id"] for item in verdicts if item["outcome"] == "fail"]
    return {
        "name": name,
        "mechanism": "" if healthy else FAULTS[name].mechanism,
        "outcome": str(result.outcome),
        "by": ", ".join(failed) or ", ".join(f"({item['id']})" for item in verdicts),
        "verdicts": verdicts,
        "requests": requests,
        "seconds": time.monotonic() - began,
    }


@cache
def healthy_baseline(needs: tuple[str, ...], suite: str) -> Mapping[str, Any]:
    """Return the validation of the server that a fault needs, without the fault."""
    settings: dict[str, Any] = {}
    for need in needs:
        settings |= FEATURES[need]
    with serving(**settings) as (url, _):
        return as_dict(validate(url, suite, None, ""))


def validate(url: str, suite: str, baseline: Mapping[str, Any] | None, key: str) -> Validation:
    port = int(url.rpartition(":")[2])
    endpoint = Endpoint(LocalTransport(), "127.0.0.1", port, api_key=key or None)
    request = ValidationRequest(expect=parse_expect({**EXPECT, "suite": suite}), baseline=baseline)
    try:
        return run_suite(Subject(endpoint=endpoint, transport=LocalTransport(), port=port), request, SystemClock())
    finally:
        endpoint.close()


def table(rows: Sequence[Mapping[str, Any]], *, healthy: bool) -> str:
    return "\n".join([*_wrong(rows, healthy=healthy), "", *_figures(rows, healthy=healthy)]) + "\n"


def _wrong(rows: Sequence[Mapping[str, Any]], *, healthy: bool) -> Iterator[str]:
    for row in rows:
        if (row["outcome"] == "fail") is healthy:
            yield f"- {'alarm' if healthy else 'missed'}: {row['name']} {row.get('mechanism', '')} {row['by']}".rstrip()


def _figures(rows: Sequence[Mapping[str, Any]], *, healthy: bool) -> Iterator[str]:
    groups = Counter(str(row.get("mechanism", "")) for row in rows)
    found = Counter(str(row.get("mechanism", "")) for row in rows if row["outcome"] == "fail")
    if healthy:
        yield f"{len(rows)} sound servers, {sum(found.values())} false alarms"
        yield f"outcomes: {dict(Counter(str(row['outcome']) for row in rows))}"
        return
    yield "| mechanism | faults | found |"
    yield "|---|---|---|"
    for name in sorted(groups):
        yield f"| {name} | {groups[name]} | {found[name]} |"
    yield f"| all | {len(rows)} | {sum(found.values())} ({sum(found.values()) / len(rows):.0%}) |"


if __name__ == "__main__":
    sys.exit(main())
