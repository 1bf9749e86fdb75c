"""`launch validate`: probe a running server, ours or anybody's."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from checks.validation import Validation, as_dict
from launcher.cli import render, screen
from launcher.cli.exits import Exit
from launcher.cli.options import HostsFile, Json, connected, host_of
from launcher.clock import SystemClock
from launcher.endpoint import Endpoint
from launcher.errors import UsageError
from launcher.flows.diagnosing import diagnose_run
from launcher.flows.launch import plan_of
from launcher.flows.validate import validate
from launcher.readiness import server_info
from launcher.runs import Run, RunStore


def main(
    target: Annotated[
        str, typer.Argument(metavar="RUN|URL", help="a run (id, part of it, `last`) or http://host:port")
    ],
    suite: Annotated[str, typer.Option("--suite", help="smoke, standard or full; the profile's by default")] = "",
    baseline: Annotated[str, typer.Option("--baseline", help="a run whose validation this one is compared with")] = "",
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Probe a running server: is it correct and fast enough?"""
    compared = RunStore().find(baseline).read("validation") if baseline else None
    if baseline and compared is None:
        raise UsageError(f"run {baseline} was never validated", hint=f"`launch validate {baseline} --suite standard`")
    if target.startswith(("http://", "https://")):
        result = _url(target, suite or "smoke", compared, as_json)
    else:
        result = _run(RunStore().find(target), suite, compared, hosts_file, as_json)
    if as_json:
        sys.stdout.write(json.dumps(as_dict(result), ensure_ascii=False) + "\n")
    else:
        screen.validation(render.out(), result)
    return {"pass": Exit.OK, "inconclusive": Exit.INCONCLUSIVE}.get(result.outcome, Exit.BAD)


def _url(url: str, suite: str, baseline: Mapping[str, Any] | None, quiet: bool) -> Validation:
    from launcher.transport.local import LocalTransport

    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"{url}: expected http://host:port", hint="a server behind TLS is reached through a tunnel")
    endpoint = Endpoint(LocalTransport(), parts.hostname, parts.port or 80)
    return _probe(endpoint, suite, {}, baseline, quiet=quiet)


def _run(run: Run, suite: str, baseline: Mapping[str, Any] | None, hosts_file: Any, quiet: bool) -> Validation:
    plan = plan_of(run)
    expect = dict((run.read("profile") or {}).get("expect", {}))
    wanted = suite or str(expect.get("suite", "smoke"))
    ledger = diagnose_run(run).ledger if run.log.exists() else ()
    with connected(host_of(plan.host, hosts_file)) as transport:
        endpoint = Endpoint(transport, plan.probe_host, plan.server_port)
        result = _probe(endpoint, wanted, expect, baseline, quiet=quiet, ledger=ledger)
    run.write("validation", as_dict(result))
    run.update(state="validated", outcome=result.outcome, level=result.level)
    return result


def _probe(
    endpoint: Endpoint,
    suite: str,
    expect: Mapping[str, Any],
    baseline: Mapping[str, Any] | None,
    *,
    quiet: bool,
    ledger: Any = (),
) -> Validation:
    observer = screen.Quiet() if quiet else screen.Screen(render.err())
    wanted = {name: value for name, value in expect.items() if name not in ("suite", "ready-within")}
    return validate(
        endpoint, suite=suite, expect=wanted, server_info=server_info(endpoint), clock=SystemClock(),
        ledger=ledger, baseline=baseline, progress=observer.verdict,
    )  # fmt: skip
