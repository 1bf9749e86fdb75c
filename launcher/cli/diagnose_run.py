"""`diagnose last-crash` and `diagnose run`: explain a run from its local folder.

The host is contacted only with --host-evidence or --remote. A log without a run is explained by `diagnose log`.
"""

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
from launcher.errors import HostUnreachable, RunNotFound, UsageError
from launcher.run.state import State
from launcher.run.store import Run, RunStore

if TYPE_CHECKING:
    from checks.catalog.entries import Entry
    from checks.vocabulary import Diagnosis
    from launcher.flows.diagnose.run_diagnosis import HostEvidence
    from launcher.flows.diagnose.traced import Traced

AskKernel: TypeAlias = Annotated[
    bool, typer.Option("--host-evidence", help="also read the host's kernel log: OOM killer, GPU faults")
]
Remote: TypeAlias = Annotated[
    bool, typer.Option("--remote", help="read the log on the host and transfer only relevant lines")
]


def last_crash(
    host: Annotated[str, typer.Option("--host", "-H", help="only runs on this host")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="print Markdown for an issue or a chat")] = False,
    apply: Annotated[str, typer.Option("--apply", help="save the profile with the first remedy under this name")] = "",
    host_evidence: AskKernel = False,
    remote: Remote = False,
    hosts_file: HostsFile = None,
    trace: Trace = "",
) -> int:
    """Explain the most recent run that failed."""
    item = traced_entry(trace, as_markdown=as_markdown)
    chosen = RunStore().last_crash(host or None)
    if chosen is None:
        raise RunNotFound(
            "no failed run" + (f" on `{host}`" if host else ""),
            hint="`launch runs` lists all runs; `diagnose log FILE` explains any log",
        )
    evidence = _evidence(chosen, hosts_file, kernel=host_evidence, remote=remote)
    return explain(chosen, as_json=as_json, as_markdown=as_markdown, apply=apply, evidence=evidence, item=item)


def run(
    name: Annotated[str, typer.Argument(metavar="RUN", help="run id, part of it, `last`, a run folder, or a bundle")],
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="print Markdown for an issue or a chat")] = False,
    apply: Annotated[str, typer.Option("--apply", help="save the profile with the first remedy under this name")] = "",
    host_evidence: AskKernel = False,
    remote: Remote = False,
    hosts_file: HostsFile = None,
    trace: Trace = "",
) -> int:
    """Explain why a run failed."""
    item = traced_entry(trace, as_markdown=as_markdown)
    if not name.endswith((".tar.gz", ".tgz")):
        chosen = RunStore().find(name)
        evidence = _evidence(chosen, hosts_file, kernel=host_evidence, remote=remote)
        return explain(chosen, as_json=as_json, as_markdown=as_markdown, apply=apply, evidence=evidence, item=item)
    if remote or host_evidence:
        option = "--remote" if remote else "--host-evidence"
        raise UsageError(f"{option} cannot be combined with a bundle, which is judged as it is", hint=f"drop {option}")
    from launcher.gate.evidence_bundle import opened  # only a bundle pays for importing tar, gzip and digests

    with opened(Path(name)) as chosen:
        return explain(chosen, as_json=as_json, as_markdown=as_markdown, apply=apply, item=item)


def explain(
    chosen: Run,
    *,
    as_json: bool,
    as_markdown: bool,
    apply: str,
    evidence: HostEvidence | None = None,
    item: Entry | None = None,
) -> int:
    """Diagnose the log of a run, print the result (with `item` also its trace) and return the exit code."""
    from launcher.flows.diagnose.run_diagnosis import NO_EVIDENCE, diagnose_run, has_log

    if not has_log(chosen) and not (evidence and evidence.log):
        return _without_log(chosen, item, as_json=as_json)
    diagnosis = diagnose_run(chosen, evidence or NO_EVIDENCE)
    traced = _traced(chosen, evidence or NO_EVIDENCE, diagnosis, item)
    if as_json:
        shown = {"run": chosen.id, **document(diagnosis), **trace_document(traced)}
        sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
    elif as_markdown:
        sys.stdout.write(markdown(diagnosis, chosen.id))
    else:
        info = chosen.info
        level = f" ({info['level']})" if chosen.state is State.VALIDATED and info.get("level") else ""
        subject = (
            f"{chosen.id}: {chosen.state}{level}, profile {info.get('profile')} on {info.get('host')}, "
            f"SGLang {info.get('engine')}"
        )
        show(diagnosis, subject=subject)
        write_trace(traced)
    if apply:
        from launcher.cli.patch import write_patched

        sys.stderr.write(write_patched(chosen, diagnosis, apply) + "\n")
    return of_diagnosis(diagnosis)


def _traced(chosen: Run, evidence: HostEvidence, diagnosis: Diagnosis, item: Entry | None) -> Traced | None:
    if item is None:
        return None
    from launcher.flows.diagnose.traced import read_run, stated_by_run, traced

    return traced(item.id, diagnosis, read_run(chosen, evidence), stated_by_run(chosen))


def _evidence(chosen: Run, hosts_file: Path | None, *, kernel: bool, remote: bool) -> HostEvidence | None:
    """Read kernel log and run log on the host, in one connection; None when neither is requested.

    Raises HostUnreachable when the host cannot be reached and no local copy of the log exists to judge instead.
    """
    if not kernel and not remote:
        return None
    from launcher.clock import SystemClock
    from launcher.flows.diagnose.host_evidence import host_evidence
    from launcher.flows.diagnose.run_diagnosis import HostEvidence, has_log
    from launcher.knowledge_cache import index

    words = index().words.texts if remote else ()
    try:
        with connected(host_of(chosen.host, hosts_file)) as transport:
            return host_evidence(transport, chosen, SystemClock().now().timestamp(), kernel=kernel, words=words)
    except HostUnreachable as error:
        if not has_log(chosen):
            raise
        return HostEvidence(notes=(f"host not reached ({error.message}); this is judged from the local log copy",))


def _without_log(chosen: Run, item: Entry | None, *, as_json: bool) -> int:
    info, findings = chosen.info, chosen.read("findings") or []
    reason = info.get("reason") or "it has no log"
    if as_json:
        shown = {"run": chosen.id, "cause": None, "state": chosen.state, "reason": reason, "findings": findings}
        sys.stdout.write(json.dumps({**shown, **({"trace": None} if item else {})}, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{chosen.id} is {chosen.state}: {reason}\n")
        sys.stdout.write("".join(f"  {part['severity']} {part['id']}: {part['message']}\n" for part in findings))
    if item is not None and not as_json:
        command = f"launch check {info.get('profile')} --host {info.get('host')} --trace {item.id}"
        sys.stdout.write(f"  no log to trace {item.id} in; trace it before the launch instead: `{command}`\n")
    return Exit.REFUSED if chosen.state is State.REFUSED else Exit.INCONCLUSIVE
