"""`launch check`: report everything that can be known before a start.

Exit code 0: no finding of severity error; 2: at least one, so `launch profile` would refuse to start.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct, field
from msgspec.structs import replace

from checks.facts.launch_evidence import Launch, from_case
from checks.vocabulary import Finding, Severity
from launcher.cli.exits import Exit
from launcher.cli.options import (
    Envs,
    HostName,
    HostsFile,
    Json,
    ProfilesFolder,
    Sets,
    Unsets,
    connected,
    host_of,
    release,
)
from launcher.cli.trace_option import Trace, traced_entry, traced_launch
from launcher.errors import HostCommandFailed, UsageError
from launcher.plan.launch_plan import hardware
from launcher.profile.file import Profile
from launcher.profile.resolve import for_engine, override, resolve, search_path

if TYPE_CHECKING:
    from checks.catalog.entries import Entry


class Checked(Struct, frozen=True, kw_only=True):
    """The findings on a launch, and the evidence, sources and accepted findings that `--trace` shows."""

    findings: Sequence[Finding]
    launch: Launch | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)  # finding id → why the profile accepts it


def main(
    name: Annotated[str, typer.Argument(metavar="PROFILE", help="profile name, or a .yaml file")] = "",
    host: HostName = "",
    facts: Annotated[
        Path | None, typer.Option("--facts", help="facts recorded by `launch facts`, in place of a host")
    ] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", callback=release, help="SGLang release; overrides the one in --facts"),
    ] = "",
    gpu: Annotated[str, typer.Option("--gpu", help="GPUs for a check without a host, e.g. '8x RTX PRO 6000'")] = "",
    model_config: Annotated[
        Path | None, typer.Option("--model-config", help="checkpoint folder with config.json")
    ] = None,
    case: Annotated[
        Path | None,
        typer.Option("--case", help="JSON file: {engine, flags, env, gpu, model, packages, host, observed}"),
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="skip the dry run inside the engine")] = False,
    sets: Sets = None,
    unsets: Unsets = None,
    envs: Envs = None,
    profiles: ProfilesFolder = None,
    hosts_file: HostsFile = None,
    trace: Trace = "",
    as_json: Json = False,
) -> int:
    """Check a profile against the engine, GPUs and model of a host, or offline; start nothing."""
    item = traced_entry(trace)
    if case is not None:
        return show(_case(case), item, as_json)
    if not name:
        raise UsageError("no profile given", hint="launch check PROFILE --host HOST, or launch check --case FILE")
    profile = override(resolve(name, search_path(profiles)), sets or [], unsets or [], envs or [])
    _agree(host, facts, {"--engine": engine, "--gpu": gpu, "--model-config": model_config})
    if host:
        return show(_live(profile, host, hosts_file, fast=fast), item, as_json)
    return show(_offline(profile, facts, engine, gpu, model_config, fast=fast), item, as_json)


def _agree(host: str, facts: Path | None, others: dict[str, object]) -> None:
    """Refuse options that would be ignored: a host is measured, and recorded facts override all but the release."""
    offline = [name for name, value in others.items() if value]
    if host and (facts is not None or offline):
        option = offline[0] if offline else "--facts"
        raise UsageError(f"{option} cannot be combined with --host: the host is measured", hint=f"drop {option}")
    if facts is not None and (ignored := [name for name in offline if name != "--engine"]):
        raise UsageError(
            f"{ignored[0]} cannot be combined with --facts: the recorded facts already contain it",
            hint=f"drop {ignored[0]}",
        )


def show(checked: Checked, traced: Entry | None, as_json: bool) -> int:
    """Print the findings, and the trace when one is requested; return the exit code, which a trace never changes."""
    items = checked.findings
    if as_json:
        document = {"findings": [finding_json(item) for item in items], **_trace_document(checked, traced)}
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
    else:
        from launcher.cli import render

        render.findings(render.out(), items)
        if not items:
            sys.stdout.write("no findings\n")
        _write_trace(checked, traced)
    return Exit.REFUSED if any(item.severity is Severity.ERROR for item in items) else Exit.OK


def _trace_document(checked: Checked, traced: Entry | None) -> dict[str, Any]:
    if traced is None:
        return {}
    if checked.launch is None:
        return {"trace": None}
    from launcher.cli.trace_view import rule_document

    trace, known = traced_launch(traced, checked.launch, checked.sources, checked.accepted)
    return {"trace": rule_document(trace, known)}


def _write_trace(checked: Checked, traced: Entry | None) -> None:
    if traced is None:
        return
    if checked.launch is None:
        sys.stdout.write(f"{'trace':<10} {traced.id}: not judged, because the host's facts could not be read\n")
        return
    from launcher.cli.trace_view import rule_rows, write

    trace, known = traced_launch(traced, checked.launch, checked.sources, checked.accepted)
    write(rule_rows(trace, known))


def finding_json(item: Finding) -> dict[str, Any]:
    """Return the JSON form of a finding. It is a contract: keys are only ever added."""
    from launcher.cli.diagnose import remedy_json

    return {
        "id": item.id,
        "severity": item.severity,
        "message": item.message,
        "why": item.why,
        "subject": item.subject,
        "evidence": [{"text": part.text, "source": part.source} for part in item.evidence],
        "remedies": [remedy_json(remedy) for remedy in item.remedies],
    }


def _case(path: Path) -> Checked:
    from checks.before.rules import check
    from launcher.knowledge_cache import rules
    from launcher.plan.fact_sources import of_file

    launch = _launch_of(path)
    return Checked(findings=check(launch, rules()), launch=launch, sources=of_file(str(path)))


def _launch_of(path: Path) -> Launch:
    try:
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict):
            raise ValueError("expected a JSON object")
        return from_case(data)
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"`{path}` is not a valid case: {error}") from error


def _live(profile: Profile, name: str, hosts_file: Path | None, *, fast: bool) -> Checked:
    from checks.engine.flag_schema import load
    from launcher.clock import SystemClock
    from launcher.flows.launch.engine_dry_run import dry_run
    from launcher.flows.launch.prepare import prepare
    from launcher.plan.fact_sources import of_host, of_profile

    host = host_of(name, hosts_file)
    with connected(host) as transport:
        try:
            prepared = prepare(transport, profile, host, SystemClock().now())
        except HostCommandFailed as error:  # no python3, no engine, or a shell that runs no command: also a finding
            finding = Finding(id="host-cannot-be-asked", severity=Severity.ERROR, message=error.message, why=error.hint)
            return Checked(findings=[finding])
        findings = list(prepared.findings)
        if not fast:
            sys.stderr.write("running the engine's own argument checks; this takes as long as importing SGLang\n")
            reported = {item.id for item in findings}
            findings += [item for item in dry_run(transport, prepared).findings if item.id not in reported]
    stated = of_profile(prepared.profile, load(prepared.plan.engine))
    return Checked(
        findings=findings,
        launch=prepared.launch,
        sources={**stated, **of_host(prepared.facts, name, recorded=False)},
        accepted={finding.id: item.reason for finding, item in prepared.accepted},
    )


def _offline(profile: Profile, facts: Path | None, engine: str, gpu: str, model: Path | None, *, fast: bool) -> Checked:
    from checks.before.rule_index import packages
    from checks.before.rules import check
    from checks.engine.flag_schema import load
    from launcher.hostside.read_checkpoint import checkpoint
    from launcher.knowledge_cache import rules
    from launcher.plan.fact_sources import of_host, of_profile
    from launcher.plan.launch_facts import engine_version, model_facts, read_recorded, to_launch
    from launcher.plan.launch_plan import offline_flags, spell, spelling_findings

    raw = read_recorded(facts) if facts is not None else None
    content: Mapping[str, Any] = {}
    version = engine or (engine_version(raw) if raw else None)
    schema = load(version or "")
    if schema.note:
        sys.stderr.write(f"note: {schema.note}\n")
    profile = for_engine(profile, version)
    home = str((raw["host"] or {}).get("home") or "") if raw is not None else ""
    flags, renamed = spell(offline_flags(profile, home), schema)
    env = {key: item.value for key, item in profile.env.items() if not item.secret}
    stated = {**of_profile(profile, schema), **({"engine.version": "given by --engine"} if engine else {})}
    if raw is not None:
        launch = replace(to_launch(raw, flags, env, packages(rules())), engine=version)
        stated = {**of_host(raw, str(facts), recorded=True), **stated}
    else:
        name_only = {"name": str(profile.model["name"].value)} if "name" in profile.model else {}
        if model:
            content = checkpoint(str(model))
        model_known = model_facts(content) if model else name_only
        launch = Launch(engine=version, flags=flags, env=env, gpu=parse_gpu(gpu, profile), model=model_known)
        stated |= dict.fromkeys(("host.gpu_name", "host.gpu_count"), "given by --gpu") if gpu else {}
        stated |= {"model.": f"read from {model} by launcher/hostside/read_checkpoint.py"} if model else {}
    findings = [*check(launch, rules()), *(spelling_findings(renamed, version) if version else ())]
    if version and not fast:
        path = str(flags.get("model-path") or flags.get("model") or "")
        folders = {path: content} if raw is None and content else {}
        findings += _twin(version, profile.name, launch, flags, raw, folders, {item.id for item in findings})
    return Checked(findings=findings, launch=launch, sources=stated)


def _twin(
    version: str,
    name: str,
    launch: Launch,
    flags: Mapping[str, Any],
    raw: Mapping[str, Any] | None,
    folders: Mapping[str, Any],
    reported: set[str],
) -> list[Finding]:
    """Return what the release's own argument code says, if it was fetched."""
    from launcher.flows.launch.twin_check import Asked, available, twin_check
    from launcher.transport.local import LocalTransport
    from launcher.twin.release_store import fetched

    if not available(version):
        if fetched():
            sys.stderr.write(f"note: the argument code of {version} is not here: launch engines fetch {version}\n")
        return []
    asked = Asked(name=name, launch=launch, flags=flags, raw=raw, folders=folders)
    found = twin_check(LocalTransport(), version, [asked])[name]
    return [item for item in found if item.id not in reported]


def parse_gpu(text: str, profile: Profile) -> dict[str, Any]:
    """Return name and count of `8x RTX PRO 6000`; for empty text, the profile's `hardware`. Raises UsageError."""
    if not text:
        return hardware(profile)
    match = re.fullmatch(r"\s*(?:(\d+)\s*[x×*]\s*)?(\S.*?)\s*", text)
    if match is None:
        raise UsageError(f"unknown GPU `{text}`", hint="write count and name, e.g. --gpu '8x RTX PRO 6000'")
    return {"name": match[2], "count": int(match[1] or 1)}
