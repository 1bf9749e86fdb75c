"""The exit codes of errors, diagnoses, validations and states: only what is proven good is 0."""

import inspect

import pytest

from checks.vocabulary import Diagnosis, LogVerdict, Match, Outcome, Role
from launcher import errors
from launcher.cli.exits import Exit, of_diagnosis, of_error, of_state, of_validation
from launcher.errors import LauncherError
from launcher.run.state import State

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, LauncherError)]
MATCH = Match(id="x", role=Role.CAUSE, title="x", evidence=())


@pytest.mark.parametrize(
    ("outcome", "code"), [("pass", 0), ("fail", 1), ("error", 1), ("inconclusive", 5), ("skip", 5)]
)
def test_exit_codes_of_a_verdict(outcome: str, code: int) -> None:
    assert of_validation(Outcome(outcome)) == code


@pytest.mark.parametrize("verdict", list(LogVerdict))
def test_only_a_diagnosis_without_a_failure_is_exit_0(verdict: LogVerdict) -> None:
    cause = MATCH if verdict is LogVerdict.CAUSE else None
    diagnosis = Diagnosis(verdict=verdict, cause=cause, sentence="s")
    assert (of_diagnosis(diagnosis) is Exit.OK) is diagnosis.healthy


def test_a_named_cause_and_an_unknown_one_have_different_codes() -> None:
    named = Diagnosis(verdict=LogVerdict.CAUSE, cause=MATCH, sentence="s")
    unknown = Diagnosis(verdict=LogVerdict.UNKNOWN, cause=None, sentence="s")
    assert (of_diagnosis(named), of_diagnosis(unknown)) == (1, 5)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("refused", 2), ("crashed", 1), ("stalled", 5), ("timed-out", 5), ("lost", 5),
        ("planned", 0), ("starting", 0), ("ready", 0), ("validated", 0), ("stopped", 0),
    ],
)  # fmt: skip
def test_a_run_that_did_not_become_ready_is_never_exit_0(state: str, code: int) -> None:
    assert of_state(State(state)) == code


@pytest.mark.parametrize("kind", CLASSES)
def test_no_expected_error_is_a_success_or_a_bug(kind: type[LauncherError]) -> None:
    assert of_error(kind("m")) not in (Exit.OK, Exit.BUG)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("UsageError", 2), ("ProfileError", 2), ("PlanRefused", 2), ("RunNotFound", 2),
        ("HostUnreachable", 4), ("HostCommandFailed", 4), ("TransportTimeout", 5),
    ],
)  # fmt: skip
def test_a_wrong_command_an_unreachable_host_and_silence_are_distinguished(name: str, code: int) -> None:
    error: LauncherError = getattr(errors, name)("m")
    assert of_error(error) == code


def test_a_subclass_has_the_code_of_its_parent() -> None:
    class Narrower(errors.HostUnreachable):
        pass

    assert of_error(Narrower("m")) == of_error(errors.HostUnreachable("m"))
