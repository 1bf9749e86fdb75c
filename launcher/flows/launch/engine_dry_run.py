"""The engine's own dry run on the host: what it would refuse, and what it would change without being asked.

Ten seconds instead of five minutes: its argument resolution reads the checkpoint's configuration and asks the GPU for
its capability, but loads no weights and allocates nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from checks.catalog.entries import entry
from checks.engine.remedies import fitting
from checks.facts.launch_evidence import build
from checks.vocabulary import Evidence, Finding, FlagValue, Origin, Severity
from launcher import hostside
from launcher.errors import HostCommandFailed
from launcher.flows.diagnose.log_diagnosis import diagnose_log
from launcher.flows.launch.prepare import Prepared
from launcher.transport.answers import last_line
from launcher.transport.base import Command, Result, Transport

MARK = b"sglang-launcher-dry-run:"
TIMEOUT = 240.0  # seconds; importing the engine takes 3 to 25, on a network disk longer

# A switch that the engine turns on by itself and that costs speed or memory: worth more than a note.
COSTLY = {
    "disable_radix_cache": "the prefix cache is off: every request is computed from its first token",
    "disable_overlap_schedule": "the overlap scheduler is off: the GPU waits for the CPU between batches",
    "disable_cuda_graph": "CUDA graphs are off: decoding is launch-bound",
    "disable_custom_all_reduce": "custom all-reduce is off",
}


class DryRun(Struct, frozen=True, kw_only=True):
    """What the engine said. `findings` holds its refusal, or the differences between asked and got."""

    ok: bool
    findings: tuple[Finding, ...]
    effective: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0


def dry_run(transport: Transport, prepared: Prepared) -> DryRun:
    """Run it. Raises HostCommandFailed when the engine's interpreter does not even start, TransportTimeout."""
    plan = prepared.plan
    arguments = {"argv": list(plan.flag_words), "env": dict(plan.env)}
    command = Command(
        argv=(plan.python, "-"),
        label="dry_run",
        stdin=hostside.bundle("dry_run", arguments),
        env=dict(plan.env),  # PYTHONPATH and the like must be there before the interpreter starts
        timeout=TIMEOUT,
    )
    result = transport.run(command)
    answer = _answer(result, transport.name)
    warnings = tuple(answer.get("warnings", ()))
    if answer["ok"]:
        changed = differences(plan.flags, answer["effective"])
        return DryRun(
            ok=True, findings=changed, effective=answer["effective"], warnings=warnings, seconds=result.seconds
        )
    finding = refusal(answer, result, prepared)
    return DryRun(ok=False, findings=(finding,), warnings=warnings, seconds=result.seconds)


def refusal(answer: Mapping[str, Any], result: Result, prepared: Prepared) -> Finding:
    """The engine's refusal under the id of the cause that knows it, else as `engine-refuses-arguments`."""
    text = refusal_text(answer, result)
    known = {
        "engine_version": prepared.plan.engine,
        "gpu": prepared.launch.gpu,
        "model": prepared.launch.model,
        "flags": prepared.launch.flags,
        "env": prepared.launch.env,
    }
    found = diagnose_log([text.encode()], known, prepared.plan.engine)
    cause = entry(found.cause.id) if found.cause else None
    message = answer.get("message") or f"{answer.get('exception', 'refused')} without a message"
    if answer["kind"] == "usage":
        message = text.strip().splitlines()[-1]
    facts, _ = build(prepared.launch)
    return Finding(
        id=found.cause.id if found.cause else "engine-refuses-arguments",
        severity=Severity.ERROR,
        origin=Origin.ENGINE,
        message=f"the engine's own check refuses: {' '.join(str(message).split())[:400]}",
        why=_why(answer, cause.why if cause else ""),
        evidence=(Evidence(text=text[-600:], source=str(answer.get("frame", ""))),),
        remedies=fitting(cause.remedies, facts, {}) if cause else (),
    )


def refusal_text(answer: Mapping[str, Any], result: Result) -> str:
    """The refusal as it would stand in a log, for the signatures."""
    if answer["kind"] == "usage":
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        return next((line for line in reversed(lines) if "error: " in line), "") + "\n"
    file, _, rest = str(answer.get("frame", "")).partition(":")
    line, _, function = rest.partition(" in ")
    message = f"{answer['exception']}: {answer['message']}" if answer["message"] else str(answer["exception"])
    return (
        "Traceback (most recent call last):\n"
        f'  File "/sglang/{file}", line {line or 0}, in {function}\n'
        f"    {answer.get('condition', '')}\n{message}\n"
    )


def differences(flags: Mapping[str, FlagValue], effective: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Asked → got: values that the engine replaced, and costly switches that it turned on by itself."""
    found = []
    for name, value in flags.items():
        key = name.replace("-", "_")
        if key in effective and not same(value, effective[key]):
            found.append(_difference(name, f"asked for --{name} {value}, the engine makes it {effective[key]}"))
    for key, meaning in COSTLY.items():
        if effective.get(key) is True and key.replace("_", "-") not in flags:
            found.append(
                Finding(
                    id="feature-silently-disabled",
                    severity=Severity.WARNING,
                    origin=Origin.ENGINE,
                    message=f"the engine sets {key}: {meaning}",
                    subject=f"flag.{key.replace('_', '-')}",
                )
            )
    return tuple(found)


def same(asked: FlagValue, got: object) -> bool:
    """Whether a flag as typed and a resolved value mean the same."""
    if isinstance(asked, bool) or isinstance(got, bool):
        return str(asked).lower() == str(got).lower()
    if isinstance(asked, list):
        return isinstance(got, list) and [str(item) for item in asked] == [str(item) for item in got]
    if isinstance(got, int | float):
        try:
            return float(str(asked)) == float(got)
        except ValueError:
            return False
    if isinstance(got, list):
        return [str(asked)] == [str(item) for item in got]
    return str(asked) == str(got) or (str(asked).startswith("~") and str(got).endswith(str(asked)[1:]))


def _difference(name: str, message: str) -> Finding:
    return Finding(
        id="flag-changed-by-engine",
        severity=Severity.INFO,
        origin=Origin.ENGINE,
        message=message,
        subject=f"flag.{name}",
    )


def _why(answer: Mapping[str, Any], known: str) -> str:
    place = f"{answer['frame']}" if answer.get("frame") else ""
    guard = f" when {answer['condition']}" if answer.get("condition") else ""
    return " ".join(part for part in (known, f"Raised at {place}{guard}." if place else "") if part)


def _answer(result: Result, host: str) -> dict[str, Any]:
    start = result.stdout.rfind(MARK)
    if start < 0:
        reason = last_line(result.stderr)
        raise HostCommandFailed(f"the engine's dry run on {host} died (exit {result.exit}): {reason}", where=host)
    return dict(json.loads(result.stdout[start + len(MARK) :].split(b"\n")[0]))
