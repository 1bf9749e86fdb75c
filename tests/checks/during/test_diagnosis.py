from pathlib import Path
from typing import Any

import pytest

from checks import KNOWLEDGE
from checks.during import signature_build
from checks.during.diagnosis import diagnose_chunks
from checks.vocabulary import Diagnosis, LogVerdict

STAMP = "[2026-11-29 15:25:{:02} TP{}] "
TRACE = 'Scheduler hit an exception: Traceback (most recent call last):\n  File "/a/sglang/srt/x.py", line 1, in f\n'
READY = "[2026-11-29 15:24:59] The server is fired up and ready to roll!\n"
STOP = "[2026-11-29 15:25:30] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"


def trace(second: int, rank: int, error: str) -> str:
    return STAMP.format(second, rank) + TRACE + error + "\n\n"


def write(root: Path, kind: str, name: str, text: str) -> None:
    folder = root / kind / name
    folder.mkdir(parents=True)
    (folder / f"{'cause' if kind == 'causes' else 'sign'}.yaml").write_text(text)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("knowledge")
    for name, during in {
        "alpha": "  - all: ['^ValueError: alpha (?P<what>\\w+)']\n",
        "beta": "  - all: ['^ValueError: beta']\n",
        "generic": "  - all: ['^ValueError: ']\n    weight: hint\n",
        "noted": "  - all: ['^something odd$']\n",
        "weak": "  - all: ['^something weak$']\n    weight: hint\n",
        "sure": "  - all: ['^something fatal$']\n    weight: decisive\n",
        "stood": "  - all: ['^Health check failed']\n",
        "refusing": "  - all: ['^no such thing']\n    weight: decisive\n    fails: request\n",
        "odd-answer": "  - when: {observed.kind: repeated-token}\n",
        "odd-answer-with-flag": "  - when: {observed.kind: repeated-token, flag.page-size: '64'}\n",
        "one-of-two": "  - when: {observed.kind: tie}\n",
        "two-of-two": "  - when: {observed.kind: tie}\n",
    }.items():
        extra = "remedies: [{text: 'drop {what}', set: {tp-size: '1'}}]\n" if name == "alpha" else ""
        write(root, "causes", name, f"title: The {name} of {{what}}\nwhy: because\nduring:\n{during}{extra}")
    write(root, "signs", "lost", "role: symptom\ntitle: lost\nduring:\n  - all: [closed by peer]\n    weight: hint\n")
    write(root, "signs", "fine", "role: benign\ntitle: fine\nduring:\n  - all: ['^Skipping']\n    weight: decisive\n")
    write(root, "signs", "open", "role: ledger\ntitle: open\nduring:\n  - all: [may cost accuracy]\n")
    (root / "phases").symlink_to(KNOWLEDGE / "phases")
    return root


def judge(root: Path, log: str, **known: Any) -> Diagnosis:
    engine = str(known.pop("engine", ""))
    return diagnose_chunks([log.encode()], signature_build.build(root), known, engine)


def cause(found: Diagnosis) -> str | None:
    return found.cause.id if found.cause else None


def test_the_earliest_cause_across_ranks_is_named(root: Path) -> None:
    found = judge(root, trace(5, 1, "ValueError: beta") + trace(3, 0, "ValueError: alpha male"))
    assert cause(found) == "alpha"
    assert found.cause and found.cause.title == "The alpha of male"
    evidence = found.cause.evidence[0]
    assert (evidence.line, evidence.rank, evidence.time) == (7, "TP0", "2026-11-29 15:25:03")


def test_a_consequence_is_listed_and_not_blamed(root: Path) -> None:
    found = judge(root, trace(1, 0, "RuntimeError: Connection closed by peer") + trace(3, 1, "ValueError: beta"))
    assert cause(found) == "beta"
    assert [item.id for item in found.symptoms] == ["lost"]


def test_a_generic_pattern_speaks_last(root: Path) -> None:
    assert cause(judge(root, trace(1, 0, "ValueError: other") + trace(3, 1, "ValueError: beta"))) == "beta"
    assert cause(judge(root, trace(1, 0, "ValueError: other"))) == "generic"


def test_benign_lines_are_dismissed(root: Path) -> None:
    found = judge(root, READY + "Skipping tactic 3\n")
    assert found.healthy and [item.id for item in found.dismissed] == ["fine"]


def test_open_warnings_go_to_the_ledger(root: Path) -> None:
    found = judge(root, "[2026-11-29 15:24:50] this may cost accuracy\n" + READY)
    assert found.healthy and [item.id for item in found.ledger] == ["open"]


def test_nothing_after_a_request_to_stop_is_a_cause(root: Path) -> None:
    found = judge(root, READY + STOP + trace(31, 0, "ValueError: beta"))
    assert found.healthy and found.sentence == "stopped on request (line 2) without an earlier failure"


def test_a_crash_before_the_stop_counts(root: Path) -> None:
    assert cause(judge(root, READY + trace(1, 0, "ValueError: beta") + STOP)) == "beta"


def test_a_distant_line_does_not_explain_an_open_crash(root: Path) -> None:
    gap = "".join(f"[2026-11-29 15:24:00] Error {chr(97 + n // 26)}{chr(97 + n % 26)}\n" for n in range(200))
    open_crash = trace(9, 0, "KeyError: 'x'")
    assert cause(judge(root, "something odd\n" + gap + open_crash)) is None
    assert cause(judge(root, gap + "something odd\n" + open_crash)) == "noted"
    assert cause(judge(root, "something fatal\n" + gap + open_crash)) == "sure"


def test_a_decisive_line_outranks_an_ordinary_crash(root: Path) -> None:
    assert cause(judge(root, "something fatal\n" + trace(9, 0, "ValueError: beta"))) == "sure"
    assert cause(judge(root, "something odd\n" + trace(9, 0, "ValueError: beta"))) == "beta"


def test_what_was_observed_names_the_most_specific_cause(root: Path) -> None:
    seen = {"observed": {"kind": "repeated-token"}}
    assert cause(judge(root, READY, **seen)) == "odd-answer"
    assert cause(judge(root, READY, **seen, flags={"page-size": "64"})) == "odd-answer-with-flag"


def test_two_equal_causes_are_none(root: Path) -> None:
    assert cause(judge(root, READY, observed={"kind": "tie"})) is None


def test_remedies_are_filled_and_spelled_for_the_release(root: Path) -> None:
    [remedy] = judge(root, trace(1, 0, "ValueError: alpha male"), engine="0.5.10").remedies
    assert remedy.text == "drop male"
    assert list(remedy.set) in (["tp-size"], ["tensor-parallel-size"])


def test_an_unknown_crash_has_a_fingerprint_and_no_cause(root: Path) -> None:
    found = judge(root, trace(1, 0, "KeyError: 'x'"))
    assert (cause(found), found.healthy, found.fingerprint) == (None, False, "KeyError@srt/x.py:f/")
    assert found.verdict is LogVerdict.UNKNOWN and found.sentence.startswith("KeyError: 'x'")


def test_a_refusal_of_the_engine_is_looked_up_in_its_source(root: Path) -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/a/sglang/srt/mem_cache/kv_cache_configurator.py", line 3050, in g\n'
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: 0.1\n"
    )
    found = judge(root, log, engine="0.5.11")
    assert cause(found) is None and found.why
    assert found.sentence.startswith("the engine raised this error because `") and "srt/" in found.sentence


def test_an_engine_that_just_dies_is_unknown(root: Path) -> None:
    found = judge(root, READY + "[2026-11-29 15:25:01] SIGQUIT received. signum=None, frame=None.\n")
    assert found.verdict is LogVerdict.UNKNOWN
    assert found.sentence.startswith("the engine died in phase `serving`")


def test_a_hang_names_phase_and_last_movement(root: Path) -> None:
    found = judge(root, "[2026-11-29 15:25:01 TP0] Init torch distributed begin.\n")
    assert found.phase == "distributed"
    assert "last sign of progress: line 1 at 2026-11-29 15:25:01: Init torch distributed begin." in found.sentence


def test_a_server_that_stops_responding_is_not_healthy(root: Path) -> None:
    stall = "[2026-11-29 15:25:20] Health check failed. Server couldn't get a response from detokenizer\n"
    assert not judge(root, READY + stall).healthy
    assert judge(root, READY + stall + '[2026-11-29 15:25:21] INFO:  1:2 - "GET /health HTTP/1.1" 200 OK\n').healthy


def test_a_stall_that_passed_is_not_the_cause_of_a_later_death(root: Path) -> None:
    stall = "[2026-11-29 15:25:20] Health check failed. Server couldn't get a response from detokenizer\n"
    death = "[2026-11-29 15:25:40] SIGQUIT received. signum=None, frame=None.\n"
    front_end = '[2026-11-29 15:25:30] INFO:  1:2 - "GET /v1/models HTTP/1.1" 200 OK\n'
    one_rank = "[2026-11-29 15:25:30 TP0] Prefill batch, #new-seq: 1, #new-token: 10, #queue-req: 0\n"
    work = "[2026-11-29 15:25:30 TP0] Decode batch, #running-req: 2, #token: 25, #queue-req: 0\n"
    assert cause(judge(root, READY + stall + death)) == "stood"
    assert cause(judge(root, READY + stall + front_end + one_rank + death)) == "stood"
    passed = judge(root, READY + stall + work + death)
    assert passed.verdict is LogVerdict.UNKNOWN and passed.sentence.startswith("the engine died")


def test_a_file_that_is_not_a_log_has_no_phase_and_a_word_is_not_a_release(root: Path) -> None:
    foreign = judge(root, "hello\n")
    assert foreign.verdict is LogVerdict.NOT_A_LOG and not foreign.healthy
    odd = judge(root, trace(1, 0, "ValueError: beta"), engine="banana")
    assert cause(odd) == "beta" and any("`banana` is not a release number" in note for note in odd.notes)


def test_a_log_that_starts_late_gets_a_note(root: Path) -> None:
    found = judge(root, '  File "/a/sglang/srt/x.py", line 1, in f\nKeyError: 1\n')
    assert any("start of this traceback is missing" in note for note in found.notes)
    late = judge(root, "[2026-11-29 15:25:01 TP0] Load weight begin. avail mem=1 GB\n")
    assert late.notes == ("the log starts in phase `weights`: earlier lines, including the server args, are missing",)


def test_an_empty_log_is_called_empty(root: Path) -> None:
    assert judge(root, "").sentence == "the log is empty"


REQUEST = (
    "ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n"
    '  File "/a/starlette/requests.py", line 239, in stream\n    raise ClientDisconnect()\n'
    "starlette.requests.ClientDisconnect\n"
)
ANSWER = '[2026-11-29 15:25:21] INFO:     1.2.3.4:5 - "POST /v1/completions HTTP/1.1" 200 OK\n'


def test_a_failed_request_is_not_a_failure_of_the_engine_while_others_succeed(root: Path) -> None:
    found = judge(root, READY + REQUEST + ANSWER)
    assert found.healthy
    assert any("the engine kept serving after starlette.requests.ClientDisconnect" in note for note in found.notes)
    assert not judge(root, READY + REQUEST).healthy
    assert not judge(root, READY + trace(1, 0, "KeyError: 'x'") + ANSWER).healthy


def test_a_rejected_request_is_not_a_cause_once_the_engine_answers_others(root: Path) -> None:
    def said(second: int, text: str) -> str:
        return STAMP.format(second, 0) + text + "\n"

    refused = said(3, "no such thing")
    answered = said(4, 'INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK')
    for log in (refused, refused + STOP, answered + refused + STOP):
        assert cause(judge(root, log)) == "refusing", log
    for log in (refused + answered, refused + answered + STOP):
        found = judge(root, log)
        assert found.healthy and [item.id for item in found.dismissed] == ["refusing"], log
    died = said(6, "Received sigquit from a child process. It usually means the child failed.")
    assert cause(judge(root, refused + died)) == "refusing"
    later = judge(root, refused + answered + died)  # of something else
    assert (cause(later), later.healthy) == (None, False)


def test_a_server_with_repeated_failed_health_checks_is_not_healthy(root: Path) -> None:
    def said(minute: int, status: str) -> str:
        return f'[2026-11-29 15:{minute}:00] INFO:     10.0.0.9:1 - "GET /health HTTP/1.1" {status}\n'

    loading = "".join(said(20 + number, "503 Service Unavailable") for number in range(5))
    assert judge(root, loading + READY + said(30, "200 OK")).healthy
    served = loading + READY + said(30, "200 OK")
    refused = "".join(said(31 + number, "503 Service Unavailable") for number in range(3))
    assert not judge(root, served + refused).healthy
    assert judge(root, served + refused + said(40, "200 OK")).healthy


def test_a_later_line_that_shows_who_killed_a_process_explains_its_death(root: Path) -> None:
    found = judge(root, "something weak\n" + READY + "something fatal\n")
    assert cause(found) == "sure"


@pytest.mark.parametrize("root_of_engine", ["/opt/venv/lib/python3.12/site-packages", "/sgl-workspace/sglang/python"])
def test_a_fingerprint_is_the_same_wherever_the_engine_is_installed(root: Path, root_of_engine: str) -> None:
    frame = f'  File "{root_of_engine}/sglang/srt/managers/scheduler.py", line 9, in run_batch\n    x()\n'
    found = judge(root, f"Traceback (most recent call last):\n{frame}KeyError: 'odd'\n")
    assert found.fingerprint == "KeyError@srt/managers/scheduler.py:run_batch/serving"


def test_the_source_is_quoted_only_for_the_file_that_raised(root: Path) -> None:
    frames = '  File "/a/sglang/srt/managers/scheduler.py", line 1122, in event_loop_overlap\n    run()\n'
    log = STAMP.format(1, 0) + f"Scheduler hit an exception: Traceback (most recent call last):\n{frames}"
    for message in (
        "RuntimeError: CUDA error: unknown error",
        "AttributeError: 'NoneType' object has no attribute 'x'",
    ):
        found = judge(root, f"{log}{message}\n\n", engine="0.5.10")
        assert "raised this error because" not in found.sentence, found.sentence
        assert found.phase == "serving"


def test_what_somebody_saw_go_wrong_is_never_called_healthy(root: Path) -> None:
    found = judge(root, READY, observed={"kind": "garbled"})
    assert (cause(found), found.healthy, found.fingerprint) == (None, False, "observed:garbled")
    assert found.verdict is LogVerdict.UNKNOWN and found.observed == "garbled"
    assert judge(root, READY, observed={"kind": "none"}).healthy
    nan = "[2026-11-29 15:25:10] Detected errors during sampling! NaN in the logits.\n"
    assert judge(root, READY + nan).fingerprint == "observed:nan-output"


def test_where_the_draft_model_fails_its_path_is_what_is_wrong(tmp_path: Path) -> None:
    remedies = "remedies: [{set: {model-path: /x}}]\n"
    write(tmp_path, "causes", "gone", f"title: gone\nduring:\n  - all: [no such model]\n{remedies}")
    (tmp_path / "phases").symlink_to(KNOWLEDGE / "phases")
    frame = '  File "/a/sglang/srt/{}", line 9, in f\n    x()\n'
    places = {"managers/tp_worker.py": "model-path", "speculative/eagle_worker.py": "speculative-draft-model-path"}
    for file, flag in places.items():
        log = f"Traceback (most recent call last):\n{frame.format(file)}ValueError: no such model\n"
        assert list(judge(tmp_path, log).remedies[0].set) == [flag]


def test_prompts_and_completions_are_not_evidence(root: Path) -> None:
    said = "[2026-11-29 15:25:01] Receive: obj=R(text='Traceback (most recent call last): ValueError: beta')"
    assert judge(root, READY + said + "\n").healthy


def test_a_missing_release_is_reported(root: Path) -> None:
    log = trace(1, 0, "ValueError: beta")
    assert any("--engine" in note for note in judge(root, log).notes)
    assert not any("--engine" in note for note in judge(root, log, engine="0.5.11").notes)


def test_a_doubtful_cause_is_not_named_if_ranks_cannot_be_separated(root: Path) -> None:
    write(
        root,
        "causes",
        "of-frame",
        "title: t\nwhy: w\nduring:\n  - all: ['in deep$', '^ValueError: beta']\n    weight: decisive\n",
    )
    rows = [
        STAMP.format(1, 0) + "Scheduler hit an exception: Traceback (most recent call last):",
        STAMP.format(1, 1) + "Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/a/sglang/srt/x.py", line 1, in deep',
        '  File "/a/sglang/srt/y.py", line 2, in flat',
        "ValueError: beta",
        "ConnectionError: x",
    ]
    found = judge(root, "\n".join(rows) + "\n")
    assert cause(found) is None and not found.healthy
    assert "may be `beta` or `of-frame`" in found.sentence
