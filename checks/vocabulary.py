"""The records that all checks share: their results (Finding, Match, Diagnosis, Verdict), Evidence and Remedy.

Plain frozen records without behaviour beyond derived properties. `checks.before`, `checks.during` and `checks.after`
create them; `launcher.cli` renders them.
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
"""The value of a flag in a profile: a text, a switch (true) or several words. Numbers stay text, as typed."""


class Severity(StrEnum):
    """The severity of a finding: an error blocks a launch, a warning stays unresolved, info is only shown."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Outcome(StrEnum):
    """The result of a check on a running server. `skip` is not `pass`; `error` means that the check itself failed."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    SKIP = "skip"
    ERROR = "error"


class Role(StrEnum):
    """How a diagnosis uses a match of a log signature."""

    CAUSE = "cause"  # may be reported as the cause
    SYMPTOM = "symptom"  # a consequence of a cause: listed, never reported as the cause
    BENIGN = "benign"  # looks alarming but is harmless
    LEDGER = "ledger"  # harmless for the process, but may cost accuracy or speed: a warning that validation settles


class Weight(IntEnum):
    """How strongly a match of a pattern indicates the cause; the largest wins. YAML uses the names in lower case."""

    HINT = 1  # fits several causes, or shows a consequence: counts only without a stronger match
    USUAL = 2  # the default
    DECISIVE = 3  # identifies the cause beyond doubt


class LogVerdict(StrEnum):
    """The conclusion of a diagnosis. Only `healthy` and `stopped` mean that nothing failed."""

    CAUSE = "cause"  # the cause of a failure is named
    UNKNOWN = "unknown"  # something failed, in the log or as the caller observed, and the cause is not known
    HEALTHY = "healthy"  # the engine answered, and nothing failed
    STARTING = "starting"  # the log ends before the engine answered, and nothing has failed so far
    STOPPED = "stopped"  # the engine was asked to stop, and nothing had failed before
    NOT_A_LOG = "not-a-log"  # the text does not look like an SGLang log


class Origin(StrEnum):
    """The source of a finding."""

    RULE = "rule"  # a rule, or the flags or variables of a release: reproducible without the host
    ENGINE = "engine"  # the engine's own argument resolution on the host
    HOST = "host"  # a live inspection of the host
    PROFILE = "profile"  # the profile's own statement, such as its range of releases


def parse_version(text: str) -> Version | None:
    """Parse a release number such as `0.5.10.post1.dev12+gabc`; None when the text is not one (e.g. `unknown`)."""
    try:
        return Version(text.strip().removeprefix("v"))
    except InvalidVersion:
        return None


def flag_key(name: str) -> str:
    """Return the name of a flag as rules and profiles use it: `tp-size` for `--tp-size`, `--tp_size` and `tp_size`."""
    return name.lstrip("-").replace("_", "-")


class EngineRange(Struct, frozen=True):
    """The releases that an entry applies to, as a PEP 440 specifier; the empty text means every release."""

    text: str = ""

    def contains(self, version: str | None) -> bool:
        """Return whether `version` is in the range; also True for an unknown version, which excludes nothing."""
        return not self.text or not version or _inside(self.text, version)


@lru_cache(maxsize=8192)
def _inside(text: str, version: str) -> bool:
    """Return whether a version is in a specifier; cached, as a gate repeats the same few thousand tests per profile."""
    parsed = parse_version(version)
    if parsed is None:
        return True
    # A development build of the main branch has the number of the upcoming release.
    return SpecifierSet(text).contains(Version(parsed.base_version), prereleases=True)


class Remedy(Struct, frozen=True, kw_only=True):
    """A change that may fix a problem. Flags are canonical (newest) names; rendering spells them for the run's engine.

    At most one of `run`, `require` and `inspect` is set.
    """

    text: str = ""
    set: Mapping[str, FlagValue] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    unset_env: tuple[str, ...] = ()
    run: str = ""  # a complete command to paste
    require: Mapping[str, str] = field(default_factory=dict)  # distribution → PEP 508 specifier; empty: any version
    inspect: str = ""  # a command that changes nothing
    upgrade: Mapping[str, str] = field(default_factory=dict)  # package → version specifier
    engine: EngineRange = EngineRange()
    when: Mapping[str, Any] | None = None  # the remedy applies only under this condition on facts, as written
    concrete: bool = True  # False: contains `<placeholders>` that a person must fill in

    @property
    def requirements(self) -> tuple[str, ...]:
        """The required packages in pip's form: `torch==2.9.1`."""
        return tuple(f"{name}{specifier}" for name, specifier in self.require.items())

    @property
    def install(self) -> str | None:
        """The command line that applies the remedy: `run`, or pip with the requirements; None without either."""
        quoted = (item if item.replace("-", "").isalnum() else f'"{item}"' for item in self.requirements)
        return self.run or (f"pip install {' '.join(quoted)}" if self.require else None)


class Evidence(Struct, frozen=True, kw_only=True):
    """One line of evidence for a finding, match or verdict. `line` counts from 1 in the log; 0: not from a log."""

    text: str
    line: int = 0
    rank: str = ""
    time: str = ""
    source: str = ""  # file:line of a profile, a command on the host, a URL path


class Finding(Struct, frozen=True, kw_only=True):
    """One problem found before a launch."""

    id: str
    severity: Severity
    message: str
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    origin: Origin = Origin.RULE
    subject: str = ""  # the fact it concerns: `flag.tp-size`, `env.NAME`, `host.driver`; rendered as a profile position


class Match(Struct, frozen=True, kw_only=True):
    """One signature that fired on a log, with the matching lines."""

    id: str
    role: Role
    title: str
    evidence: tuple[Evidence, ...]
    captures: Mapping[str, str] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """The line number of the first evidence, for ordering in time; 0 without evidence."""
        return self.evidence[0].line if self.evidence else 0


class Suspect(Struct, frozen=True, kw_only=True):
    """A setting that leads to the code that failed, while the cause is unknown. It is never counted as a cause."""

    setting: str  # name of the fact: `flag.attention-backend`, `env.NAME`, `model.architectures`, `package.torch`
    value: str
    reasons: tuple[str, ...]  # what points to it, the strongest first; a person can verify each
    experiments: tuple[Remedy, ...] = ()  # untested changes that avoid the code, the cheapest first
    where: str = ""  # its position in a profile, or other source; empty if unknown


class Experiment(Struct, frozen=True, kw_only=True):
    """An untested change of the launch, and what it shows if the trouble ends with it."""

    change: Remedy
    shows: str


class Diagnosis(Struct, frozen=True, kw_only=True):
    """Why a run ended or misbehaves. Programs should use `verdict`; the sentences are for people."""

    verdict: LogVerdict
    cause: Match | None  # set if and only if the verdict is `cause`
    sentence: str
    why: str = ""
    remedies: tuple[Remedy, ...] = ()
    symptoms: tuple[Match, ...] = ()
    ledger: tuple[Match, ...] = ()
    dismissed: tuple[Match, ...] = ()  # ruled out as the cause
    observed: str = ""  # the kind of failure that the caller observed and the log does not show
    foreseen: tuple[Finding, ...] = ()  # errors of `launch check` on this launch that explain the failure
    suspects: tuple[Suspect, ...] = ()  # the most suspicious first; only without a cause
    plan: tuple[Experiment, ...] = ()  # what to try, in this order, where nothing shows which code failed
    fingerprint: str = ""
    phase: str = ""
    engine: str | None = None
    notes: tuple[str, ...] = ()  # e.g. "the log is truncated: it starts inside a traceback"

    @property
    def healthy(self) -> bool:
        """Whether nothing failed; False for a file that is not a log, which shows neither."""
        return self.verdict in (LogVerdict.HEALTHY, LogVerdict.STOPPED)


class Verdict(Struct, frozen=True, kw_only=True):
    """The judgement of one probe on a running server."""

    id: str
    outcome: Outcome
    message: str
    evidence: tuple[Evidence, ...] = ()
    figures: Mapping[str, float | str] = field(default_factory=dict)
    seconds: float = 0.0
    unreachable: bool = False  # the server did not respond, so it is not known to be alive
