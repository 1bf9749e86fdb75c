"""The release behind a log by `file.py:line` of the engine's messages."""

from __future__ import annotations

import pytest

from checks.engine.feature_map import load
from checks.engine.release_lines import FramePlace, narrowed, printed_lines, with_message

STILL = "/a/sglang/launch_server.py:51: UserWarning: 'python -m sglang.launch_server' is still supported"
SCALES = "WARNING model_config.py:{}: DeepGemm is enabled but the scale_fmt of checkpoint is not ue8m0."


def release(*texts: str) -> tuple[str, int]:
    guess = narrowed(printed_lines(texts))
    assert guess is not None
    return guess.release, guess.exact


def test_a_message_on_the_line_of_one_release_names_it() -> None:
    assert release(SCALES.format(1126)) == ("0.5.11", 1)


def test_a_build_between_two_releases_is_close_to_the_one_that_most_lines_fit() -> None:
    assert release(STILL, SCALES.format(1012)) == ("0.5.10", 1)


def test_a_line_that_no_release_has_is_close_to_the_nearest() -> None:
    assert release(SCALES.format(1239)) == ("0.5.12", 1)
    assert release(SCALES.format(1300))[1] == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "WARNING x.py:1: short",
        "WARNING nowhere.py:7: a message that no release of the engine prints",
        "/site-packages/torch/cuda.py:61: FutureWarning: the package is deprecated",
        '  File "/a/sglang/srt/x.py", line 1, in f',
    ],
)
def test_other_lines_narrow_nothing(text: str) -> None:
    assert narrowed(printed_lines([text])) is None


def test_frames_narrow_by_the_lines_of_their_functions() -> None:
    reader = next(
        item for item in load("0.5.9").readers["srt/managers/scheduler.py"] if item.function == "Scheduler.run_batch"
    )
    guess = narrowed((), [FramePlace("srt/managers/scheduler.py", reader.line + 1, "run_batch")])
    assert guess is not None
    assert "0.5.9" in (guess.release, *guess.as_good)
    assert narrowed((), [FramePlace("srt/nowhere.py", 1, "f")]) is None


def test_a_message_names_the_releases_that_raise_it() -> None:
    guess = with_message("PCG capture stream is not set", "AssertionError")
    assert guess is not None
    assert guess.release == "0.5.7"
    assert with_message("no engine ever said this", "ValueError") is None
