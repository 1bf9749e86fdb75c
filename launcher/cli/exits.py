"""Outcome → exit code: the one table. docs/how-it-works.md shows it to people."""

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
from launcher.run.store import State


class Exit(IntEnum):
    """Exit codes of every command."""

    OK = 0  # the server is healthy, the check found no error, the log shows no failure
    BAD = 1  # what was asked about is bad: crashed, a probe failed, a cause was found
    REFUSED = 2  # usage, profile or plan refused: nothing was started
    BUG = 3  # a fault of the launcher itself; a report file is written
    UNREACHABLE = 4  # the host cannot be reached, or a program of ours cannot run there
    INCONCLUSIVE = 5  # inconclusive, stalled, timed out, lost, or a cause that is not known
    INTERRUPTED = 130  # from the keyboard


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
    """Exit code of an expected error."""
    return next((code for kind, code in _ERRORS if isinstance(error, kind)), Exit.BAD)


def of_diagnosis(found: Diagnosis) -> Exit:
    """Exit code of an explained log or run."""
    match found.verdict:
        case LogVerdict.CAUSE:
            return Exit.BAD
        case LogVerdict.HEALTHY | LogVerdict.STOPPED:
            return Exit.OK
        case LogVerdict.UNKNOWN | LogVerdict.STARTING | LogVerdict.NOT_A_LOG:
            return Exit.INCONCLUSIVE


def of_validation(outcome: Outcome) -> Exit:
    """Exit code of a judged server. All skipped is no pass: nothing was shown."""
    match outcome:
        case Outcome.PASS:
            return Exit.OK
        case Outcome.FAIL | Outcome.ERROR:
            return Exit.BAD
        case Outcome.INCONCLUSIVE | Outcome.SKIP:
            return Exit.INCONCLUSIVE


def of_state(state: State) -> Exit:
    """Exit code of the state that a run ended in."""
    return _STATES.get(state, Exit.OK)
