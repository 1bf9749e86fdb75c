"""The host tier of `launch gate`: static and replay tier first, then the old and the new profile on the host.

It opens connection and screen and stores the evidence bundles; the trial itself is `launcher.flows.gate.host_tier`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from checks.vocabulary import Severity
from launcher.cli.options import host_of
from launcher.cli.session import session
from launcher.clock import SystemClock
from launcher.errors import UsageError
from launcher.flows.gate.host_tier import Pair, host_tier
from launcher.flows.gate.judge_change import Request, judge_change, open_sides
from launcher.gate.affected import Sides, old_profile
from launcher.gate.evidence_bundle import SUFFIX, write
from launcher.gate.policy_baselines import read_baseline
from launcher.gate.report import Gate, Place, Remark, Report, Status, Trial
from launcher.profile.file import Profile
from launcher.run.store import RunStore
from launcher.transport.local import LocalTransport

_LAUNCHES = ("flag", "env", "model", "engine")  # differences that a launch can show


def judged_on_host(request: Request, host_name: str, hosts_file: Path | None, bundles: Path | None) -> Report:
    """Run the tiers before it and, if they pass, the trials. Raises LauncherError if the host is unavailable."""
    if not host_name:
        raise UsageError("the host tier needs a host", hint="launch gate --tier host --host NAME")
    with tempfile.TemporaryDirectory(prefix="gate-") as scratch:
        opened = open_sides(request, LocalTransport(), os.environ, Path(scratch))
        report = judge_change(request, opened, SystemClock(), LocalTransport())
        pairs = list(_pairs(opened.sides, report))
        if report.verdict is Gate.FAIL or not pairs:
            return report
        policy = opened.sides.new.policy
        inventory = hosts_file or (path if (path := request.root / policy.hosts).exists() else None)
        host = host_of(host_name, inventory)
        with session(host) as context:
            trials = host_tier(context, pairs, host, policy.host)
        if bundles is not None:
            _keep(context.store, trials, bundles)
    paths = {item.name: item.path for item in report.affected}
    trial_remarks = [remark for trial in trials if (remark := _remark(trial, paths)) is not None]
    return replace(report, trials=trials, remarks=(*trial_remarks, *report.remarks))


def _pairs(sides: Sides, report: Report) -> Iterator[Pair]:
    """Yield what can be tried: concrete profiles that are new, or whose launch changed."""
    policy = sides.new.policy
    for item in report.affected:
        profile = sides.new.profile(item.name)
        if item.abstract or item.change in ("deleted", "moved") or not isinstance(profile, Profile):
            continue
        if item.change == "changed" and not any(part.kind in _LAUNCHES for part in item.differences):
            continue
        old = old_profile(item.name, sides)
        stored = policy.baselines.get(item.name)
        yield Pair(
            new=profile,
            old=old if isinstance(old, Profile) and item.change == "changed" and not old.abstract else None,
            baseline=read_baseline(sides.new.root / stored[0])[0] if stored else None,
        )


def _keep(store: RunStore, trials: tuple[Trial, ...], folder: Path) -> None:
    for trial in trials:
        for name in trial.runs:
            path = write(store.find(name), folder / f"{name}{SUFFIX}")
            sys.stderr.write(f"evidence: {path}\n")


def _remark(trial: Trial, paths: dict[str, str]) -> Remark | None:
    if trial.verdict not in ("worse", "inconclusive"):
        return None
    failing = trial.verdict == "worse"
    worst = next((item for item in trial.comparisons if item.verdict == trial.verdict), None)
    detail = f"; {worst.name}: {worst.message}" if worst is not None else ""
    return Remark(
        rule=f"trial-{trial.verdict}" if trial.profile else "not-restored",
        status=Status.FAIL if failing else Status.INCONCLUSIVE,
        severity=Severity.ERROR if failing else Severity.WARNING,
        message=f"on {trial.host}: {trial.message}{detail}",
        place=Place(path=paths.get(trial.profile, "hosts.yaml")),
        profile=trial.profile,
    )
