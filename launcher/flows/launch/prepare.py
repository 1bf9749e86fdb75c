"""Prepare a launch: turn a profile and a host into facts, a plan and findings. Changes nothing on the host."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from checks.before.rule_index import packages
from checks.before.rules import check
from checks.engine.flag_schema import FlagSchema, from_document, load
from checks.facts.launch_evidence import Launch
from checks.vocabulary import Finding, Origin, Severity
from launcher.errors import HostCommandFailed
from launcher.flows.launch.capture_schema import capture_host
from launcher.knowledge_cache import rules
from launcher.plan.launch_facts import engine_version, to_launch
from launcher.plan.launch_plan import LaunchPlan, Target, make_plan, spelling_findings
from launcher.plan.named_paths import named_paths
from launcher.profile.file import Accepted, Profile
from launcher.profile.resolve import for_engine
from launcher.run import remote
from launcher.transport.base import Transport
from launcher.transport.inventory import Host

LOW_DISK = 2 * 10**9  # bytes
CLOCK_SKEW = 120.0  # seconds; collecting the facts of a slow host takes a few of them


class Prepared(Struct, frozen=True, kw_only=True):
    """A prepared launch: its plan, the facts that it rests on, and the findings for or against starting it."""

    profile: Profile
    plan: LaunchPlan
    facts: Mapping[str, Any]  # raw, as collected on the host
    launch: Launch
    findings: tuple[Finding, ...]
    accepted: tuple[tuple[Finding, Accepted], ...]
    systemd: bool
    effective: Mapping[str, Any] = field(default_factory=dict)  # arguments that the engine's dry run resolved, if any

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse the launch."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


def prepare(transport: Transport, profile: Profile, host: Host, now: datetime) -> Prepared:
    """Collect the host's facts, make the plan and check it.

    Raises PlanRefused, HostCommandFailed (such as a host without SGLang), HostUnreachable.
    """
    raw = look(transport, profile, host)
    version = _installed(raw, host)
    schema = load(version)
    if not schema.exact:  # a build of the main branch or a fork: read the flags from its own source
        schema = from_document(capture_host(transport, host, raw["engine"]["executable"]), asked=version)
    target = Target(
        host=host.name,
        engine=version,
        python=raw["engine"]["executable"],
        work_dir=raw["host"]["work_dir"],
        home=raw["host"]["home"],
        env=host.env,
    )
    profile = for_engine(profile, version)
    plan = make_plan(profile, schema, target)
    launch = to_launch(raw, plan.flags, plan.env, packages(rules()))
    from_host = [
        *host_findings(raw, plan),
        *([] if host.replay else clock_finding(raw, now)),
        *range_finding(profile, schema),
        *spelling_findings(plan.renamed, version),
    ]
    reported = {finding.id for finding in from_host}
    from_rules = [finding for finding in check(launch, rules()) if finding.id not in reported]
    findings, accepted = settle([*from_host, *from_rules], profile.accept, now.date())
    return Prepared(
        profile=profile,
        plan=plan,
        facts=raw,
        launch=launch,
        findings=findings,
        accepted=accepted,
        systemd=bool(raw["detach"]["kill_user_processes"] and raw["detach"]["linger"]),
    )


def _installed(raw: Mapping[str, Any], host: Host) -> str:
    version = engine_version(raw)
    if version is None:
        raise HostCommandFailed(
            f"no SGLang found on {host.name}: {'; '.join(raw['engine_tried'])}",
            where=host.name,
            hint="name the engine's interpreter in hosts.yaml: `python: /path/to/venv/bin/python`",
        )
    return version


def look(transport: Transport, profile: Profile, host: Host) -> dict[str, Any]:
    """Return the raw facts of the host that this profile needs."""
    flags = {name: item.value for name, item in profile.flags.items()}
    env = {**host.env, **{name: item.value for name, item in profile.env.items() if not item.secret}}
    path = profile.model["path"].value if "path" in profile.model else ""
    arguments = {
        "python": host.python,
        "env": env,
        "work_dir": host.work_dir,
        "model": str(flags.get("model-path") or flags.get("model") or path),
        "draft": str(flags.get("speculative-draft-model-path") or ""),
        "port": int(port) if (port := str(flags.get("port", "30000"))).isdecimal() else 0,
        "host": str(flags.get("host", "127.0.0.1")),
        "paths": named_paths(flags, env),
    }
    return {**remote.host_facts(transport, arguments, host.python), "asked": arguments}


def settle(
    findings: list[Finding], accept: tuple[Accepted, ...], today: date
) -> tuple[tuple[Finding, ...], tuple[tuple[Finding, Accepted], ...]]:
    """Split findings into those that apply and those that the profile accepts. An expired acceptance has no effect."""
    applying, accepted = [], []
    by_id = {item.id: item for item in accept}
    for finding in findings:
        item = by_id.get(finding.id)
        if item is None:
            applying.append(finding)
        elif item.until is not None and item.until < today:
            applying.append(replace(finding, message=f"{finding.message} (its acceptance expired on {item.until})"))
        else:
            accepted.append((finding, item))
    return tuple(applying), tuple(accepted)


def range_finding(profile: Profile, schema: FlagSchema) -> list[Finding]:
    """Report an engine on the host that is outside the profile's own `engine` range."""
    if profile.engine.contains(schema.version):
        return []
    return [
        Finding(
            id="engine-outside-profile-range",
            severity=Severity.ERROR,
            origin=Origin.PROFILE,
            message=f"the profile supports SGLang {profile.engine.text}, but the host has {schema.version}",
            subject="engine",
        )
    ]


def clock_finding(raw: Mapping[str, Any], now: datetime) -> list[Finding]:
    """Report a host clock that differs from this machine's by CLOCK_SKEW seconds or more.

    The launcher compares times of logs with times of runs, and tokens for model hubs expire by the clock.
    """
    skew = raw["host"]["time"] - now.timestamp()
    if abs(skew) < CLOCK_SKEW:
        return []
    message = f"the host's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's clock"
    return [_live("clock-skew", Severity.WARNING, message, "host.time")]


def host_findings(raw: Mapping[str, Any], plan: LaunchPlan) -> list[Finding]:
    """Return the findings that only a live host can show: a taken port, a full disk, processes killed at logout."""
    findings = []
    detach, port = raw["detach"], raw.get("port") or {}
    if port and not port["free"]:
        message = f"port {plan.server_port} is taken by {remote.holders_text(port['holders'])}"
        findings.append(_live("http-port-in-use", Severity.ERROR, message, "flag.port"))
    disk = (raw["host"].get("disk") or {}).get("free")
    if isinstance(disk, int) and disk < LOW_DISK:
        message = f"only {disk / 1e9:.1f} GB are free under {plan.work_dir}: logs and kernel caches may not fit"
        findings.append(_live("disk-nearly-full", Severity.WARNING, message, "host.disk"))
    if detach["kill_user_processes"] and not detach["linger"]:
        message = "logind on this host kills all of a user's processes at logout (KillUserProcesses=yes)"
        why = "The server would end with the connection. `loginctl enable-linger` keeps it alive as a user service."
        findings.append(_live("killed-at-logout", Severity.ERROR, message, "host", why))
    return findings


def _live(slug: str, severity: Severity, message: str, subject: str, why: str = "") -> Finding:
    return Finding(id=slug, severity=severity, origin=Origin.HOST, message=message, why=why, subject=subject)
