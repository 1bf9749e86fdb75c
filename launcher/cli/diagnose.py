"""`diagnose log`: read a log and print why the launch failed. Exit code 0: healthy, 1: a cause is named, 5: unknown.

`diagnose run` and `diagnose last-crash` are in `diagnose_run`; the rows that are printed are in `diagnose_view`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct
from msgspec.structs import replace

from checks.vocabulary import Diagnosis, Evidence, Match, Remedy, Suspect
from launcher.cli.diagnose_view import markdown, show
from launcher.cli.exits import of_diagnosis
from launcher.cli.trace_option import Trace, traced_entry

if TYPE_CHECKING:
    from checks.catalog.entries import Entry
    from launcher.flows.diagnose.traced import Traced
    from launcher.profile.file import Profile


OBSERVED_HELP = "what was seen of the server, e.g. hang, garbled, slow, images-ignored; an unknown kind lists all kinds"


def log(
    file: Annotated[str, typer.Argument(help="log file (plain, .gz, .xz, .zst), or `-` for standard input")],
    engine: Annotated[str, typer.Option(help="SGLang release, e.g. 0.5.10; default: read from the log")] = "",
    facts: Annotated[Path | None, typer.Option(help="JSON: engine_version, gpu, model, flags, env, observed")] = None,
    profile: Annotated[str, typer.Option(help="profile that produced the log (name, or a .yaml file)")] = "",
    observed: Annotated[str, typer.Option("--observed", metavar="KIND", help=OBSERVED_HELP)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="print Markdown for an issue or a chat")] = False,
    apply: Annotated[str, typer.Option("--apply", help="save --profile with the first remedy under this name")] = "",
    trace: Trace = "",
) -> int:
    """Explain why the launch behind a log failed."""
    from launcher.logfile import chunks

    if apply and not profile:
        raise _usage("--apply needs the profile that it changes", hint="add --profile NAME, or --profile FILE.yaml")
    traced_cause = traced_entry(trace, as_markdown=as_markdown)
    _check_kind(observed)
    resolved_profile = _launched(profile, engine) if profile else None
    diagnosis, traced = _judged(chunks(file), _LaunchKnown(resolved_profile, facts, engine, observed), traced_cause)
    if as_json:
        sys.stdout.write(json.dumps({**document(diagnosis), **trace_document(traced)}, ensure_ascii=False) + "\n")
    elif as_markdown:
        sys.stdout.write(markdown(diagnosis, log=file))
    else:
        show(diagnosis)
        write_trace(traced)
    if apply and resolved_profile:
        from launcher.cli.patch import write_patched_profile

        sys.stderr.write(write_patched_profile(resolved_profile, file, diagnosis, apply) + "\n")
    return of_diagnosis(diagnosis)


class _LaunchKnown(Struct, frozen=True):
    """What the options state about the launch behind a log."""

    profile: Profile | None
    facts: Path | None
    engine: str
    observed: str = ""

    def facts_document(self) -> dict[str, Any]:
        """Return the stated facts in the form of a --facts file; the file overrides the profile. Raises UsageError."""
        seen = {"observed": {"kind": self.observed}} if self.observed else {}
        return {**(_profile_facts(self.profile) if self.profile else {}), **_facts_of(self.facts), **seen}

    def sources(self) -> dict[str, str]:
        """Return the source of each stated fact, in words, keyed by fact name."""
        from launcher.flows.diagnose.traced import stated_in

        sources: dict[str, str] = {}
        if self.profile:
            from checks.engine.flag_schema import load
            from launcher.plan.fact_sources import of_profile

            stated = of_profile(self.profile, load(self.engine))
            sources = {name: words for name, words in stated.items() if name.startswith(("flag.", "env."))}
        sources |= stated_in(_facts_of(self.facts), f"given in {self.facts}") if self.facts else {}
        return {**sources, **({"engine.version": "given by --engine"} if self.engine else {})}


def _judged(log: Iterable[bytes], launch: _LaunchKnown, traced_cause: Entry | None) -> tuple[Diagnosis, Traced | None]:
    if traced_cause is None:
        from launcher.flows.diagnose.log_diagnosis import diagnose_log

        return _placed(diagnose_log(log, launch.facts_document(), launch.engine), launch), None
    from launcher.flows.diagnose.traced import read_log, traced

    diagnosis, reading = read_log(log, launch.facts_document(), launch.engine)
    return _placed(diagnosis, launch), traced(traced_cause.id, diagnosis, reading, launch.sources())


def _placed(diagnosis: Diagnosis, launch: _LaunchKnown) -> Diagnosis:
    """Return the diagnosis with the position of each suspect in the profile or the facts file."""
    if not diagnosis.suspects or not (launch.profile or launch.facts):
        return diagnosis
    sources = launch.sources()
    placed = (replace(item, where=sources.get(item.setting, item.where)) for item in diagnosis.suspects)
    return replace(diagnosis, suspects=tuple(placed))


def trace_document(traced: Traced | None) -> dict[str, Any]:
    """Return the key `trace` of the JSON form, or an empty dict when no trace is requested."""
    if traced is None:
        return {}
    from launcher.cli.trace_view import Known, cause_document

    return {"trace": cause_document(traced.trace, Known(facts=traced.facts, sources=traced.sources))}


def write_trace(traced: Traced | None) -> None:
    """Print the trace for people, when one is requested."""
    if traced is not None:
        from launcher.cli.trace_view import Known, cause_rows, write

        write(cause_rows(traced.trace, Known(facts=traced.facts, sources=traced.sources)))


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the JSON form of a diagnosis. It is a contract: keys are only ever added."""
    cause = diagnosis.cause
    first = cause.evidence[0] if cause and cause.evidence else None
    return {
        "cause": cause and {
            "id": cause.id, "title": cause.title, "line": cause.line,
            "rank": first.rank if first else "", "time": first.time if first else "",
        },
        "verdict": diagnosis.verdict,
        "healthy": diagnosis.healthy,
        "sentence": diagnosis.sentence,
        "why": diagnosis.why,
        "evidence": [_evidence(item) for item in (cause.evidence if cause else ())],
        "remedies": [remedy_json(item) for item in diagnosis.remedies],
        "symptoms": [item.id for item in diagnosis.symptoms],
        "ledger": [_short(item) for item in diagnosis.ledger],
        "dismissed": [_short(item) for item in diagnosis.dismissed],
        "foreseen": [{"id": item.id, "message": item.message, "subject": item.subject} for item in diagnosis.foreseen],
        "suspects": [_suspect(item) for item in diagnosis.suspects],
        "plan": [
            {**remedy_json(item.change), "shows": item.shows, "untested": True} for item in diagnosis.plan
        ],
        "fingerprint": diagnosis.fingerprint,
        "phase": diagnosis.phase,
        "engine": diagnosis.engine,
        "notes": list(diagnosis.notes),
    }  # fmt: skip


def _check_kind(kind: str) -> None:
    """Raise UsageError with the known kinds for an observation that no plan of experiments understands."""
    if not kind:
        return
    from checks.suspects.plan import KINDS, understood

    if not understood(kind):
        groups = "; ".join(f"{group}: {', '.join(kinds)}" for group, kinds in KINDS.items())
        raise _usage(f"unknown observation `{kind}`", hint=f"use one of {groups}")


def _launched(name: str, engine: str) -> Profile:
    """Return the profile behind a log, resolved for its SGLang release. Raises ProfileError, UsageError."""
    from launcher.profile.resolve import for_engine, resolve, search_path

    return for_engine(resolve(name, search_path()), engine or None)


def _profile_facts(profile: Profile) -> dict[str, Any]:
    from launcher.plan.launch_plan import hardware, offline_flags

    return {
        "flags": offline_flags(profile),
        "env": {name: item.value for name, item in profile.env.items() if not item.secret},
        "gpu": hardware(profile),
        "model": {"name": str(profile.model["name"].value)} if "name" in profile.model else {},
    }


def _facts_of(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _usage(f"cannot read the facts in `{path}`: {error}") from error
    if not isinstance(data, dict):
        raise _usage(f"`{path}` is not a facts file: expected a JSON object")
    from checks.facts.launch_evidence import from_case

    try:
        from_case(data)
    except ValueError as error:
        raise _usage(f"`{path}` is not a facts file: {error}") from error
    return data


def _usage(message: str, hint: str = "") -> Exception:
    from launcher.errors import UsageError

    return UsageError(message, hint=hint)


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {"text": evidence.text, "line": evidence.line, "rank": evidence.rank, "time": evidence.time}


def _short(match: Match) -> dict[str, Any]:
    return {"id": match.id, "title": match.title, "line": match.line}


def _suspect(suspect: Suspect) -> dict[str, Any]:
    return {
        "setting": suspect.setting, "value": suspect.value, "where": suspect.where, "reasons": list(suspect.reasons),
        "experiments": [{**remedy_json(item), "untested": True} for item in suspect.experiments],
    }  # fmt: skip


def remedy_json(remedy: Remedy) -> dict[str, Any]:
    return {
        "text": remedy.text, "set": dict(remedy.set), "unset": list(remedy.unset), "env": dict(remedy.env),
        "unset_env": list(remedy.unset_env), "install": remedy.install, "run": remedy.run or None,
        "require": dict(remedy.require), "inspect": remedy.inspect or None, "upgrade": dict(remedy.upgrade),
    }  # fmt: skip


if __name__ == "__main__":
    from launcher.cli.app import DIAGNOSE, run

    sys.exit(run("diagnose", DIAGNOSE, sys.argv[1:]))
