"""The host tier: launch old and new profile alternately on one host, validate and compare them, restore the host.

It runs under a lock and within a budget of GPU minutes. Our own runs on the host are stopped first and restarted at the
end, whatever happens in between; runs that were started from another machine are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from checks.after.validation import as_dict
from checks.vocabulary import Verdict
from launcher.client.endpoint import planned
from launcher.clock import Clock
from launcher.errors import LauncherError
from launcher.flows.diagnose.run_diagnosis import diagnose_run
from launcher.flows.gate.set_aside import set_aside
from launcher.flows.launch.flow_context import FlowContext
from launcher.flows.launch.launch import Options, launch
from launcher.flows.launch.stop_runs import stop
from launcher.flows.validate.request import Subject, ValidationRequest
from launcher.flows.validate.suite import run_suite
from launcher.gate.compare import BETTER, INCONCLUSIVE, SAME, WORSE, compare, overall, pooled
from launcher.gate.policy import HostTier
from launcher.gate.queue import held
from launcher.gate.report import Trial
from launcher.profile.file import Profile
from launcher.run.state import State
from launcher.run.store import Run
from launcher.transport.inventory import Host

Measure = Callable[[FlowContext, Run, Profile], Mapping[str, Any]]
OLD, NEW = "old", "new"
# no dry run of the engine: the launch itself shows what the engine refuses, and its log is diagnosed
_TRIAL_OPTIONS = Options(validate=False, ask_engine=False)
_PARALLEL = ("tp-size", "tensor-parallel-size", "tp", "pp-size", "pipeline-parallel-size")


class Pair(Struct, frozen=True, kw_only=True):
    """What to compare: two profiles, or one profile with a stored validation, or one profile alone."""

    new: Profile
    old: Profile | None = None
    baseline: Mapping[str, Any] | None = None


class Attempt(Struct, frozen=True, kw_only=True):
    """The result of one launch."""

    run: Run | None
    validation: Mapping[str, Any] | None
    problem: str = ""  # why there is no validation
    spent: bool = False  # whether the budget ended the launch


class BudgetSpent(LauncherError):
    """The budget of GPU minutes is used up."""


class Budget:
    """A budget of GPU minutes. A launch uses its number of GPUs from its start until it has stopped."""

    def __init__(self, minutes: float, clock: Clock) -> None:
        self.seconds, self._clock, self._since = minutes * 60, clock, 0.0
        self.used, self.gpus, self._running = 0.0, 1, False

    def begin(self, gpus: int) -> None:
        """Start the count for a launch on this many GPUs. Raises BudgetSpent."""
        self.gpus = max(1, gpus)
        self.check()
        self._since, self._running = self._clock.monotonic(), True

    def end(self) -> None:
        """Stop the count: the launch is over."""
        self.used, self._running = self.spent, False

    @property
    def spent(self) -> float:
        """GPU seconds used so far."""
        return self.used + ((self._clock.monotonic() - self._since) * self.gpus if self._running else 0.0)

    @property
    def left(self) -> float:
        """Seconds of wall time left for the current number of GPUs."""
        return (self.seconds - self.spent) / self.gpus

    def check(self) -> None:
        """Raise BudgetSpent if nothing is left."""
        if self.left <= 0:
            raise BudgetSpent(f"the budget of {self.seconds / 60:g} GPU minutes is spent")


def host_tier(
    context: FlowContext, pairs: Sequence[Pair], host: Host, limits: HostTier, measure: Measure | None = None
) -> tuple[Trial, ...]:
    """Try every pair on the host. Raises LauncherError if the host is not available; then no run was stopped."""
    with held(context.transport, host.work_dir, wait=limits.wait * 60, who="launch gate", say=context.observer.say):
        budget, trials, not_restored = Budget(limits.budget, context.clock), list[Trial](), list[str]()
        with set_aside(context, host, not_restored):
            for pair in pairs:
                trials.append(_trial(context, pair, host, limits, budget, measure or measured(limits.suite, budget)))
        return (*trials, *(Trial(profile="", host=host.name, verdict=WORSE, message=text) for text in not_restored))


def measured(suite: str, budget: Budget) -> Measure:
    """Return a measurement that validates with a suite and checks the budget after each probe."""

    def measure(context: FlowContext, run: Run, profile: Profile) -> Mapping[str, Any]:
        def inform(verdict: Verdict) -> None:
            context.observer.verdict(verdict)
            budget.check()

        endpoint = planned(context.transport, run.plan)
        try:
            subject = Subject(endpoint=endpoint, transport=context.transport, ledger=diagnose_run(run).ledger)
            request = ValidationRequest(expect=replace(profile.expectations, suite=suite))
            return as_dict(run_suite(subject, request, context.clock, inform))
        finally:
            endpoint.close()

    return measure


def _trial(context: FlowContext, pair: Pair, host: Host, limits: HostTier, budget: Budget, measure: Measure) -> Trial:
    began = budget.used
    attempts: dict[str, list[Attempt]] = {OLD: [], NEW: []}
    order = [NEW] * limits.rounds if pair.old is None else _order(limits.rounds)
    for which in order:
        profile = pair.new if which == NEW or pair.old is None else pair.old
        context.observer.say(f"{which} profile {profile.name} on {host.name}")
        attempts[which].append(_launch(context, profile, host, budget, measure))
        if attempts[which][-1].problem:
            break
    verdict, message, comparisons = _verdict(pair, attempts, limits.margin)
    runs = tuple(item.run.id for which in (OLD, NEW) for item in attempts[which] if item.run is not None)
    return Trial(
        profile=pair.new.name, host=host.name, verdict=verdict, message=message, comparisons=comparisons, runs=runs,
        gpu_minutes=round((budget.used - began) / 60, 2),
    )  # fmt: skip


def _order(rounds: int) -> list[str]:
    """Old, new, new, old, …: a drift over time affects both alike."""
    return [which for number in range(rounds) for which in ((OLD, NEW) if number % 2 == 0 else (NEW, OLD))]


def _launch(context: FlowContext, profile: Profile, host: Host, budget: Budget, measure: Measure) -> Attempt:
    """Launch, measure and stop a profile. Whatever happens, no server is left running."""
    run: Run | None = None
    try:
        budget.begin(_gpus(profile))
        within = min(profile.expectations.ready_within, budget.left)
        limited = replace(profile, expect={**profile.expect, "ready-within": within})
        known = {item.id for item in context.store.all()}
        try:
            outcome = launch(context, limited, host, _TRIAL_OPTIONS)
            run = outcome.run
        except BaseException:
            run = next((item for item in context.store.all() if item.id not in known), None)
            raise
        if outcome.state is not State.READY or run is None:
            spent = outcome.state is State.TIMED_OUT and budget.left <= 1
            cause = f" ({outcome.diagnosis.sentence})" if outcome.diagnosis is not None else ""
            return Attempt(run=run, validation=None, problem=f"{outcome.state}: {outcome.reason}{cause}", spent=spent)
        validation = measure(context, run, profile)
        run.write("validation", validation)
        return Attempt(run=run, validation=validation)
    except BudgetSpent as error:
        return Attempt(run=run, validation=None, problem=error.message, spent=True)
    except LauncherError as error:
        return Attempt(run=run, validation=None, problem=error.message)
    finally:
        if run is not None and run.read("plan") is not None and run.state is not State.REFUSED:
            with suppress(LauncherError):
                stop(context, run)
        budget.end()


def _gpus(profile: Profile) -> int:
    """The number of GPUs that a launch takes: the product of its parallel sizes."""
    sizes = [str(item.value) for name, item in profile.flags.items() if name in _PARALLEL]
    product = 1
    for size in sizes:
        product *= int(size) if size.isdecimal() else 1
    return product


def _verdict(pair: Pair, attempts: Mapping[str, Sequence[Attempt]], margin: float) -> tuple[str, str, tuple[Any, ...]]:
    """The verdict of a trial, its message, and its comparisons."""
    failed = {which: next((item for item in attempts[which] if item.problem), None) for which in (OLD, NEW)}
    old_failed, new_failed = failed[OLD], failed[NEW]
    spent = next((item for item in (old_failed, new_failed) if item is not None and item.spent), None)
    if spent is not None:
        return INCONCLUSIVE, spent.problem, ()
    if new_failed is not None:
        return WORSE, f"the new profile does not start: {new_failed.problem}", ()
    if old_failed is not None:
        return INCONCLUSIVE, f"cannot compare: the old profile does not start: {old_failed.problem}", ()
    new = pooled([item.validation for item in attempts[NEW] if item.validation is not None])
    if pair.old is not None:
        old: Mapping[str, Any] = pooled([item.validation for item in attempts[OLD] if item.validation is not None])
        base = "the old profile"
    elif pair.baseline is not None:
        old, base = pair.baseline, "the stored baseline"
    else:
        return _without_comparison(new)
    comparisons = compare(old, new, margin)
    verdict = overall(comparisons)
    counts = {word: sum(1 for item in comparisons if item.verdict == word) for word in (BETTER, SAME, WORSE)}
    summary = ", ".join(f"{number} {word}" for word, number in counts.items() if number) or "no figure in common"
    return verdict, f"against {base}: {summary}", comparisons


def _without_comparison(new: Mapping[str, Any]) -> tuple[str, str, tuple[Any, ...]]:
    """The verdict on a new profile without an old one and without a stored baseline."""
    failing = [item["id"] for item in new["verdicts"] if item["outcome"] == "fail"]
    if failing:
        return WORSE, f"there is no baseline to compare with, and these probes fail: {', '.join(failing[:4])}", ()
    return SAME, "validated; there is no baseline to compare with", ()
