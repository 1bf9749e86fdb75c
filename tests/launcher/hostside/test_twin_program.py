"""How the twin's program reads words and judges exceptions; `tests/launcher/twin/test_twin.py` runs it."""

from __future__ import annotations

import importlib
import json
import sys
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
        (json.JSONDecodeError("no", "banana", 0), True, "refused"),
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


def raised(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> BaseException:
    """Return what a module raises while it is imported."""
    (folder / "odd_module.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "odd_module", raising=False)
    try:
        importlib.import_module("odd_module")
    except BaseException as error:
        return error
    raise AssertionError("the module can be imported")


def test_what_a_module_raises_when_it_is_imported_may_rest_on_a_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubts = Doubts()
    error = raised(tmp_path, monkeypatch, "raise RuntimeError('kernel too old')")
    assert judged(error, doubts)["kind"] == "refused"
    doubts.touched = True
    assert judged(error, doubts)["kind"] == "unknown"
    assert doubts.texts == ["RuntimeError while a module was imported"]


def test_a_refusal_after_something_was_denied_is_unknown() -> None:
    try:
        try:
            raise PermissionError("the engine opens a connection")
        except PermissionError:
            raise ValueError("no model")  # noqa: B904
    except ValueError as error:
        assert judged(error, Doubts())["kind"] == "unknown"


def test_the_files_of_a_model_are_written_as_they_are(tmp_path: Path) -> None:
    place = Path(write_model(str(tmp_path), 3, {"config.json": {"a": 1}, "../x.jinja": "{{ b }}"}))
    assert json.loads((place / "config.json").read_text()) == {"a": 1}
    assert (place / "x.jinja").read_text() == "{{ b }}"
