"""`diagnose last-crash` and `diagnose run`: explain a Run from its folder; its host is reached only when asked to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from launcher.cli.diagnose import document, trace_document, write_trace
from launcher.cli.diagnose_view import markdown, show
from launcher.cli.exits import Exit, of_diagnosis
from launcher.cli.options import HostsFile, connected, host_of
from launcher.cli.trace_option import Trace, traced_entry
from launcher.errors import HostUnreachable, RunNotFound
from launcher.run.store import Run, RunStore, State

if TYPE_CHECKING:
    from checks.catalog.entries import Entry
    from checks.vocabulary import Diagnosis
    from launcher.flows.diagnose.run_diagnosis import HostEvidence
    from launcher.flows.diagnose.traced import Traced

AskKernel: TypeAlias = Annotated[
    bool, typer.Option("--host-evidence", help="ask the host's kernel log: memory killer, GPU faults")
]
Remote: TypeAlias = Annotated[
    bool, typer.Option("--remote", help="read the log where it lies; only lines that matter travel")
]


def last_crash(
    host: Annotated[str, typer.Option("--host", "-H", help="only runs on this host")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="for an issue or a chat")] = False,
    apply: Annotated[str, typer.Option("--apply", help="write the profile with the first remedy under this name")] = "",
    host_evidence: AskKernel = False,
    remote: Remote = False,
    hosts_file: HostsFile = None,
    trace: Trace = "",
) -> int:
    """Explain the last run that did not end well."""
    item = traced_entry(trace, as_markdown=as_markdown)
    found = RunStore().last_crash(host or None)
    if found is None:
        raise RunNotFound(
            "no run ended badly" + (f" on {host}" if host else ""), hint="`diagnose log FILE` explains any log"
        )
    evidence = _evidence(found, hosts_file, kernel=host_evidence, remote=remote)
    return explain(found, as_json=as_json, as_markdown=as_markdown, apply=apply, evidence=evidence, item=item)


def run(
    name: Annotated[str, typer.Argument(metavar="RUN", help="id, part of it, `last`, a run's folder, a bundle")],
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="for an issue or a chat")] = False,
    apply: Annotated[str, typer.Option("--apply", help="write the profile with the first remedy under this name")] = "",
    host_evidence: AskKernel = False,
    remote: Remote = False,
    hosts_file: HostsFile = None,
    trace: Trace = "",
) -> int:
    """Explain a run."""
    item = traced_entry(trace, as_markdown=as_markdown)
    if not name.endswith((".tar.gz", ".tgz")):
        found = RunStore().find(name)
        evidence = _evidence(found, hosts_file, kernel=host_evidence, remote=remote)
        return explain(found, as_json=as_json, as_markdown=as_markdown, apply=apply, evidence=evidence, item=item)
    from launcher.gate.evidence_bundle import opened  # tar, gzip and digests cost what only a bundle needs

    with opened(Path(name)) as found:
        return explain(found, as_json=as_json, as_markdown=as_markdown, apply=apply, item=item)


def explain(
    found: Run,
    *,
    as_json: bool,
    as_markdown: bool,
    apply: str,
    evidence: HostEvidence | None = None,
    item: Entry | None = None,
) -> int:
    """Diagnose a run's log and show it; with `item` also the trace of that entry."""
    from launcher.flows.diagnose.run_diagnosis import NO_EVIDENCE, diagnose_run, has_log

    if not has_log(found) and not (evidence and evidence.log):
        return _without_log(found, item)
    diagnosis = diagnose_run(found, evidence or NO_EVIDENCE)
    traced = _traced(found, evidence or NO_EVIDENCE, diagnosis, item)
    if as_json:
        shown = {"run": found.id, **document(diagnosis), **trace_document(traced)}
        sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
    elif as_markdown:
        sys.stdout.write(markdown(diagnosis, found.id))
    else:
        info = found.info
        level = f" ({info['level']})" if found.state is State.VALIDATED and info.get("level") else ""
        subject = (
            f"{found.id}: {found.state}{level}, profile {info.get('profile')} on {info.get('host')}, "
            f"SGLang {info.get('engine')}"
        )
        show(diagnosis, subject=subject)
        write_trace(traced)
    if apply:
        from launcher.cli.patch import write_patched

        sys.stderr.write(write_patched(found, diagnosis, apply) + "\n")
    return of_diagnosis(diagnosis)


def _traced(found: Run, evidence: HostEvidence, diagnosis: Diagnosis, item: Entry | None) -> Traced | None:
    if item is None:
        return None
    from launcher.flows.diagnose.traced import read_run, stated_by_run, traced

    return traced(item.id, diagnosis, read_run(found, evidence), stated_by_run(found))


def _evidence(found: Run, hosts_file: Path | None, *, kernel: bool, remote: bool) -> HostEvidence | None:
    """What the run's host is asked, in one connection; None when nothing is asked. Raises HostUnreachable when there is
    no copy of the log here to judge instead."""
    if not kernel and not remote:
        return None
    from launcher.clock import SystemClock
    from launcher.flows.diagnose.host_evidence import host_evidence
    from launcher.flows.diagnose.run_diagnosis import HostEvidence, has_log
    from launcher.knowledge_cache import index

    words = index().words.texts if remote else ()
    try:
        with connected(host_of(found.host, hosts_file)) as transport:
            return host_evidence(transport, found, SystemClock().now().timestamp(), kernel=kernel, words=words)
    except HostUnreachable as error:
        if not has_log(found):
            raise
        return HostEvidence(notes=(f"the host was not asked: {error.message}; the local copy of the log was judged",))


def _without_log(found: Run, item: Entry | None) -> int:
    info = found.info
    sys.stdout.write(f"{found.id} is {info.get('state')}: {info.get('reason') or 'it left no log'}\n")
    for finding in found.read("findings") or []:
        sys.stdout.write(f"  {finding['severity']} {finding['id']}: {finding['message']}\n")
    if item is not None:
        ask = f"launch check {info.get('profile')} --host {info.get('host')} --trace {item.id}"
        sys.stdout.write(f"  there is no log to hold {item.id} against; ask the launch: `{ask}`\n")
    return Exit.REFUSED if found.state is State.REFUSED else Exit.INCONCLUSIVE
