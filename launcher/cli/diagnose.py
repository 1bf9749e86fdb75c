"""`diagnose log`: read a log, print why it ended. Exit code 0: healthy, 1: a cause is named, 5: unknown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from checks.diagnosis import NO_LOG
from checks.model import Diagnosis, Evidence, Match, Remedy


def log(
    file: Annotated[str, typer.Argument(help="log file (plain, .gz, .xz, .zst), or - for standard input")],
    engine: Annotated[str, typer.Option(help="engine release, e.g. 0.5.10; left out: read from the log")] = "",
    facts: Annotated[Path | None, typer.Option(help="JSON: engine_version, gpu, model, flags, env, observed")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """Explain a log file."""
    from launcher.flows.diagnose import diagnose_log
    from launcher.logfile import chunks

    found = diagnose_log(chunks(file), _known(facts), engine)
    if as_json:
        sys.stdout.write(json.dumps(document(found), ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(plain(found))
    if found.cause:
        return 1
    return 0 if found.healthy and NO_LOG not in found.notes else 5


def document(found: Diagnosis) -> dict[str, Any]:
    """The JSON form of a diagnosis, a contract: keys are only ever added."""
    cause = found.cause
    first = cause.evidence[0] if cause and cause.evidence else None
    return {
        "cause": cause and {
            "id": cause.id, "title": cause.title, "line": cause.line,
            "rank": first.rank if first else "", "time": first.time if first else "",
        },
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


def plain(found: Diagnosis) -> str:
    """A few lines without colours, for pipes and bug reports."""
    rows = [f"{found.cause.id}: {found.sentence}" if found.cause else found.sentence]
    rows += [f"  line {item.line}{' ' + item.rank if item.rank else ''}: {item.text}" for item in _shown(found)]
    rows += [f"why: {found.why}"] if found.why else []
    rows += [f"remedy: {item.text} {_patch(item)}".rstrip() for item in found.remedies]
    rows += [f"fingerprint: {found.fingerprint}"] if found.fingerprint and not found.cause else []
    rows += [f"open: {item.title}" for item in found.ledger]
    rows += [f"note: {note}" for note in found.notes]
    return "\n".join(rows) + "\n"


def markdown(found: Diagnosis, run: str = "") -> str:
    """The diagnosis for an issue or a chat."""
    title = f"`{found.cause.id}`: {found.sentence}" if found.cause else found.sentence
    rows = [f"### {title}", ""]
    rows += [f"Run `{run}`, SGLang {found.engine or 'unknown'}, phase {found.phase or 'unknown'}.", ""] if run else []
    shown = [f"{item.line:>6} {item.rank} {item.text}".rstrip() for item in _shown(found)]
    rows += ["```text", *shown, "```", ""] if shown else []
    rows += [found.why, ""] if found.why else []
    rows += [f"- **remedy**: {item.text} `{_patch(item)}`" for item in found.remedies]
    rows += [f"- fingerprint `{found.fingerprint}`"] if found.fingerprint else []
    rows += [f"- open: {item.title}" for item in found.ledger]
    return "\n".join(rows).rstrip() + "\n"


def _known(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    from launcher.errors import UsageError

    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the facts in {path}: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no JSON object")
    return data


def _evidence(item: Evidence) -> dict[str, Any]:
    return {"text": item.text, "line": item.line, "rank": item.rank, "time": item.time}


def _short(item: Match) -> dict[str, Any]:
    return {"id": item.id, "title": item.title, "line": item.line}


def remedy_json(item: Remedy) -> dict[str, Any]:
    return {
        "text": item.text, "set": dict(item.set), "unset": list(item.unset), "env": dict(item.env),
        "unset_env": list(item.unset_env), "install": item.install, "upgrade": dict(item.upgrade),
    }  # fmt: skip


def _patch(item: Remedy) -> str:
    words = [f"--{name}" if value is True else f"--{name} {value}" for name, value in item.set.items()]
    words += [f"(without --{name})" for name in item.unset]
    words += [f"{name}={value}" for name, value in item.env.items()]
    words += [f"(without {name})" for name in item.unset_env]
    words += [f"install {item.install}"] if item.install else []
    words += [f"{name}{wanted}" for name, wanted in item.upgrade.items()]
    return " ".join(words)


def _shown(found: Diagnosis) -> tuple[Evidence, ...]:
    return found.cause.evidence if found.cause else ()


if __name__ == "__main__":
    from launcher.cli.app import DIAGNOSE, run

    sys.exit(run("diagnose", DIAGNOSE, sys.argv[1:]))
