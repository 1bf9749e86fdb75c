"""Combinations: two mild faults at once, each of which hides a part of the other."""

from __future__ import annotations

from collections.abc import Sequence

from tests.serving import (
    faults_batches,
    faults_bytes,
    faults_cache,
    faults_contract,
    faults_conversation,
    faults_length,
    faults_lifecycle,
    faults_logprobs,
    faults_quality,
    faults_reports,
    faults_routes,
    faults_sampling,
    faults_streams,
    faults_structure,
    faults_times,
    faults_users,
)
from tests.serving.planting import Fault, Hook
from tests.serving.witness import Witness, any_of

SINGLE: dict[str, Fault] = {
    fault.name: fault
    for module in (
        faults_sampling,
        faults_contract,
        faults_conversation,
        faults_bytes,
        faults_logprobs,
        faults_streams,
        faults_users,
        faults_structure,
        faults_length,
        faults_times,
        faults_reports,
        faults_routes,
        faults_quality,
        faults_batches,
        faults_cache,
        faults_lifecycle,
    )
    for fault in module.FAULTS
}
"""All single faults by name."""


def _chained(hooks: Sequence[Hook]) -> Hook:
    """Return one hook for several at the same point."""

    def run(value: object, at: object) -> object:
        for hook in hooks:
            value = hook(value, at)  # type: ignore[arg-type]
        return value

    return run


def combined(first: str, second: str) -> Fault:
    """Return two faults as one, with the mechanism of the first."""
    parts = SINGLE[first], SINGLE[second]
    points = {
        point: [part.hooks[point] for part in parts if point in part.hooks] for part in parts for point in part.hooks
    }
    witnesses: list[Witness] = [part.witness for part in parts if part.witness is not None]
    return Fault(
        f"{first}+{second}",
        parts[0].mechanism,
        f"{parts[0].summary} {parts[1].summary}",
        {point: _chained(hooks) for point, hooks in points.items()},
        rate="; ".join(dict.fromkeys(part.rate for part in parts)),
        needs=parts[0].needs | parts[1].needs,
        witness=any_of(*witnesses),
        parts=(first, second),
    )


FAULTS = tuple(
    combined(first, second)
    for first, second in (
        ("quantised-1-percent", "greedy-warm-each-15"),
        ("quantised-3-percent", "bos-doubled"),
        ("salad-each-100", "usage-prompt-off-by-one"),
        ("empty-each-50", "no-done-each-20"),
        ("window-16k", "second-best-each-50"),
        ("partial-hit-hole", "event-lost-each-20"),
        ("noisy-head", "logprobs-wrong-when-cached"),
        ("cross-talk-each-50", "stream-stalls-each-30"),
        ("batch-24-salad", "waiting-never-zero"),
        ("lane-31", "kv-fp8-without-scales"),
        ("rank-1-weaker", "rank-3-sampled-salad"),
        ("tool-wrong-one-each-15", "schema-ignored-each-15"),
        ("expert-broken", "cut-told-as-stop"),
        ("system-each-12-lost", "blank-answer-each-40"),
        ("aborts-leak-tokens", "first-after-pause-slow"),
        ("seed-ignored", "role-missing-in-stream"),
        ("holes-past-4k", "counters-double"),
        ("draft-unverified", "stream-usage-too-high"),
        ("completions-wrong-each-15", "created-1970"),
        ("case-lost-each-20", "eos-missed-each-10"),
    )
)
