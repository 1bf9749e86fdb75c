"""`launch validate`: probe a running server, ours or anybody's."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from msgspec import Struct
from msgspec.structs import replace

from checks.after.validation import Validation, as_dict
from launcher.cli import html, render, screen
from launcher.cli.exits import of_validation
from launcher.cli.options import HostsFile, Json, Report, connected, host_of
from launcher.client.endpoint import Endpoint, api_key
from launcher.clock import SystemClock
from launcher.errors import UsageError
from launcher.flows.diagnose.run_diagnosis import log_view
from launcher.flows.validate import stored_baselines
from launcher.flows.validate.prove import Subject, Wishes, prove, wishes_of
from launcher.flows.validate.soak import duration
from launcher.flows.validate.suite import knock
from launcher.run.fresh_log import fresh_log
from launcher.run.store import Run, RunStore

Soak = Annotated[str, typer.Option("--soak", help="go on probing for so long afterwards: 30s, 10m, 1h")]


class Given(Struct, frozen=True, kw_only=True):
    """What the command line says, on top of a profile's `expect`."""

    suite: str
    baseline: str
    against: str
    soak: str
    deeper: tuple[str, ...]
    key_env: str
    against_key_env: str
    quiet: bool

    def over(self, expect: Mapping[str, Any], profile: str = "") -> Wishes:
        """The wishes. Raises UsageError for a baseline that does not exist."""
        own = {key: value for key in ("suite", "soak") if (value := getattr(self, key))}
        tasks = {**(expect.get("deeper") or {}), **{task: {} for task in self.deeper}}
        wanted = wishes_of({**expect, **own, **({"deeper": tasks} if tasks else {})}, RunStore(), profile)
        if not self.baseline:
            return wanted
        found = stored_baselines.find(self.baseline, stored_baselines.folders(profile), RunStore())
        return replace(wanted, baseline=found.validation, missing="")


def main(
    target: Annotated[
        str, typer.Argument(metavar="RUN|URL", help="a run (id, part of it, `last`) or http://host:port")
    ],
    suite: Annotated[str, typer.Option("--suite", help="smoke, standard or full; the profile's by default")] = "",
    baseline: Annotated[str, typer.Option("--baseline", help="a baseline or a run that this is compared with")] = "",
    against: Annotated[str, typer.Option("--against", help="http://host:port of a second server: speed in turn")] = "",
    soak: Soak = "",
    deeper: Annotated[
        list[str] | None, typer.Option("--deeper", help="task for sgl-eval or lm-eval of this machine; repeatable")
    ] = None,
    key_env: Annotated[
        str, typer.Option("--api-key-env", help="variable that holds the server's API key; a run's by default")
    ] = "",
    against_key_env: Annotated[
        str, typer.Option("--against-key-env", help="variable that holds the API key of the second server")
    ] = "",
    report: Report = None,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Probe a running server: is it correct and fast enough?"""
    if soak:
        duration(soak)
    html.check_place(report)
    given = Given(
        suite=suite,
        baseline=baseline,
        against=against,
        soak=soak,
        deeper=tuple(deeper or ()),
        key_env=key_env,
        against_key_env=against_key_env,
        quiet=as_json,
    )
    if target.startswith(("http://", "https://")):
        about, result = {"server": target}, _url(target, given)
    else:
        run = RunStore().find(target)
        about, result = _about(run), _run(run, given, hosts_file)
    if report is not None:
        report.write_text(html.page(as_dict(result), about, baseline), "utf-8")
    if as_json:
        sys.stdout.write(json.dumps(as_dict(result), ensure_ascii=False) + "\n")
    else:
        screen.validation(render.out(), result)
    return of_validation(result.outcome)


def _about(run: Run) -> dict[str, str]:
    return {"run": run.id, "profile": str(run.info.get("profile", "")), "host": str(run.info.get("host", ""))}


def _url(url: str, given: Given) -> Validation:
    from launcher.transport.local import LocalTransport

    host, port = _address(url)
    transport, wanted = LocalTransport(), given.over({})
    with _endpoint(url, given.key_env) as endpoint:
        subject = Subject(endpoint=endpoint, transport=transport, host=host, port=port, info=knock(endpoint))
        return _prove(subject, wanted, given)


def _run(run: Run, given: Given, hosts_file: Any) -> Validation:
    plan, profile = run.plan, run.read("profile") or {}
    wanted = given.over(profile.get("expect", {}), str(profile.get("path", "")))
    variable = given.key_env or plan.secret_flags.get("api-key", "")
    key = api_key(variable) if variable else None
    with contextlib.ExitStack() as stack:
        transport = stack.enter_context(connected(host_of(plan.host, hosts_file)))
        endpoint = Endpoint(transport, plan.probe_host, plan.server_port, api_key=key)
        stack.callback(endpoint.close)
        subject = Subject(
            endpoint=endpoint,
            transport=transport,
            host=plan.probe_host,
            port=plan.server_port,
            info=knock(endpoint),
            ledger=log_view(run).ledger,
            read_log=lambda: log_view(run, fresh_log(transport, run, plan, SystemClock())),
            folder=run.folder,
        )
        result = _prove(subject, wanted, given)
    run.write("validation", as_dict(result))
    run.update(state="validated", outcome=result.outcome, level=result.level)
    return result


def _prove(subject: Subject, wanted: Wishes, given: Given) -> Validation:
    observer = screen.Quiet() if given.quiet else screen.Screen(render.err())
    if not given.against:
        return prove(subject, wanted, SystemClock(), observer.verdict)
    with _endpoint(given.against, given.against_key_env) as other:
        knock(other)
        return prove(replace(subject, live_baseline=other), wanted, SystemClock(), observer.verdict)


@contextlib.contextmanager
def _endpoint(url: str, key_env: str) -> Iterator[Endpoint]:
    from launcher.transport.local import LocalTransport

    endpoint = Endpoint(LocalTransport(), *_address(url), api_key=api_key(key_env) if key_env else None)
    try:
        yield endpoint
    finally:
        endpoint.close()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"{url}: expected http://host:port", hint="a server behind TLS is reached through a tunnel")
    return parts.hostname, parts.port or 80
