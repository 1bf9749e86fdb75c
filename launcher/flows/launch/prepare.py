"""Before anything is started: profile × host → facts, plan and findings. Nothing on the host is changed."""

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
from launcher.profile.file import Accepted, Profile
from launcher.profile.resolve import for_engine
from launcher.run import remote
from launcher.transport.base import Transport
from launcher.transport.inventory import Host

LOW_DISK = 2 * 10**9  # bytes
CLOCK_SKEW = 120.0  # seconds; a slow look at the host takes a few


class Prepared(Struct, frozen=True, kw_only=True):
    """A launch that is ready to start, or shows why it should not be."""

    profile: Profile
    plan: LaunchPlan
    facts: Mapping[str, Any]  # raw, as the host gave them
    launch: Launch
    findings: tuple[Finding, ...]
    accepted: tuple[tuple[Finding, Accepted], ...]
    systemd: bool
    effective: Mapping[str, Any] = field(default_factory=dict)  # arguments as the engine resolved them, if it was asked

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What refuses the launch."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


def prepare(transport: Transport, profile: Profile, host: Host, now: datetime) -> Prepared:
    """Look at the host, decide the plan, judge it. Raises PlanRefused, HostCommandFailed, HostUnreachable."""
    raw = look(transport, profile, host)
    version = engine_version(raw)
    if version is None:
        raise HostCommandFailed(
            f"no SGLang on {host.name}: {'; '.join(raw['engine_tried'])}",
            where=host.name,
            hint="name the engine's interpreter in hosts.yaml: `python: /path/to/venv/bin/python`",
        )
    schema = load(version)
    if not schema.exact:  # a build of the main branch, a fork: its own source knows its flags
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
    ours = [
        *host_findings(raw, plan),
        *([] if host.replay else clock_finding(raw, now)),
        *range_finding(profile, schema),
        *spelling_findings(plan.renamed, version),
    ]
    found = [*ours, *(item for item in check(launch, rules()) if item.id not in {own.id for own in ours})]
    findings, accepted = settle(found, profile.accept, now.date())
    return Prepared(
        profile=profile,
        plan=plan,
        facts=raw,
        launch=launch,
        findings=findings,
        accepted=accepted,
        systemd=bool(raw["detach"]["kill_user_processes"] and raw["detach"]["linger"]),
    )


def look(transport: Transport, profile: Profile, host: Host) -> dict[str, Any]:
    """Raw facts of the host, as far as this profile needs them."""
    flags = {name: item.value for name, item in profile.flags.items()}
    path = profile.model["path"].value if "path" in profile.model else ""
    asked = {
        "python": host.python,
        "env": {**host.env, **{name: item.value for name, item in profile.env.items() if not item.secret}},
        "work_dir": host.work_dir,
        "model": str(flags.get("model-path") or flags.get("model") or path),
        "draft": str(flags.get("speculative-draft-model-path") or ""),
        "port": int(port) if (port := str(flags.get("port", "30000"))).isdigit() else 0,
        "host": str(flags.get("host", "127.0.0.1")),
    }
    return {**remote.host_facts(transport, asked, host.python), "asked": asked}


def settle(
    findings: list[Finding], accept: tuple[Accepted, ...], today: date
) -> tuple[tuple[Finding, ...], tuple[tuple[Finding, Accepted], ...]]:
    """Findings that still stand, and those that the profile accepts. An acceptance that ran out accepts nothing."""
    standing, accepted = [], []
    by_id = {item.id: item for item in accept}
    for finding in findings:
        item = by_id.get(finding.id)
        if item is None:
            standing.append(finding)
        elif item.until is not None and item.until < today:
            standing.append(replace(finding, message=f"{finding.message} (accepted until {item.until}, which is past)"))
        else:
            accepted.append((finding, item))
    return tuple(standing), tuple(accepted)


def range_finding(profile: Profile, schema: FlagSchema) -> list[Finding]:
    """The profile's own engine range against the host."""
    if profile.engine.contains(schema.version):
        return []
    return [
        Finding(
            id="engine-outside-profile-range",
            severity=Severity.ERROR,
            origin=Origin.PROFILE,
            message=f"the profile is for SGLang {profile.engine.text}, the host has {schema.version}",
            subject="engine",
        )
    ]


def clock_finding(raw: Mapping[str, Any], now: datetime) -> list[Finding]:
    """The host's clock against ours. Times of logs and runs are compared, and tokens of a hub expire by them."""
    skew = raw["host"]["time"] - now.timestamp()
    if abs(skew) < CLOCK_SKEW:
        return []
    message = f"the host's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this one"
    return [_live("clock-skew", Severity.WARNING, message, "host.time")]


def host_findings(raw: Mapping[str, Any], plan: LaunchPlan) -> list[Finding]:
    """What only a live host can show: the port, who would kill us at logout, who sits on the GPUs."""
    found = []
    detach, port = raw["detach"], raw.get("port") or {}
    if port and not port["free"]:
        message = f"port {plan.server_port} is taken by {remote.holders_text(port['holders'])}"
        found.append(_live("http-port-in-use", Severity.ERROR, message, "flag.port"))
    disk = (raw["host"].get("disk") or {}).get("free")
    if isinstance(disk, int) and disk < LOW_DISK:
        message = f"only {disk / 1e9:.1f} GB are free below {plan.work_dir}: logs and kernel caches may not fit"
        found.append(_live("disk-nearly-full", Severity.WARNING, message, "host.disk"))
    if detach["kill_user_processes"] and not detach["linger"]:
        message = "logind on this host kills everything of a user at logout (KillUserProcesses=yes)"
        why = "The server would die with the connection. `loginctl enable-linger` lets it live as a user service."
        found.append(_live("killed-at-logout", Severity.ERROR, message, "host", why))
    return found


def _live(slug: str, severity: Severity, message: str, subject: str, why: str = "") -> Finding:
    return Finding(id=slug, severity=severity, origin=Origin.HOST, message=message, why=why, subject=subject)
