"""`launch validate`: probe a running server, either of a run or at any address.

It opens connections and prints the verdict; the probing is `launcher.flows.validate.prove`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from msgspec import Struct, field
from msgspec.structs import replace

from checks.after.probes.entry import SUITES
from checks.after.probes.expectations import parse_expect
from checks.after.validation import Level, Validation, as_dict
from checks.catalog.yaml_reader import YamlError, did_you_mean, parse
from launcher.cli import html, render, screen
from launcher.cli.exits import of_validation
from launcher.cli.options import HostsFile, Json, Report, check_output, connected, host_of, seconds_of
from launcher.client.endpoint import Endpoint, api_key
from launcher.client.server_info import identify_server
from launcher.clock import SystemClock
from launcher.errors import UsageError
from launcher.flows.diagnose.run_diagnosis import log_view
from launcher.flows.validate import stored_baselines
from launcher.flows.validate.prove import prove
from launcher.flows.validate.request import Subject, ValidationRequest, request_from
from launcher.profile.resolve import resolve, search_path
from launcher.run.fresh_log import fresh_log
from launcher.run.store import Run, RunStore
from launcher.transport.local import LocalTransport

Soak = Annotated[str, typer.Option("--soak", help="keep probing for this long afterwards: 30s, 10m, 1h")]


class Overrides(Struct, frozen=True, kw_only=True):
    """The options that add to the `expect` of a profile or override it."""

    suite: str
    baseline: str
    soak: str
    deeper: tuple[str, ...]
    stated: Mapping[str, Any] = field(default_factory=dict)  # of --profile and --expect

    def request(self, expect: Mapping[str, Any], profile: str = "") -> ValidationRequest:
        """Return `expect` with the overrides. Raises UsageError for an unknown baseline, ExpectError for bad values."""
        overridden = {key: value for key in ("suite", "soak") if (value := getattr(self, key))}
        tasks = {**(expect.get("deeper") or {}), **{task: {} for task in self.deeper}}
        merged = {**expect, **self.stated, **overridden, **({"deeper": tasks} if tasks else {})}
        request = request_from(parse_expect(merged), RunStore(), profile)
        if not self.baseline:
            return request
        stored = stored_baselines.find(self.baseline, stored_baselines.folders(profile), RunStore())
        return replace(request, baseline=stored.validation, missing_baseline="")


class ServerAccess(Struct, frozen=True, kw_only=True):
    """How the server and a second server are reached, and whether progress is printed."""

    key_env: str  # variable with the server's API key
    against: str  # address of a second server
    against_key_env: str
    quiet: bool


def main(
    target: Annotated[str, typer.Argument(metavar="RUN|URL", help="run (id, part of it, `last`) or http://host:port")],
    suite: Annotated[str, typer.Option("--suite", help="smoke, standard or full; default: the profile's")] = "",
    baseline: Annotated[str, typer.Option("--baseline", help="baseline or run to compare with")] = "",
    against: Annotated[str, typer.Option("--against", help="second server http://host:port, to compare speed")] = "",
    soak: Soak = "",
    deeper: Annotated[
        list[str] | None, typer.Option("--deeper", help="sgl-eval or lm-eval task, run on this machine; repeatable")
    ] = None,
    profile: Annotated[str, typer.Option("--profile", help="take `expect` from this profile")] = "",
    expect: Annotated[
        list[str] | None, typer.Option("--expect", help="KEY=VALUE of `expect`, e.g. common-words=0; repeatable")
    ] = None,
    key_env: Annotated[
        str, typer.Option("--api-key-env", help="variable with the server's API key; default: the run's")
    ] = "",
    against_key_env: Annotated[
        str, typer.Option("--against-key-env", help="variable with the API key of the second server")
    ] = "",
    report: Report = None,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Probe a running server and judge whether it is correct and fast enough."""
    seconds_of("--soak", soak)
    if suite and suite not in SUITES:
        raise UsageError(f"unknown suite `{suite}`", hint=did_you_mean(suite, SUITES))
    check_output("--html", report)
    stated = {**(_of_profile(profile) if profile else {}), **_expected(expect or [])}
    overrides = Overrides(suite=suite, baseline=baseline, soak=soak, deeper=tuple(deeper or ()), stated=stated)
    access = ServerAccess(key_env=key_env, against=against, against_key_env=against_key_env, quiet=as_json)
    if target.startswith(("http://", "https://")):
        about, result = {"server": target}, _validate_address(target, overrides, access)
    else:
        run = RunStore().find(target)
        about = {"run": run.id, "profile": str(run.info.get("profile", "")), "host": run.host}
        result = _validate_run(run, overrides, access, hosts_file)
    return _show(result, about, baseline, report, as_json=as_json)


def _of_profile(name: str) -> dict[str, Any]:
    return resolve(name, search_path()).written_expectations


def _expected(words: Sequence[str]) -> dict[str, Any]:
    """Return `expect` as `KEY=VALUE` words state it; a dot leads into a mapping. Raises UsageError."""
    stated: dict[str, Any] = {}
    for word in words:
        path, equals, text = word.partition("=")
        if not equals or not path:
            raise UsageError(f"--expect {word}: expected KEY=VALUE", hint="e.g. --expect common-words=0")
        *folders, name = path.split(".")
        place = stated
        for folder in folders:
            place = place.setdefault(folder, {})
            if not isinstance(place, dict):
                raise UsageError(f"--expect {word}: `{folder}` was given a value of its own before")
        try:
            place[name] = parse(text, f"--expect {path}").plain()
        except YamlError as error:
            raise UsageError(f"--expect {word}: {error.message}") from error
    return stated


def _show(result: Validation, about: Mapping[str, str], baseline: str, report: Path | None, *, as_json: bool) -> int:
    if report is not None:
        report.write_text(html.page(as_dict(result), about, baseline), "utf-8")
    if as_json:
        sys.stdout.write(json.dumps(as_dict(result), ensure_ascii=False) + "\n")
    else:
        screen.validation(render.out(), result)
    return of_validation(result.outcome)


def _validate_address(url: str, overrides: Overrides, access: ServerAccess) -> Validation:
    host, port = _address(url)
    request = overrides.request({})
    with _endpoint(url, access.key_env) as endpoint:
        info = identify_server(endpoint)
        subject = Subject(endpoint=endpoint, transport=LocalTransport(), host=host, port=port, info=info)
        return _prove(subject, request, access)


def _validate_run(run: Run, overrides: Overrides, access: ServerAccess, hosts_file: Path | None) -> Validation:
    plan, profile = run.plan, run.read("profile") or {}
    request = overrides.request(profile.get("expect") or {}, str(profile.get("path", "")))
    variable = access.key_env or plan.secret_flags.get("api-key", "")
    key = api_key(variable) if variable else None
    with contextlib.ExitStack() as stack:
        transport = stack.enter_context(connected(host_of(run.host, hosts_file)))
        endpoint = Endpoint(transport, plan.probe_host, plan.server_port, api_key=key)
        stack.callback(endpoint.close)
        subject = Subject(
            endpoint=endpoint,
            transport=transport,
            host=plan.probe_host,
            port=plan.server_port,
            info=identify_server(endpoint),
            ledger=log_view(run).ledger,
            read_log=lambda: log_view(run, fresh_log(transport, run, SystemClock())),
            folder=run.folder,
        )
        result = _prove(subject, request, access)
    run.write("validation", as_dict(result))
    known = {"outcome": result.outcome, "level": result.level}
    run.update(**known if result.level is Level.NONE else {"state": "validated", **known})  # nobody answered: no news
    return result


def _prove(subject: Subject, request: ValidationRequest, access: ServerAccess) -> Validation:
    observer = screen.Quiet() if access.quiet else screen.Screen(render.err())
    if not access.against:
        return prove(subject, request, SystemClock(), observer.verdict)
    with _endpoint(access.against, access.against_key_env) as second:
        identify_server(second)
        return prove(replace(subject, live_baseline=second), request, SystemClock(), observer.verdict)


@contextlib.contextmanager
def _endpoint(url: str, key_env: str) -> Iterator[Endpoint]:
    endpoint = Endpoint(LocalTransport(), *_address(url), api_key=api_key(key_env) if key_env else None)
    try:
        yield endpoint
    finally:
        endpoint.close()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(
            f"invalid server address `{url}`: expected http://host:port",
            hint="https is not supported: forward the port with ssh -L, or validate behind the TLS proxy",
        )
    return parts.hostname, parts.port or 80
