"""Run the engine's own argument resolution on the host: which arguments it refuses, and which it silently changes.

This takes ten seconds instead of five minutes: it reads the checkpoint's configuration and asks the GPU for its
compute capability, but loads no weights and allocates nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from checks.catalog.entries import entry
from checks.engine.remedies import fitting
from checks.facts.launch_evidence import Launch, build
from checks.vocabulary import Evidence, Finding, FlagValue, Origin, Severity
from launcher import hostside
from launcher.errors import HostCommandFailed
from launcher.flows.diagnose.log_diagnosis import diagnose_log
from launcher.flows.launch.prepare import Prepared
from launcher.transport.answers import last_line
from launcher.transport.base import Command, Result, Transport

MARK = b"sglang-launcher-dry-run:"
TIMEOUT = 240.0  # seconds; importing the engine takes 3 to 25, and longer from a network disk

# Switches that cost speed or memory: a warning, not a note, when the engine sets one that the profile does not.
COSTLY = {
    "disable_radix_cache": "the radix cache is off: every request is prefilled from its first token",
    "disable_overlap_schedule": "the overlap scheduler is off: the GPU waits for the CPU between batches",
    "disable_cuda_graph": "CUDA graphs are off: decode is bound by kernel launches",
    "disable_custom_all_reduce": "custom all-reduce is off",
}


class DryRun(Struct, frozen=True, kw_only=True):
    """The engine's answer. `findings` contains its refusal, or the arguments that it changed."""

    ok: bool
    findings: tuple[Finding, ...]
    effective: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0


def dry_run(transport: Transport, prepared: Prepared) -> DryRun:
    """Let the engine resolve the plan's arguments on the host.

    Raises HostCommandFailed if the engine's interpreter does not start or dies without an answer, and
    TransportTimeout after TIMEOUT seconds.
    """
    plan = prepared.plan
    arguments = {"argv": list(plan.flag_words), "env": dict(plan.env)}
    command = Command(
        argv=(plan.python, "-"),
        label="dry_run",
        stdin=hostside.bundle("dry_run", arguments),
        env=dict(plan.env),  # PYTHONPATH and similar variables must be set before the interpreter starts
        timeout=TIMEOUT,
    )
    result = transport.run(command)
    answer = _answer(result, transport.name)
    warnings = tuple(answer.get("warnings", ()))
    if answer["ok"]:
        changes = differences(plan.flags, answer["effective"])
        return DryRun(
            ok=True, findings=changes, effective=answer["effective"], warnings=warnings, seconds=result.seconds
        )
    finding = refusal(answer, refusal_text(answer, result.stderr), prepared.launch, plan.engine)
    return DryRun(ok=False, findings=(finding,), warnings=warnings, seconds=result.seconds)


def refusal(answer: Mapping[str, Any], text: str, launch: Launch, engine: str) -> Finding:
    """Return a refusal as a finding with the id of the cause that matches `text`, otherwise `engine-refuses-arguments`.

    `text` is the refusal as it stands in a log.
    """
    known = {
        "engine_version": engine,
        "gpu": launch.gpu,
        "model": launch.model,
        "flags": launch.flags,
        "env": launch.env,
    }
    diagnosis = diagnose_log([text.encode()], known, engine)
    cause = entry(diagnosis.cause.id) if diagnosis.cause else None
    message = answer.get("message") or f"{answer.get('exception', 'refused')} without a message"
    if answer["kind"] == "usage" and text.strip():
        message = text.strip()
    facts, _ = build(launch)
    return Finding(
        id=diagnosis.cause.id if diagnosis.cause else "engine-refuses-arguments",
        severity=Severity.ERROR,
        origin=Origin.ENGINE,
        message=f"the engine refuses these arguments: {' '.join(str(message).split())[:400]}",
        why=_why(answer, cause.why if cause else ""),
        evidence=(Evidence(text=text[-600:], source=str(answer.get("frame", ""))),),
        remedies=fitting(cause.remedies, facts, {}) if cause else (),
    )


def refusal_text(answer: Mapping[str, Any], stderr: bytes) -> str:
    """Return the refusal in the form that it has in a log, so that log patterns match it."""
    if answer["kind"] == "usage":
        lines = stderr.decode("utf-8", "replace").strip().splitlines()
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
    """Return a finding for each flag value that the engine replaced, and for each costly switch that it set unasked."""
    findings = []
    for name, value in flags.items():
        key = name.replace("-", "_")
        if key in effective and not same(value, effective[key]):
            findings.append(_difference(name, f"the engine changes `--{name} {value}` to `{effective[key]}`"))
    for key, meaning in COSTLY.items():
        if effective.get(key) is True and key.replace("_", "-") not in flags:
            findings.append(
                Finding(
                    id="feature-silently-disabled",
                    severity=Severity.WARNING,
                    origin=Origin.ENGINE,
                    message=f"the engine sets `{key}` on its own: {meaning}",
                    subject=f"flag.{key.replace('_', '-')}",
                )
            )
    return tuple(findings)


def same(typed: FlagValue, resolved: object) -> bool:
    """Return whether a flag value as typed means the same as the value that the engine resolved."""
    if isinstance(typed, bool) or isinstance(resolved, bool):
        return str(typed).lower() == str(resolved).lower()
    if isinstance(typed, list):
        return isinstance(resolved, list) and [str(item) for item in typed] == [str(item) for item in resolved]
    if isinstance(resolved, int | float):
        try:
            return float(str(typed)) == float(resolved)
        except ValueError:
            return False
    if isinstance(resolved, list):
        return [str(typed)] == [str(item) for item in resolved]
    return str(typed) == str(resolved) or (str(typed).startswith("~") and str(resolved).endswith(str(typed)[1:]))


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
        message = f"the engine's dry run on {host} failed (exit {result.exit}): {last_line(result.stderr)}"
        raise HostCommandFailed(message, where=host, hint="`launch profile PROFILE --fast` skips the dry run")
    return dict(json.loads(result.stdout[start + len(MARK) :].split(b"\n")[0]))
