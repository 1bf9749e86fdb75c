"""Check a launch by its twin: the release's own argument code, run here with host and model from facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from checks.facts.launch_evidence import Launch
from checks.vocabulary import Finding, FlagValue, Origin, Severity
from launcher.flows.launch.engine_dry_run import differences, refusal, refusal_text
from launcher.plan.launch_plan import render_flag
from launcher.transport.base import Transport
from launcher.twin import release_store, twin_environment
from launcher.twin.simulation import Simulated, simulated
from launcher.twin.twin import Answer, Question, ask


def available(version: str) -> bool:
    """Whether the twin of a release can run: `launch engines fetch` has stored its source and its packages."""
    release = release_store.stored(version)
    return release is not None and twin_environment.existing(release) is not None


class Asked(Struct, frozen=True, kw_only=True):
    """A launch to ask about: its flags are spelled for the release; `raw` and `folders` as in `simulation`."""

    name: str
    launch: Launch
    flags: Mapping[str, FlagValue]
    raw: Mapping[str, Any] | None = None
    folders: Mapping[str, Any] = field(default_factory=dict)


def twin_check(transport: Transport, version: str, launches: Sequence[Asked]) -> dict[str, tuple[Finding, ...]]:
    """Return name of a launch → findings of the twin of a release; empty if it is not `available`.

    Raises HostCommandFailed if the twin does not start.
    """
    answers = twin_answers(transport, version, launches)
    return {item.name: findings(answers[item.name], item, version) for item in launches if item.name in answers}


def twin_answers(transport: Transport, version: str, launches: Sequence[Asked]) -> dict[str, Answer]:
    """Return name of a launch → answer of the twin of a release; empty if it is not `available`.

    Raises HostCommandFailed if the twin does not start.
    """
    release = release_store.stored(version)
    place = twin_environment.existing(release) if release else None
    if release is None or place is None:
        return {}
    hosts = {item.name: simulated(item.launch, release.assumed(), item.raw, item.folders) for item in launches}
    known = [item for item in launches if not hosts[item.name].unknown]
    answers = ask(transport, release, place, [_question(item, hosts[item.name]) for item in known])
    for item in launches:
        if lacking := hosts[item.name].unknown:
            answers[item.name] = Answer(kind="unknown", doubts=(f"the facts lack {' and '.join(lacking)}",))
    return answers


def _question(item: Asked, host: Simulated) -> Question:
    words = tuple(word for flag, value in item.flags.items() for word in render_flag(flag, value))
    env = {key: str(value) for key, value in item.launch.env.items()}
    return Question(name=item.name, words=words, env=env, host=host)


def findings(answer: Answer, item: Asked, version: str) -> tuple[Finding, ...]:
    """Return what an answer means: a refusal, changed arguments, or that the twin could not decide."""
    if answer.refused:
        document: dict[str, Any] = {name: getattr(answer, name) for name in answer.__struct_fields__}
        text = refusal_text(document, answer.message.encode())
        return (refusal(document, text, item.launch, version),)
    if answer.kind == "unknown":
        reason = f" ({answer.exception}: {answer.message[:120]})" if answer.stage == "import" else ""
        why = f"{answer.exception}: {answer.message}"
        return (_undecided(version, "; ".join(answer.doubts[:2]) + reason, why),)
    return differences(item.flags, answer.effective)


def _undecided(version: str, reason: str, why: str = "") -> Finding:
    return Finding(
        id="twin-undecided",
        severity=Severity.INFO,
        origin=Origin.ENGINE,
        message=f"the argument code of SGLang {version} could not decide about this launch here: {reason}",
        why=why.strip(": ")[:400],
    )
