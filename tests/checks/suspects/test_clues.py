"""What a failure shows: places with their source, innermost first, messages, and the engine's own conditions."""

from __future__ import annotations

from checks.suspects.clues import Place, clues_of
from tests.checks.suspects.failures import HEAD, STARTED, frame, judged


def test_places_are_innermost_first_with_their_source() -> None:
    inner = '  File "/env/site-packages/flashinfer/jit.py", line 3, in build\n    raise X\n'
    clues = clues_of(judged(HEAD + frame("srt/a.py", "outer", "inner()") + inner + "ValueError: frob\n"))
    assert clues.places == (
        Place(file="/env/site-packages/flashinfer/jit.py", engine=False, function="build", line=3, source="raise X"),
        Place(file="srt/a.py", engine=True, function="outer", line=10, source="inner()"),
    )
    assert clues.message == "ValueError: frob"


def test_the_second_failure_adds_its_message_and_the_first_with_frames_its_places() -> None:
    log = STARTED + "x.cu:7: frob failed\n" + HEAD + frame("srt/a.py", "f") + "ValueError: second\n"
    clues = clues_of(judged(log))
    assert [place.file for place in clues.places] == ["srt/a.py"]
    assert "frob failed" in clues.message
    assert "second" in clues.message


def test_of_a_usage_text_only_its_error_counts() -> None:
    log = "usage: launch_server.py [--tp-size N]\n  [--page-size N]\nlaunch_server.py: error: argument --port: bad\n"
    assert clues_of(judged(log)).message == "launch_server.py: error: argument --port: bad"


def test_the_conditions_of_the_engines_own_statement_are_read() -> None:
    message = "RuntimeError: Failed to load LoRA adapter a: frob\n"
    log = HEAD + frame("srt/lora/lora_manager.py", "init_lora_adapters", line=374) + message
    assert "lora_paths" in clues_of(judged(log, engine="0.5.9")).conditions


def test_a_log_without_a_failure_has_no_clues() -> None:
    assert clues_of(judged(STARTED)).empty
