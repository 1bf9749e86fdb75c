"""The package that failed, with the version that the release requires."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine.flag_schema import load
from checks.suspects.clues import Clues, Place
from checks.suspects.suspected_package import suspected_package
from checks.vocabulary import Suspect

SCHEMA = load("0.5.11")


def suspected(file: str = "", message: str = "", **facts: Any) -> Suspect | None:
    places = (Place(file=file, engine=False, function="plan", line=1),) if file else ()
    return suspected_package(Clues(places=places, message=message), facts, SCHEMA)


def test_the_package_of_the_innermost_frame_is_suspected_with_its_requirement() -> None:
    suspect = suspected("/env/lib/python3.11/site-packages/flashinfer/prefill.py")
    assert suspect is not None
    assert suspect.setting == "package.flashinfer_python"
    assert "the release requires flashinfer_python==" in suspect.reasons[0]
    assert suspect.experiments[0].require["flashinfer_python"].startswith("==")


@pytest.mark.parametrize(
    ("message", "setting"),
    [
        ("ImportError: cannot import name 'gone' from 'sglang.srt.layers.bar'", "package.sglang"),
        ("AttributeError: module 'transformers' has no attribute 'x'", "package.transformers"),
        ("ModuleNotFoundError: No module named 'absent_thing'", "package.absent-thing"),
    ],
)
def test_the_package_on_which_a_name_is_missing_is_suspected(message: str, setting: str) -> None:
    suspect = suspected(message=message)
    assert suspect is not None
    assert suspect.setting == setting


def test_a_name_missing_in_the_engine_points_to_mixed_versions() -> None:
    suspect = suspected(message="ImportError: cannot import name 'gone' from 'sglang.srt.x'")
    assert suspect is not None
    assert "mixes files of several versions" in suspect.reasons[0]
    assert suspect.experiments[0].require == {"sglang": "==0.5.11"}


@pytest.mark.parametrize("file", ["", "/env/site-packages/torch/nn/module.py", "/usr/lib/python3.11/x.py"])
def test_code_that_only_calls_others_is_not_suspected(file: str) -> None:
    assert suspected(file, "ValueError: frob") is None


def test_a_package_that_the_engine_calls_in_a_way_it_does_not_have_is_suspected() -> None:
    place = Place(file="srt/utils/triton_load_watch.py", engine=True, function="install", line=7)
    clues = Clues(places=(place,), message="AttributeError: 'runtime_knobs' object has no attribute 'hook'")
    suspect = suspected_package(clues, {}, SCHEMA)
    assert suspect is not None
    assert suspect.setting == "package.triton"
    assert "srt/utils/triton_load_watch.py:7 calls triton" in suspect.reasons[0]
    assert suspected_package(Clues(places=(place,), message="ValueError: frob"), {}, SCHEMA) is None
