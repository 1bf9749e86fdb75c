"""The vocabulary: what rules see (Facts), what they say (Finding, Match, Diagnosis, Verdict), what helps (Remedy).

Plain frozen records without behaviour beyond derived properties. How they are filled is in `constraints`,
`signatures` and `probes`; how they are shown is in `launcher.cli.render`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct, field
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

FlagValue: TypeAlias = str | bool | list[str]
"""A flag as a profile holds it: a text, a switch (true) or several words. Numbers are kept as typed."""


class Severity(StrEnum):
    """How bad a finding is: an error refuses a launch, a warning stays open, info is only shown."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Outcome(StrEnum):
    """Result of a check on a running server. `skip` is not `pass`; `error` means our check broke."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    SKIP = "skip"
    ERROR = "error"


class Role(StrEnum):
    """What a log signature may be used for."""

    CAUSE = "cause"  # may be named as the first cause
    SYMPTOM = "symptom"  # a consequence of some cause: listed, never blamed
    BENIGN = "benign"  # looks alarming, means nothing
    LEDGER = "ledger"  # harmless for the process, may cost accuracy or speed: an open item for validation


class Weight(IntEnum):
    """How much a hit of a pattern says about the cause; the larger goes first. In YAML the name is in lower case."""

    HINT = 1  # fits several causes, or shows a consequence: speaks where nothing better does
    USUAL = 2  # says what it says
    DECISIVE = 3  # leaves no doubt


class LogVerdict(StrEnum):
    """What a log came to. Only `healthy` and `stopped` mean that nothing failed."""

    CAUSE = "cause"  # the cause of a failure is named
    UNKNOWN = "unknown"  # something failed, or was seen to, and nothing names why
    HEALTHY = "healthy"  # the engine answered, and nothing failed
    STARTING = "starting"  # the log ends before the engine answered, and nothing has failed so far
    STOPPED = "stopped"  # the engine was asked to stop, and nothing had failed before
    NOT_A_LOG = "not-a-log"  # nothing in it looks like the log of an engine


class Origin(StrEnum):
    """Who made a finding."""

    RULE = "rule"  # a rule, the flag schema or the environment of a release: can be judged again without the host
    ENGINE = "engine"  # the engine's own argument resolution on the host
    HOST = "host"  # only a live look at the host shows it
    PROFILE = "profile"  # the profile's own statement, such as its range of releases


def parse_version(text: str) -> Version | None:
    """A release number such as `0.5.10.post1.dev12+gabc`; None when it is not one (e.g. `unknown`)."""
    try:
        return Version(text.strip().removeprefix("v"))
    except InvalidVersion:
        return None


def flag_key(name: str) -> str:
    """Return the name of a flag as rules and profiles use it: `tp-size` for `--tp-size`, `--tp_size` and `tp_size`."""
    return name.lstrip("-").replace("_", "-")


class EngineRange(Struct, frozen=True):
    """Releases for which an entry holds, as a PEP 440 specifier; the empty text means every release."""

    text: str = ""

    def contains(self, version: str | None) -> bool:
        """True when `version` is inside, and when it is unknown: an unknown engine excludes nothing."""
        return not self.text or not version or _inside(self.text, version)


@lru_cache(maxsize=8192)
def _inside(text: str, version: str) -> bool:
    """Kept, since a gate asks the same few thousand questions for every profile."""
    parsed = parse_version(version)
    if parsed is None:
        return True
    # A development build of the main branch carries the number of the release it leads to.
    return SpecifierSet(text).contains(Version(parsed.base_version), prereleases=True)


class Remedy(Struct, frozen=True, kw_only=True):
    """Something that may help. Flags are canonical (newest) names; rendering spells them for the run's engine.

    At most one of `run`, `require` and `inspect` is there.
    """

    text: str = ""
    set: Mapping[str, FlagValue] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    unset_env: tuple[str, ...] = ()
    run: str = ""  # a command to paste as it is
    require: Mapping[str, str] = field(default_factory=dict)  # distribution → PEP 508 specifier; empty: any version
    inspect: str = ""  # a command that only looks
    upgrade: Mapping[str, str] = field(default_factory=dict)  # package → version specifier
    engine: EngineRange = EngineRange()
    when: Mapping[str, Any] | None = None  # also depends on these facts: a condition, as written
    concrete: bool = True  # False: `<placeholders>` are left that a person must fill in

    @property
    def requirements(self) -> tuple[str, ...]:
        """What is required, in the form that pip takes: `torch==2.9.1`."""
        return tuple(f"{name}{wanted}" for name, wanted in self.require.items())

    @property
    def install(self) -> str | None:
        """The command line that changes what is installed: `run`, or pip with what is required; None without either."""
        quoted = (item if item.replace("-", "").isalnum() else f'"{item}"' for item in self.requirements)
        return self.run or (f"pip install {' '.join(quoted)}" if self.require else None)


class Evidence(Struct, frozen=True, kw_only=True):
    """One line that made an entry fire. `line` counts from 1 in the log; 0 when it is not from a log."""

    text: str
    line: int = 0
    rank: str = ""
    time: str = ""
    source: str = ""  # file:line of a profile, a command on the host, a URL path


class Finding(Struct, frozen=True, kw_only=True):
    """Judgement before a launch."""

    id: str
    severity: Severity
    message: str
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    origin: Origin = Origin.RULE
    subject: str = ""  # what it is about: `flag.tp-size`, `env.NAME`, `host.driver`; renders to a profile position


class Match(Struct, frozen=True, kw_only=True):
    """One signature that fired on a log, with the lines that show it."""

    id: str
    role: Role
    title: str
    evidence: tuple[Evidence, ...]
    captures: Mapping[str, str] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """Line of the first evidence, for ordering in time."""
        return self.evidence[0].line if self.evidence else 0


class Diagnosis(Struct, frozen=True, kw_only=True):
    """Why a run ended or misbehaves. Decide on `verdict`; the sentences are for people."""

    verdict: LogVerdict
    cause: Match | None  # set exactly where the verdict is `cause`
    sentence: str
    why: str = ""
    remedies: tuple[Remedy, ...] = ()
    symptoms: tuple[Match, ...] = ()
    ledger: tuple[Match, ...] = ()
    dismissed: tuple[Match, ...] = ()  # looked like a cause and is not
    observed: str = ""  # the kind of trouble that a caller saw where the log shows none
    fingerprint: str = ""
    phase: str = ""
    engine: str | None = None
    notes: tuple[str, ...] = ()  # e.g. "the log is truncated: it starts inside a traceback"

    @property
    def healthy(self) -> bool:
        """Whether nothing failed. A file that is not a log says nothing either way: False."""
        return self.verdict in (LogVerdict.HEALTHY, LogVerdict.STOPPED)


class Verdict(Struct, frozen=True, kw_only=True):
    """Judgement of one probe on a running server."""

    id: str
    outcome: Outcome
    message: str
    evidence: tuple[Evidence, ...] = ()
    figures: Mapping[str, float | str] = field(default_factory=dict)
    seconds: float = 0.0
    unreachable: bool = False  # nobody answered: nothing is known of the server, not even that it is alive
