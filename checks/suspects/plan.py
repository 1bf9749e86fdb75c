"""Plan experiments where no code is known to have failed: a hang, wrong output, slowness, or a crash without a trace.

The plan switches off the features of this launch one at a time, the cheapest and most telling first, and says what each
outcome shows. It is not a diagnosis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from checks.catalog.conditions import Facts
from checks.engine.flag_schema import FlagSchema
from checks.suspects.affinities import told
from checks.vocabulary import Experiment, FlagValue, Remedy

KINDS: Mapping[str, tuple[str, ...]] = {
    "wrong output": (
        "garbled", "garbage-text", "repeated-token", "repeated-word", "garbled-or-stops", "endless", "empty",
        "nan-output", "wrong-answer", "inconsistent-output", "accuracy-drop", "accuracy-zero", "low-accuracy",
        "long-context-garbage", "prefix-hit-garbage", "cached-prefix-garbage", "stops-after-first-token", "wrong-sums",
    ),
    "no progress": ("hang", "stall", "deadlock", "no-response", "timeout"),
    "slow": ("slow", "low-throughput", "low-acceptance", "zero-acceptance", "acceptance-collapse", "slow-speculation"),
    "input ignored": ("image-ignored", "images-ignored", "pictures-ignored", "multimodal", "audio-ignored"),
    "parsing": ("tool-call-unparsed", "answer-in-reasoning", "reasoning-content-empty", "content-empty"),
    "crash": ("crash",),
}  # fmt: skip
"""Groups of observations, each with the kinds that a caller may state as `observed.kind`."""

MOST = 5


class _Step(Struct, frozen=True):
    """One feature, how to run without it, and what it shows if the trouble ends."""

    shows: str
    groups: tuple[str, ...]
    present: Mapping[str, Any]  # options that show that the launch uses the feature, see `_holds`
    set: Mapping[str, FlagValue] = {}
    unset: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


_OUTPUT, _STUCK, _SLOW, _INPUT, _PARSING, _CRASH = KINDS
_ANY = (_OUTPUT, _STUCK, _CRASH)
_WRONG_OR_CRASH = (_OUTPUT, _CRASH)


def _without(name: str, shows: str, *groups: str) -> _Step:
    """Leave an option out that the launch sets."""
    return _Step(shows, groups, {name: True}, unset=(name,))


def _with(name: str, shows: str, *groups: str) -> _Step:
    """Set a switch that the launch does not set."""
    return _Step(shows, groups, {name: None}, {name: True})


def _instead(name: str, value: str, shows: str, *groups: str) -> _Step:
    """Give an option that the launch sets another value."""
    return _Step(shows, groups, {name: f"!{value}"}, {name: value})


# Cheapest and most telling first: what changes the computation least comes before what changes it most.
_STEPS = (
    _without("speculative-algorithm", "speculation is at fault, not the model", *_ANY, _SLOW),
    _without("json-model-override-args", "the override contradicts the checkpoint", *_WRONG_OR_CRASH),
    _instead("kv-cache-dtype", "auto", "the narrow KV cache is at fault", *_WRONG_OR_CRASH),
    _without("cpu-offload-gb", "weight offloading is at fault", *_ANY, _SLOW),
    _without("enable-torch-compile", "torch.compile is at fault", *_ANY),
    _without("enable-lora", "the LoRA path is at fault", *_ANY),
    _without("enable-hierarchical-cache", "the hierarchical cache is at fault", *_ANY),
    _without("enable-two-batch-overlap", "two-batch overlap is at fault", *_ANY),
    _with("disable-overlap-schedule", "the overlap scheduler races with the forward pass", *_ANY),
    _with("disable-radix-cache", "a reused prefix is wrong or inconsistent", _OUTPUT),
    _with("disable-cuda-graph", "graph capture or replay is at fault, and the eager path is sound", *_ANY),
    _without("enable-flashinfer-allreduce-fusion", "the fused all-reduce is at fault", *_ANY),
    _Step(
        "the custom all-reduce kernel is at fault",
        (_STUCK, _OUTPUT),
        {"tp-size": True, "disable-custom-all-reduce": None},
        {"disable-custom-all-reduce": True},
    ),
    _instead("moe-runner-backend", "triton", "the MoE kernels are at fault", *_WRONG_OR_CRASH),
    _without("moe-a2a-backend", "the all-to-all backend is at fault", *_ANY),
    _without("fp4-gemm-backend", "the FP4 GEMM kernels are at fault", *_WRONG_OR_CRASH),
    _without("fp8-gemm-backend", "the FP8 GEMM kernels are at fault", *_WRONG_OR_CRASH),
    _instead("attention-backend", "triton", "the attention kernels are at fault", *_ANY, _SLOW),
    _Step(
        "the Triton attention kernels are at fault",
        _WRONG_OR_CRASH,
        {"attention-backend": "triton"},
        unset=("attention-backend",),
    ),
    _Step(
        "the log names the interface and the rank that waits",
        (_STUCK,),
        {"nnodes": True},
        env={"NCCL_DEBUG": "INFO"},
    ),
    _Step(
        "communication between the ranks is at fault (only if the model fits one GPU)",
        (_OUTPUT, _STUCK),
        {"tp-size": True},
        {"tp-size": "1"},
    ),
    _without("disable-cuda-graph", "the eager path costs the time", _SLOW),
    _without("disable-overlap-schedule", "the scheduler costs the time", _SLOW),
    _without("disable-radix-cache", "repeated prefixes are computed again", _SLOW),
    _with("enable-multimodal", "the vision part is off by default for this model", _INPUT),
    _without("chat-template", "the template has no place for the input", _INPUT, _PARSING),
    _without("mm-attention-backend", "the kernels of the vision part are at fault", _INPUT),
    _with("disable-fast-image-processor", "the fast processor of this transformers version is at fault", _INPUT),
    _without("tool-call-parser", "the raw answer shows the format that the parser must know", _PARSING),
    _without("reasoning-parser", "the raw answer shows the tags that the parser must know", _PARSING),
)


# Features whose code first runs in a phase; the others take part from the start.
_FIRST_USED = {
    "disable-overlap-schedule": "warmup", "disable-radix-cache": "warmup", "disable-cuda-graph": "graph-capture",
    "enable-torch-compile": "graph-capture", "enable-flashinfer-allreduce-fusion": "graph-capture",
    "enable-two-batch-overlap": "graph-capture", "enable-hierarchical-cache": "memory", "kv-cache-dtype": "memory",
    "attention-backend": "memory", "moe-runner-backend": "weights", "cpu-offload-gb": "weights",
    "fp4-gemm-backend": "weights", "fp8-gemm-backend": "weights",
}  # fmt: skip
_PHASES = ("import", "args", "distributed", "weights", "memory", "graph-capture", "warmup", "serving", "stopping")
_ON_GPU = frozenset({"disable-cuda-graph", "attention-backend", "moe-runner-backend", "disable-custom-all-reduce"})


def understood(kind: str) -> bool:
    """Return whether a stated observation is one of the known kinds."""
    return group_of(kind) != ""


def group_of(kind: str) -> str:
    """Return the group of an observation; empty for an unknown kind."""
    return next((group for group, kinds in KINDS.items() if kind.lower() in kinds), "")


def plan(facts: Facts, schema: FlagSchema, kind: str, phase: str = "", message: str = "") -> tuple[Experiment, ...]:
    """Return at most five experiments for an observation, in the order in which to run them.

    A crash in `phase` is not the doing of a feature that first runs in a later phase. A feature that a library's
    `message` depends on comes first.
    """
    group = group_of(kind) or _CRASH
    reached = _PHASES.index(phase) if group == _CRASH and phase in _PHASES else len(_PHASES)
    return tuple(_experiments(facts, schema, group, reached, message))[:MOST]


def _experiments(facts: Facts, schema: FlagSchema, group: str, reached: int, message: str) -> Iterator[Experiment]:
    def hinted(step: _Step) -> float:
        return -max(told(message, f"flag.{name}") for name in (*step.set, *step.unset, ""))

    for step in sorted(_STEPS, key=hinted):
        names = (*step.set, *step.unset)
        if any(_PHASES.index(_FIRST_USED.get(name, _PHASES[0])) > reached for name in names):
            continue
        if group not in step.groups or schema.spell(names[0] if names else "model-path") is None:
            continue
        if facts.get("flag.device") == "cpu" and not _ON_GPU.isdisjoint(step.set):
            continue
        if all(_holds(facts.get(f"flag.{name}"), wanted) for name, wanted in step.present.items()):
            change = Remedy(
                set={schema.spell(name) or name: value for name, value in step.set.items()},
                unset=tuple(schema.spell(name) or name for name in step.unset if facts.get(f"flag.{name}") is not None),
                env=step.env,
            )
            yield Experiment(change=change, shows=step.shows)


def _holds(value: Any, wanted: str | bool | None) -> bool:
    """Whether an option is as a step needs it: absent (None), present with any effect (True), or `value` / `!value`."""
    if wanted is None:
        return value in (None, False)
    if wanted is True:
        return value is True or str(value or "1") not in ("1", "auto", "none")
    if isinstance(wanted, str) and wanted.startswith("!"):
        return str(value or wanted[1:]) != wanted[1:]
    return str(value) == str(wanted)
