"""The expectations of a profile as typed records. `expectations` defines the allowed keys and parses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

from msgspec import Struct, field


class Question(Struct, frozen=True):
    """A question that replaces the built-in questions of the known-answer probe."""

    prompt: str
    accept: tuple[str | int | float, ...]


class DeeperTask(Struct, frozen=True, kw_only=True):
    """A task for an external eval harness; an empty `program` means the first installed harness."""

    program: str = field(default="", name="with")
    n: int | None = None  # most questions
    at_least: float | None = None


class AccuracyExpect(Struct, frozen=True, kw_only=True):
    """What one bundled accuracy set must reach."""

    at_least: float | None = None  # share that the lower bound of the score must reach
    margin: float | None = None  # accepted loss against the baseline, a share
    n: int | None = None
    max_tokens: int | None = None


class AcceptanceExpect(Struct, frozen=True, kw_only=True):
    """The accepted range of the mean accept length: tokens per verify step of speculative decoding."""

    at_least: float | None = None
    at_most: float | None = None


class SpeedExpect(Struct, frozen=True, kw_only=True):
    """How the speed is measured, and its limits."""

    decode_at_least: float | None = None  # tok/s of a single stream
    ttft_at_most: float | None = None  # seconds to the first token
    margin: float | None = None
    repeats: int | None = None
    tokens: int | None = None
    floor: float = 1.0  # tok/s: the minimum decode rate of any stream
    concurrency: tuple[int, ...] = ()


class FingerprintExpect(Struct, frozen=True, kw_only=True):
    """How far the log-probabilities of a fixed prompt may move from the baseline's."""

    kl_at_most: float | None = None  # nats per token


class AcceptedWarning(Struct, frozen=True, kw_only=True):
    """A warning of the log that a person accepts until a day (ISO date)."""

    reason: str = ""
    until: str = ""


class Expect(Struct, frozen=True, kw_only=True):
    """The expectations of one profile as typed values. None means that the probe's default applies."""

    suite: str = "smoke"
    ready_within: float = 3600.0  # seconds
    baseline: str = ""
    soak: float = 0.0  # seconds
    deeper: Mapping[str, DeeperTask] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    model: str = ""
    chat: bool = True
    thinking: bool = False
    known_answer: tuple[Question, ...] | Literal[False] = ()  # False: the model is too weak for any
    timeout: float | None = None  # seconds
    concurrency: int | None = None
    prompt_nll: float | None = None  # nats per token
    common_words: float | None = None
    accuracy: Mapping[str, AccuracyExpect] = field(default_factory=dict)
    acceptance: AcceptanceExpect = AcceptanceExpect()
    speed: SpeedExpect = SpeedExpect()
    fingerprint: FingerprintExpect = FingerprintExpect()
    accept_warnings: Mapping[str, AcceptedWarning] = field(default_factory=dict)


NO_EXPECTATIONS = Expect()
T = TypeVar("T", int, float)


def or_default(value: T | None, default: T) -> T:
    """Return an expectation, or the default when it is None. Zero is an expectation."""
    return default if value is None else value
