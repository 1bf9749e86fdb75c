"""The one table from outcomes to exit codes. docs/how-it-works.md documents it."""

from __future__ import annotations

from enum import IntEnum

from checks.vocabulary import Diagnosis, LogVerdict, Outcome
from launcher.errors import (
    HostCommandFailed,
    HostUnreachable,
    LauncherError,
    PlanRefused,
    ProfileError,
    RunNotFound,
    TransportTimeout,
    UsageError,
)
from launcher.run.state import State


class Exit(IntEnum):
    """The exit codes of all commands."""

    OK = 0  # the server is healthy, the check found no error, the log shows no failure
    BAD = 1  # the run crashed, a probe failed, or a cause was found
    REFUSED = 2  # usage, profile or plan refused: nothing was started
    BUG = 3  # an internal error of the launcher; a report file is written
    UNREACHABLE = 4  # the host cannot be reached, or the launcher's program cannot run on it
    INCONCLUSIVE = 5  # inconclusive, stalled, timed out, lost, or an unknown cause
    INTERRUPTED = 130  # interrupted by Ctrl-C


_ERRORS: tuple[tuple[type[LauncherError], Exit], ...] = (
    (ProfileError, Exit.REFUSED),
    (UsageError, Exit.REFUSED),
    (PlanRefused, Exit.REFUSED),
    (RunNotFound, Exit.REFUSED),
    (HostUnreachable, Exit.UNREACHABLE),
    (HostCommandFailed, Exit.UNREACHABLE),
    (TransportTimeout, Exit.INCONCLUSIVE),
)

_STATES = {
    State.CRASHED: Exit.BAD,
    State.REFUSED: Exit.REFUSED,
    State.STALLED: Exit.INCONCLUSIVE,
    State.TIMED_OUT: Exit.INCONCLUSIVE,
    State.LOST: Exit.INCONCLUSIVE,
}


def of_error(error: LauncherError) -> Exit:
    """Return the exit code of an expected error."""
    return next((code for kind, code in _ERRORS if isinstance(error, kind)), Exit.BAD)


def of_diagnosis(diagnosis: Diagnosis) -> Exit:
    """Return the exit code of a diagnosed log or run."""
    match diagnosis.verdict:
        case LogVerdict.CAUSE:
            return Exit.BAD
        case LogVerdict.HEALTHY | LogVerdict.STOPPED:
            return Exit.OK
        case LogVerdict.UNKNOWN | LogVerdict.STARTING | LogVerdict.NOT_A_LOG:
            return Exit.INCONCLUSIVE


def of_validation(outcome: Outcome) -> Exit:
    """Return the exit code of a validated server. A suite whose probes were all skipped proves nothing: not a pass."""
    match outcome:
        case Outcome.PASS:
            return Exit.OK
        case Outcome.FAIL | Outcome.ERROR:
            return Exit.BAD
        case Outcome.INCONCLUSIVE | Outcome.SKIP:
            return Exit.INCONCLUSIVE


def of_state(state: State) -> Exit:
    """Return the exit code of the state that a run ended in."""
    return _STATES.get(state, Exit.OK)
