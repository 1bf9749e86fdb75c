"""How the twin's program reads words and judges exceptions; `tests/launcher/twin/test_twin.py` runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from launcher.hostside.stand_ins import Doubts
from launcher.hostside.twin_program import judged, replaced, restored, usage, values_of, write_model


def test_the_path_of_a_model_is_replaced_and_restored() -> None:
    places = {"/data/m": "/tmp/x/model-0"}
    assert replaced("/data/m", places) == "/tmp/x/model-0"
    assert replaced("--model-path=/data/m", places) == "--model-path=/tmp/x/model-0"
    assert replaced("/data/model", places) == "/data/model"
    assert restored('{"at": "/tmp/x/model-0/config.json"}', places) == '{"at": "/data/m/config.json"}'


@pytest.mark.parametrize(
    ("word", "paths"),
    [("/a/b", ["/a/b"]), ("name=/a/b", ["/a/b"]), ("--flag", []), ("a=b", []), ("", [])],
)
def test_the_paths_of_a_word(word: str, paths: list[str]) -> None:
    assert values_of(word) == paths


def test_the_last_error_line_of_a_usage_text_counts() -> None:
    assert usage(b"usage: x\nx: error: bad\n") == "x: error: bad"
    assert usage(b"") == ""


@pytest.mark.parametrize(
    ("error", "touched", "kind"),
    [
        (ValueError("no"), True, "refused"),
        (KeyError("no"), True, "unknown"),
        (KeyError("no"), False, "refused"),
        (FileNotFoundError("no"), False, "unknown"),
        (MemoryError(), False, "unknown"),
    ],
)
def test_an_exception_is_believed_unless_it_may_come_from_something_else(
    error: BaseException, touched: bool, kind: str
) -> None:
    doubts = Doubts()
    doubts.touched = touched
    assert judged(error, doubts)["kind"] == kind


def test_a_refusal_that_follows_from_a_missing_file_is_unknown() -> None:
    try:
        raise ValueError("no model") from FileNotFoundError("config.json")
    except ValueError as error:
        assert judged(error, Doubts())["kind"] == "unknown"


def test_the_files_of_a_model_are_written_as_they_are(tmp_path: Path) -> None:
    place = Path(write_model(str(tmp_path), 3, {"config.json": {"a": 1}, "../x.jinja": "{{ b }}"}))
    assert json.loads((place / "config.json").read_text()) == {"a": 1}
    assert (place / "x.jinja").read_text() == "{{ b }}"
