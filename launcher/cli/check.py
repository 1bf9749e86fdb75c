"""`launch check`: everything that can be known before a start. Exit code 0: no error finding, 2: refused."""

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
    """Findings on a launch, and what a trace of it wants: its evidence, and who stated or measured that."""

    findings: Sequence[Finding]
    launch: Launch | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)  # finding → why the profile lives with it


def main(
    name: Annotated[str, typer.Argument(metavar="PROFILE", help="name of a profile, or a .yaml file")] = "",
    host: HostName = "",
    facts: Annotated[
        Path | None, typer.Option("--facts", help="recorded facts of `launch facts` instead of a host")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", callback=release, help="engine release; with --facts, in place of theirs")
    ] = "",
    gpu: Annotated[str, typer.Option("--gpu", help="e.g. '8x RTX PRO 6000', for a check without a host")] = "",
    model_config: Annotated[
        Path | None, typer.Option("--model-config", help="folder with the model's config.json")
    ] = None,
    case: Annotated[
        Path | None, typer.Option("--case", help="flags, env, engine, GPU and model facts in one JSON file")
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="leave out the engine's own dry run")] = False,
    sets: Sets = None,
    unsets: Unsets = None,
    envs: Envs = None,
    profiles: ProfilesFolder = None,
    hosts_file: HostsFile = None,
    trace: Trace = "",
    as_json: Json = False,
) -> int:
    """Check a profile against a host's engine, GPUs and model, or offline; start nothing."""
    item = traced_entry(trace)
    if case is not None:
        return show(_case(case), item, as_json)
    if not name:
        raise UsageError("which profile?", hint="`launch check PROFILE --host HOST`, or `--case FILE`")
    profile = override(resolve(name, search_path(profiles)), sets or [], unsets or [], envs or [])
    _agree(host, facts, {"--engine": engine, "--gpu": gpu, "--model-config": model_config})
    if host:
        return show(_live(profile, host, hosts_file, fast=fast), item, as_json)
    return show(_offline(profile, facts, engine, gpu, model_config), item, as_json)


def _agree(host: str, facts: Path | None, others: dict[str, object]) -> None:
    """Refuse what would be ignored: a host says for itself what it has, recorded facts do (but for the release)."""
    given = [name for name, value in others.items() if value]
    if host and (facts is not None or given):
        raise UsageError(f"{given[0] if given else '--facts'} is for a check without a host")
    if facts is not None and (idle := [name for name in given if name != "--engine"]):
        raise UsageError(f"{idle[0]} and --facts: the recorded facts tell that already")


def show(checked: Checked, traced: Entry | None, as_json: bool) -> int:
    """Print findings, and the trace where one is asked for; the exit code, which a trace never changes."""
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

    found, known = traced_launch(traced, checked.launch, checked.sources, checked.accepted)
    return {"trace": rule_document(found, known)}


def _write_trace(checked: Checked, traced: Entry | None) -> None:
    if traced is None:
        return
    if checked.launch is None:
        sys.stdout.write(f"{'trace':<10} {traced.id}: the host could not be asked, so there is nothing to judge\n")
        return
    from launcher.cli.trace_view import rule_rows, write

    found, known = traced_launch(traced, checked.launch, checked.sources, checked.accepted)
    write(rule_rows(found, known))


def finding_json(item: Finding) -> dict[str, Any]:
    """The JSON form of a finding, a contract: keys are only ever added."""
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
            raise ValueError("expected one JSON object")
        return from_case(data)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


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
        except HostCommandFailed as error:  # no python3, no engine, a shell that runs nothing: a finding, too
            found = [Finding(id="host-cannot-be-asked", severity=Severity.ERROR, message=error.message, why=error.hint)]
            return Checked(findings=found)
        found = list(prepared.findings)
        if not fast:
            sys.stderr.write("asking the engine itself, which takes as long as importing it\n")
            seen = {item.id for item in found}
            found += [item for item in dry_run(transport, prepared).findings if item.id not in seen]
    stated = of_profile(prepared.profile, load(prepared.plan.engine))
    return Checked(
        findings=found,
        launch=prepared.launch,
        sources={**stated, **of_host(prepared.facts, name, recorded=False)},
        accepted={finding.id: item.reason for finding, item in prepared.accepted},
    )


def _offline(profile: Profile, facts: Path | None, engine: str, gpu: str, model: Path | None) -> Checked:
    from checks.before.rule_index import packages
    from checks.before.rules import check
    from checks.engine.flag_schema import load
    from launcher.hostside.read_checkpoint import checkpoint
    from launcher.knowledge_cache import rules
    from launcher.plan.fact_sources import of_host, of_profile
    from launcher.plan.launch_facts import engine_version, model_facts, read_recorded, to_launch
    from launcher.plan.launch_plan import offline_flags, spell, spelling_findings

    raw = read_recorded(facts) if facts is not None else None
    version = engine or (engine_version(raw) if raw else None)
    profile = for_engine(profile, version)
    flags, renamed = spell(offline_flags(profile), load(version or ""))
    env = {key: item.value for key, item in profile.env.items() if not item.secret}
    stated = {**of_profile(profile, load(version or "")), **({"engine.version": "given by --engine"} if engine else {})}
    if raw is not None:
        launch = replace(to_launch(raw, flags, env, packages(rules())), engine=version)
        stated = {**of_host(raw, str(facts), recorded=True), **stated}
    else:
        named = {"name": str(profile.model["name"].value)} if "name" in profile.model else {}
        seen = model_facts(checkpoint(str(model))) if model else named
        launch = Launch(engine=version, flags=flags, env=env, gpu=parse_gpu(gpu, profile), model=seen)
        stated |= dict.fromkeys(("host.gpu_name", "host.gpu_count"), "given by --gpu") if gpu else {}
        stated |= {"model.": f"read from {model} by launcher/hostside/read_checkpoint.py"} if model else {}
    found = [*check(launch, rules()), *(spelling_findings(renamed, version) if version else ())]
    return Checked(findings=found, launch=launch, sources=stated)


def parse_gpu(text: str, profile: Profile) -> dict[str, Any]:
    """`8x RTX PRO 6000` → name and count; without it, what the profile says it was made for."""
    if not text:
        return hardware(profile)
    match = re.fullmatch(r"\s*(?:(\d+)\s*[x×*]\s*)?(\S.*?)\s*", text)
    if match is None:
        raise UsageError(f"`{text}` names no GPU", hint="--gpu '8x RTX PRO 6000'")
    return {"name": match[2], "count": int(match[1] or 1)}
