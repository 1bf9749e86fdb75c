"""The tier without a GPU: a profile against every known release of its range and every recorded host it fits.

What a finding means for the verdict is `judge`'s business; how rules are asked quickly is `rulebook`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from checks.engine.flag_schema import FlagSchema, available, load
from checks.facts.launch_evidence import Launch
from checks.vocabulary import Finding, Severity
from launcher.errors import LauncherError
from launcher.gate.policy import Policy, fits
from launcher.gate.rulebook import Rulebook
from launcher.gate.semantic import planned
from launcher.gate.side import Machine
from launcher.plan.launch_facts import OURS, to_launch
from launcher.plan.launch_plan import LaunchPlan, hardware
from launcher.profile.file import Profile

# Facts of a recorded host that were true at that moment only: they must not decide about a change of a profile.
_MOMENTARY = frozenset({"ports_in_use", "gpu_processes", "gpu_free_gb", "free_memory_gb", "hub_reachable"})
_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


class Seen(Struct, frozen=True, kw_only=True):
    """A finding and every release and host it holds for."""

    finding: Finding
    targets: tuple[str, ...]


class Checked(Struct, frozen=True, kw_only=True):
    """One profile, judged everywhere. `refused` are plans that cannot be made at all: target → error."""

    seen: tuple[Seen, ...]
    targets: tuple[str, ...]
    refused: tuple[tuple[str, LauncherError], ...] = ()


class _Target(Struct, frozen=True, kw_only=True):
    label: str
    launch: Launch


def check_profile(profile: Profile, machines: Iterable[Machine], policy: Policy, book: Rulebook) -> Checked:
    """Judge a profile that is not abstract. Findings of one id and subject are one row."""
    targets, refused, found = list[_Target](), list[tuple[str, LauncherError]](), list[tuple[str, Finding]]()
    for schema in releases(profile, policy):
        try:
            targets.append(_Target(label=schema.version, launch=_on_release(planned(profile, schema), profile)))
        except LauncherError as error:
            refused.append((schema.version, error))
    for machine in machines:
        if not runs_on(profile, machine, policy):
            continue
        label = f"{machine.name} ({machine.engine or 'engine unknown'})"
        found += [(label, item) for item in _of_machine(profile, machine)]
        try:
            targets.append(_Target(label=label, launch=_on_machine(profile, machine, book)))
        except LauncherError as error:
            refused.append((label, error))
    for target, findings in zip(targets, book.findings(item.launch for item in targets), strict=True):
        found += [(target.label, item) for item in findings]
    return Checked(seen=tuple(_grouped(found)), targets=tuple(item.label for item in targets), refused=tuple(refused))


def releases(profile: Profile, policy: Policy) -> list[FlagSchema]:
    """Known releases that the profile is for and the policy looks at, oldest first."""
    return [load(name) for name in available() if profile.engine.contains(name) and policy.engines.contains(name)]


def runs_on(profile: Profile, machine: Machine, policy: Policy) -> bool:
    """Whether the profile may be launched there: the policy says so, or else its hardware fits what was recorded."""
    if machine.name in policy.runs_on:
        return fits(profile.name, policy.runs_on[machine.name])
    gpus = machine.raw.get("gpus") or []
    wanted = {name: str(item.value) for name, item in profile.hardware.items()}
    if not machine.raw or wanted.get("platform") == "cpu":
        return True
    if "gpu" in wanted and not any(wanted["gpu"].lower() in str(gpu.get("name", "")).lower() for gpu in gpus):
        return False
    return not wanted.get("count", "").isdigit() or int(wanted["count"]) <= len(gpus)


def _on_release(plan: LaunchPlan, profile: Profile) -> Launch:
    model = {"name": str(profile.model["name"].value)} if "name" in profile.model else {}
    env = {name: value for name, value in plan.env.items() if not name.startswith(OURS)}
    return Launch(engine=plan.engine, flags=plan.flags, env=env, gpu=hardware(profile), model=model)


def _on_machine(profile: Profile, machine: Machine, book: Rulebook) -> Launch:
    """The launch as it would be there now: its recorded facts, the release that the inventory names."""
    schema = load(machine.engine or "")
    plan = planned(profile, replace(schema, version=machine.engine or schema.version), machine.env)
    if not machine.raw:
        return _on_release(plan, profile)
    raw = dict(machine.raw)
    if str((raw.get("asked") or {}).get("model") or "") != plan.model_path:
        raw["model"] = None  # the recorded model is another one
    if plan.flags.get("speculative-draft-model-path") is None:
        raw["draft_model"] = None
    launch = to_launch(raw, plan.flags, plan.env, book.packages)
    model = launch.model or _on_release(plan, profile).model
    host = {name: value for name, value in launch.host.items() if name not in _MOMENTARY}
    if machine.engine == machine.recorded_engine:
        return replace(launch, host=host, model=model)
    # other packages than the recorded ones will be there with another release: unknown, so that no rule fires on them
    return replace(launch, engine=machine.engine, host=host, model=model, packages={})


def _of_machine(profile: Profile, machine: Machine) -> Iterator[Finding]:
    if machine.engine is None:
        yield Finding(
            id="host-engine-unknown",
            severity=Severity.INFO,
            message=f"the engine release of {machine.name} is not known: the newest was taken",
            subject="machine",
        )
    elif not profile.engine.contains(machine.engine):
        yield Finding(
            id="engine-outside-profile-range",
            severity=Severity.ERROR,
            message=f"the profile is for SGLang {profile.engine.text}, {machine.name} has {machine.engine}",
            subject="engine",
        )
    if machine.recorded_engine and machine.engine != machine.recorded_engine:
        yield Finding(
            id="facts-out-of-date",
            severity=Severity.INFO,
            message=f"the facts of {machine.name} were recorded with {machine.recorded_engine}, "
            f"the inventory says {machine.engine}: `launch facts --host {machine.name}` records them anew",
            subject="machine",
        )


def _grouped(found: Iterable[tuple[str, Finding]]) -> list[Seen]:
    """One row per id and subject: the worst severity, the words of the newest release, all targets."""
    groups: dict[tuple[str, str], list[tuple[str, Finding]]] = {}
    for label, finding in found:
        groups.setdefault((finding.id, finding.subject), []).append((label, finding))
    rows = []
    for group in groups.values():
        worst = min((item.severity for _, item in group), key=_RANK.__getitem__)
        speaker = next(item for _, item in reversed(group) if item.severity is worst)
        rows.append(Seen(finding=speaker, targets=tuple(dict.fromkeys(label for label, _ in group))))
    return sorted(rows, key=lambda row: (_RANK[row.finding.severity], row.finding.id))
