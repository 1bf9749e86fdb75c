"""The static tier, without a GPU: check a profile against each release in its range and each recorded host it fits.

`launcher.gate.judge` decides what a finding means for the verdict; `launcher.gate.rulebook` evaluates rules quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from checks.before.variables import OWN_PREFIX
from checks.engine.flag_schema import FlagSchema, available, load
from checks.facts.launch_evidence import Launch
from checks.vocabulary import Finding, Severity
from launcher.errors import LauncherError
from launcher.gate.policy import Policy, fits
from launcher.gate.rulebook import Rulebook
from launcher.gate.semantic import planned
from launcher.gate.side import Machine
from launcher.plan.launch_facts import to_launch
from launcher.plan.launch_plan import LaunchPlan, hardware
from launcher.profile.file import Profile

# Recorded facts that were true only at the moment of the recording: they must not decide on a change of a profile.
_MOMENTARY = frozenset({"ports_in_use", "gpu_processes", "gpu_free_gb", "free_memory_gb", "hub_reachable"})
_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


class GroupedFinding(Struct, frozen=True, kw_only=True):
    """A finding, and every release and host that it holds for."""

    finding: Finding
    targets: tuple[str, ...]


class Checked(Struct, frozen=True, kw_only=True):
    """The findings on one profile for all its targets, which are releases and hosts."""

    findings: tuple[GroupedFinding, ...]
    targets: tuple[str, ...]
    refused: tuple[tuple[str, LauncherError], ...] = ()  # target, and why no plan can be made for it


class _Target(Struct, frozen=True, kw_only=True):
    label: str
    launch: Launch


def check_profile(profile: Profile, machines: Iterable[Machine], policy: Policy, book: Rulebook) -> Checked:
    """Check a profile that is not abstract. Findings with the same id and subject are one row."""
    targets, refused, findings = list[_Target](), list[tuple[str, LauncherError]](), list[tuple[str, Finding]]()
    for schema in releases(profile, policy):
        try:
            targets.append(_Target(label=schema.version, launch=_on_release(planned(profile, schema), profile)))
        except LauncherError as error:
            refused.append((schema.version, error))
    for machine in machines:
        if not runs_on(profile, machine, policy):
            continue
        label = f"{machine.name} ({machine.engine or 'engine unknown'})"
        findings += [(label, item) for item in _of_machine(profile, machine)]
        try:
            targets.append(_Target(label=label, launch=_on_machine(profile, machine, book)))
        except LauncherError as error:
            refused.append((label, error))
    for target, from_rules in zip(targets, book.findings(item.launch for item in targets), strict=True):
        findings += [(target.label, item) for item in from_rules]
    labels = tuple(item.label for item in targets)
    return Checked(findings=tuple(_grouped(findings)), targets=labels, refused=tuple(refused))


def releases(profile: Profile, policy: Policy) -> list[FlagSchema]:
    """Return the known releases that both the profile and the policy include, oldest first."""
    return [load(name) for name in available() if profile.engine.contains(name) and policy.engines.contains(name)]


def runs_on(profile: Profile, machine: Machine, policy: Policy) -> bool:
    """Return whether the profile may run on the machine.

    The policy decides if it lists the machine. Otherwise the profile's `hardware` must fit the recorded facts; a CPU
    profile fits every machine, and a machine without recorded facts fits every profile.
    """
    if machine.name in policy.runs_on:
        return fits(profile.name, policy.runs_on[machine.name])
    gpus = machine.raw.get("gpus") or []
    required = {name: str(item.value) for name, item in profile.hardware.items()}
    if not machine.raw or required.get("platform") == "cpu":
        return True
    if "gpu" in required and not any(required["gpu"].lower() in str(gpu.get("name", "")).lower() for gpu in gpus):
        return False
    return not required.get("count", "").isdecimal() or int(required["count"]) <= len(gpus)


def _on_release(plan: LaunchPlan, profile: Profile) -> Launch:
    model = {"name": str(profile.model["name"].value)} if "name" in profile.model else {}
    env = {name: value for name, value in plan.env.items() if not name.startswith(OWN_PREFIX)}
    return Launch(engine=plan.engine, flags=plan.flags, env=env, gpu=hardware(profile), model=model)


def with_findings(checked: Checked, found: Iterable[tuple[str, Finding]]) -> Checked:
    """Return a result with findings of another source, each with the target that it holds for."""
    rows = [(label, row.finding) for row in checked.findings for label in row.targets]
    return replace(checked, findings=tuple(_grouped([*rows, *found])))


def facts_for(machine: Machine, plan: LaunchPlan) -> dict[str, Any]:
    """Return the recorded facts of a machine, without those of a model that the plan does not use."""
    raw = dict(machine.raw)
    if str((raw.get("asked") or {}).get("model") or "") != plan.model_path:
        raw["model"] = None
    if plan.flags.get("speculative-draft-model-path") is None:
        raw["draft_model"] = None
    return raw


def _on_machine(profile: Profile, machine: Machine, book: Rulebook) -> Launch:
    """The launch as it would be on this machine now: its recorded facts, with the release that the inventory names."""
    schema = load(machine.engine or "")
    plan = planned(profile, replace(schema, version=machine.engine or schema.version), machine.env)
    if not machine.raw:
        return _on_release(plan, profile)
    raw = facts_for(machine, plan)
    launch = to_launch(raw, plan.flags, plan.env, book.packages)
    model = launch.model or _on_release(plan, profile).model
    host = {name: value for name, value in launch.host.items() if name not in _MOMENTARY}
    if machine.engine == machine.recorded_engine:
        return replace(launch, host=host, model=model)
    # another release comes with other packages than the recorded ones: left unknown, so that no rule fires on them
    return replace(launch, engine=machine.engine, host=host, model=model, packages={})


def _of_machine(profile: Profile, machine: Machine) -> Iterator[Finding]:
    if machine.engine is None:
        yield Finding(
            id="host-engine-unknown",
            severity=Severity.INFO,
            message=f"the engine release of {machine.name} is unknown, so the newest was assumed: "
            "set `engine` in hosts.yaml",
            subject="machine",
        )
    elif not profile.engine.contains(machine.engine):
        yield Finding(
            id="engine-outside-profile-range",
            severity=Severity.ERROR,
            message=f"the profile supports SGLang {profile.engine.text}, but {machine.name} has {machine.engine}",
            subject="engine",
        )
    if machine.recorded_engine and machine.engine != machine.recorded_engine:
        yield Finding(
            id="facts-out-of-date",
            severity=Severity.INFO,
            message=f"the facts of {machine.name} were recorded with SGLang {machine.recorded_engine}, but the "
            f"inventory names {machine.engine}: record them again with `launch facts --host {machine.name}`",
            subject="machine",
        )


def _grouped(findings: Iterable[tuple[str, Finding]]) -> list[GroupedFinding]:
    """One row per id and subject: the worst severity, the message of the newest release, and all targets."""
    groups: dict[tuple[str, str], list[tuple[str, Finding]]] = {}
    for label, finding in findings:
        groups.setdefault((finding.id, finding.subject), []).append((label, finding))
    rows = []
    for group in groups.values():
        worst = min((item.severity for _, item in group), key=_RANK.__getitem__)
        newest = next(item for _, item in reversed(group) if item.severity is worst)
        rows.append(GroupedFinding(finding=newest, targets=tuple(dict.fromkeys(label for label, _ in group))))
    return sorted(rows, key=lambda row: (_RANK[row.finding.severity], row.finding.id))
