"""The judgement on a start: verdict, cause or rivals, unexplained failures, phase and fingerprint."""

from __future__ import annotations

from typing import Any

import pytest

from checks import KNOWLEDGE
from checks.during import signature_build
from checks.during.judgement import Judgement, judge
from checks.during.log.scan import scan
from checks.during.reading import read
from checks.during.signature_index import Index
from checks.vocabulary import LogVerdict

AT = "[2026-11-29 15:25:{:02} TP0] "
READY = AT.format(0) + "The server is fired up and ready to roll!\n"
STOP = AT.format(30) + "SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
DIED = AT.format(29) + "SIGQUIT received. signum=None, frame=None.\n"
STALL = AT.format(20) + "Health check failed. Server couldn't get a response from detokenizer\n"
ANSWER = AT.format(21) + 'INFO:     1.2.3.4:5 - "POST /generate HTTP/1.1" 200 OK\n'
REQUEST = 'Traceback (most recent call last):\n  File "/a/starlette/x.py", line 1, in f\nOSError: gone\n'


def trace(second: int, error: str, rank: str = "TP0") -> str:
    head = f"[2026-11-29 15:25:{second:02} {rank}] Scheduler hit an exception: Traceback (most recent call last):"
    return f'{head}\n  File "/a/sglang/srt/x.py", line 1, in f\n{error}\n\n'


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    root = tmp_path_factory.mktemp("knowledge")
    causes = {
        "alpha": "all: ['^ValueError: alpha']",
        "beta": "all: ['^ValueError: beta']",
        "seen": "when: {observed.kind: nan-output}",
        "deep": "all: ['in deep$', '^ValueError: beta']",
    }
    for name, pattern in causes.items():
        (root / "causes" / name).mkdir(parents=True)
        (root / "causes" / name / "cause.yaml").write_text(f"title: {name}\nduring:\n  - {{{pattern}}}\n")
    (root / "signs").mkdir()
    (root / "phases").symlink_to(KNOWLEDGE / "phases")
    return signature_build.build(root)


def judged(index: Index, log: str, **known: Any) -> Judgement:
    return judge(read(scan([log.encode()], index.words), index, known))


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        ("", LogVerdict.NOT_A_LOG),
        ("hello\n", LogVerdict.NOT_A_LOG),
        (AT.format(0) + "server_args=ServerArgs(x=1)\n", LogVerdict.STARTING),
        (READY, LogVerdict.HEALTHY),
        (READY + STOP, LogVerdict.STOPPED),
        (READY + STOP + trace(31, "ValueError: alpha"), LogVerdict.STOPPED),
        (READY + STALL + ANSWER, LogVerdict.HEALTHY),
        (READY + REQUEST + ANSWER, LogVerdict.HEALTHY),
        (READY + REQUEST, LogVerdict.UNKNOWN),
        (READY + STALL, LogVerdict.UNKNOWN),
        (READY + STALL + STOP, LogVerdict.UNKNOWN),
        (READY + DIED, LogVerdict.UNKNOWN),
        (READY + DIED + STOP, LogVerdict.UNKNOWN),
        (trace(1, "KeyError: 1"), LogVerdict.UNKNOWN),
        ("hello\n" + REQUEST, LogVerdict.UNKNOWN),
        (trace(1, "ValueError: alpha"), LogVerdict.CAUSE),
        (READY + trace(1, "ValueError: alpha") + STOP, LogVerdict.CAUSE),
    ],
)
def test_a_log_comes_to_one_verdict(index: Index, log: str, verdict: LogVerdict) -> None:
    found = judged(index, log)
    assert found.verdict is verdict
    assert (found.cause is not None) is (verdict is LogVerdict.CAUSE)


def test_a_cause_leaves_nothing_open(index: Index) -> None:
    found = judged(index, READY + trace(1, "ValueError: alpha") + trace(2, "KeyError: 1", "TP1"))
    assert found.cause is not None and found.cause.rule.entry == "alpha"
    assert (found.open, found.rivals, found.observed) == ((), (), "")
    assert found.at is not None and found.at.line == 2
    assert (found.phase, found.fingerprint) == ("serving", "ValueError@srt/x.py:f/serving")


def test_without_a_cause_the_earliest_failure_is_open_first(index: Index) -> None:
    found = judged(index, READY + trace(5, "KeyError: late") + trace(3, "TypeError: early", "TP1"))
    assert [item.line for item in found.open] == [6, 2]
    assert found.at is found.open[0]
    assert found.fingerprint == "TypeError@srt/x.py:f/serving"


def test_a_start_without_a_failure_is_in_the_phase_it_reached_and_has_no_fingerprint(index: Index) -> None:
    found = judged(index, AT.format(0) + "Load weight begin. avail mem=1 GB\n")
    assert (found.phase, found.fingerprint, found.at) == ("weights", "", None)


def test_what_was_survived_is_kept_apart(index: Index) -> None:
    found = judged(index, READY + REQUEST + ANSWER)
    assert [item.line for item in found.overcome] == [2]
    assert found.open == ()
    assert judged(index, READY + REQUEST).overcome == ()
    known = judged(index, READY + REQUEST.replace("OSError: gone", "ValueError: alpha") + ANSWER)
    assert known.overcome == () and known.cause is not None


@pytest.mark.parametrize("kind", ["", "none", "OK", "healthy", "crash"])
def test_an_observation_without_trouble_does_not_count(index: Index, kind: str) -> None:
    assert judged(index, READY, observed={"kind": kind}).verdict is LogVerdict.HEALTHY


def test_observed_trouble_rules_out_healthy_even_if_the_log_shows_nothing(index: Index) -> None:
    found = judged(index, READY, observed={"kind": "garbled"})
    assert (found.verdict, found.observed, found.fingerprint) == (LogVerdict.UNKNOWN, "garbled", "observed:garbled")
    failed = judged(index, READY + trace(1, "KeyError: 1"), observed={"kind": "garbled"})
    assert (failed.observed, failed.fingerprint) == ("", "KeyError@srt/x.py:f/serving")


def test_a_cause_may_rest_on_what_was_seen_alone(index: Index) -> None:
    found = judged(index, READY, observed={"kind": "nan"})
    assert found.cause is not None and found.cause.rule.entry == "seen"
    assert (found.at, found.fingerprint, found.observed, found.phase) == (None, "", "", "serving")


def starts(*ranks: int) -> str:
    head = "[2026-11-29 15:25:01 TP{}] Scheduler hit an exception: Traceback (most recent call last):\n"
    return "".join(head.format(rank) for rank in ranks)


def test_two_causes_that_lines_written_over_each_other_could_mean_are_rivals(index: Index) -> None:
    frames = '  File "/a/sglang/srt/x.py", line 1, in {}\n'
    mixed = starts(0, 1) + frames.format("deep") + frames.format("flat") + "ValueError: beta\nConnectionError: x\n"
    found = judged(index, mixed)
    assert (found.cause, found.rivals, found.verdict) == (None, ("beta", "deep"), LogVerdict.UNKNOWN)
    assert found.observed == ""


def test_a_guess_that_changes_nothing_leaves_the_cause(index: Index) -> None:
    frames = '  File "/a/sglang/srt/x.py", line 1, in {}\n'
    mixed = starts(0, 1) + frames.format("one") + frames.format("flat") + "ValueError: beta\nConnectionError: x\n"
    found = judged(index, mixed)
    assert found.cause is not None and found.cause.rule.entry == "beta"
    assert found.at is not None and found.at.interleaved
    assert found.rivals == ()
