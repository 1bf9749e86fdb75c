"""`diagnose log`: read a log, print why it ended. Exit code 0: healthy, 1: a cause is named, 5: unknown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from checks.vocabulary import Diagnosis, Evidence, Match, Remedy
from launcher.cli.diagnose_view import markdown, show
from launcher.cli.exits import of_diagnosis
from launcher.cli.trace_option import Trace, traced_entry

if TYPE_CHECKING:
    from checks.catalog.entries import Entry
    from launcher.flows.diagnose.traced import Traced
    from launcher.profile.file import Profile


def log(
    file: Annotated[str, typer.Argument(help="log file (plain, .gz, .xz, .zst), or - for standard input")],
    engine: Annotated[str, typer.Option(help="engine release, e.g. 0.5.10; left out: read from the log")] = "",
    facts: Annotated[Path | None, typer.Option(help="JSON: engine_version, gpu, model, flags, env, observed")] = None,
    profile: Annotated[str, typer.Option(help="profile that was launched (name, or a .yaml file)")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="for an issue or a chat")] = False,
    apply: Annotated[str, typer.Option("--apply", help="write --profile with the first remedy under this name")] = "",
    trace: Trace = "",
) -> int:
    """Explain a log file."""
    from launcher.logfile import chunks

    if apply and not profile:
        raise _usage("which profile is to be changed?", hint="--profile NAME, or a .yaml file")
    item = traced_entry(trace, as_markdown=as_markdown)
    launched = _launched(profile, engine) if profile else None
    found, traced = _judged(chunks(file), _Given(launched, facts, engine), item)
    if as_json:
        sys.stdout.write(json.dumps({**document(found), **trace_document(traced)}, ensure_ascii=False) + "\n")
    elif as_markdown:
        sys.stdout.write(markdown(found, log=file))
    else:
        show(found)
        write_trace(traced)
    if apply and launched:
        from launcher.cli.patch import write_patched_profile

        sys.stderr.write(write_patched_profile(launched, file, found, apply) + "\n")
    return of_diagnosis(found)


class _Given(Struct, frozen=True):
    """What the caller knows of the launch behind a log."""

    profile: Profile | None
    facts: Path | None
    engine: str

    def known(self) -> dict[str, Any]:
        """In the form of a facts file."""
        return {**(_profile_facts(self.profile) if self.profile else {}), **_known(self.facts)}

    def sources(self) -> dict[str, str]:
        """Who states it, fact by fact."""
        from launcher.flows.diagnose.traced import stated_in

        found: dict[str, str] = {}
        if self.profile:
            from checks.engine.flag_schema import load
            from launcher.plan.fact_sources import of_profile

            stated = of_profile(self.profile, load(self.engine))
            found = {name: words for name, words in stated.items() if name.startswith(("flag.", "env."))}
        found |= stated_in(_known(self.facts), f"given in {self.facts}") if self.facts else {}
        return {**found, **({"engine.version": "given by --engine"} if self.engine else {})}


def _judged(log: Iterable[bytes], given: _Given, item: Entry | None) -> tuple[Diagnosis, Traced | None]:
    if item is None:
        from launcher.flows.diagnose.log_diagnosis import diagnose_log

        return diagnose_log(log, given.known(), given.engine), None
    from launcher.flows.diagnose.traced import read_log, traced

    found, reading = read_log(log, given.known(), given.engine)
    return found, traced(item.id, found, reading, given.sources())


def trace_document(found: Traced | None) -> dict[str, Any]:
    """`trace` of the JSON form; nothing where none is asked for."""
    if found is None:
        return {}
    from launcher.cli.trace_view import Known, cause_document

    return {"trace": cause_document(found.trace, Known(facts=found.facts, sources=found.sources))}


def write_trace(found: Traced | None) -> None:
    """The trace for people, where one is asked for."""
    if found is not None:
        from launcher.cli.trace_view import Known, cause_rows, write

        write(cause_rows(found.trace, Known(facts=found.facts, sources=found.sources)))


def document(found: Diagnosis) -> dict[str, Any]:
    """The JSON form of a diagnosis, a contract: keys are only ever added."""
    cause = found.cause
    first = cause.evidence[0] if cause and cause.evidence else None
    return {
        "cause": cause and {
            "id": cause.id, "title": cause.title, "line": cause.line,
            "rank": first.rank if first else "", "time": first.time if first else "",
        },
        "verdict": found.verdict,
        "healthy": found.healthy,
        "sentence": found.sentence,
        "why": found.why,
        "evidence": [_evidence(item) for item in (cause.evidence if cause else ())],
        "remedies": [remedy_json(item) for item in found.remedies],
        "symptoms": [item.id for item in found.symptoms],
        "ledger": [_short(item) for item in found.ledger],
        "dismissed": [_short(item) for item in found.dismissed],
        "fingerprint": found.fingerprint,
        "phase": found.phase,
        "engine": found.engine,
        "notes": list(found.notes),
    }  # fmt: skip


def _launched(name: str, engine: str) -> Profile:
    """The profile behind a log, as its release gets it. Raises ProfileError, UsageError."""
    from launcher.profile.resolve import for_engine, resolve, search_path

    return for_engine(resolve(name, search_path()), engine or None)


def _profile_facts(profile: Profile) -> dict[str, Any]:
    flags = {name: item.value for name, item in profile.flags.items()}
    return {"flags": flags, "env": {name: item.value for name, item in profile.env.items() if not item.secret}}


def _known(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _usage(f"cannot read the facts in {path}: {error}") from error
    if not isinstance(data, dict):
        raise _usage(f"{path} holds no JSON object")
    from checks.facts.launch_evidence import from_case

    try:
        from_case(data)
    except ValueError as error:
        raise _usage(f"{path}: {error}") from error
    return data


def _usage(message: str, hint: str = "") -> Exception:
    from launcher.errors import UsageError

    return UsageError(message, hint=hint)


def _evidence(item: Evidence) -> dict[str, Any]:
    return {"text": item.text, "line": item.line, "rank": item.rank, "time": item.time}


def _short(item: Match) -> dict[str, Any]:
    return {"id": item.id, "title": item.title, "line": item.line}


def remedy_json(item: Remedy) -> dict[str, Any]:
    return {
        "text": item.text, "set": dict(item.set), "unset": list(item.unset), "env": dict(item.env),
        "unset_env": list(item.unset_env), "install": item.install, "run": item.run or None,
        "require": dict(item.require), "inspect": item.inspect or None, "upgrade": dict(item.upgrade),
    }  # fmt: skip


if __name__ == "__main__":
    from launcher.cli.app import DIAGNOSE, run

    sys.exit(run("diagnose", DIAGNOSE, sys.argv[1:]))
