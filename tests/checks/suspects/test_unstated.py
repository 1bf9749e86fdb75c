"""The options that lead to the code that failed, where the launch is not known."""

from __future__ import annotations

import pytest

from checks.engine import feature_map
from checks.engine.flag_schema import load
from checks.suspects.clues import Clues, Place
from checks.suspects.unstated import unstated

RELEASE = "0.5.11"


def found(file: str, *, engine: bool = True) -> list[tuple[str, str]]:
    clues = Clues(places=(Place(file=file, engine=engine, function="f", line=1),))
    return [(item.fact, item.value) for item in unstated(clues, feature_map.load(RELEASE), load(RELEASE))]


@pytest.mark.parametrize(
    ("file", "setting"),
    [
        ("srt/layers/attention/flashmla_backend.py", ("flag.attention-backend", "flashmla")),
        ("srt/constrained/outlines_backend.py", ("flag.grammar-backend", "outlines")),
        ("srt/speculative/ngram_worker.py", ("flag.speculative-algorithm", "NGRAM")),
        ("srt/layers/quantization/gguf.py", ("flag.load-format", "gguf")),
    ],
)
def test_a_file_that_a_value_selects_names_the_option(file: str, setting: tuple[str, str]) -> None:
    assert setting in found(file)


def test_code_that_every_launch_runs_names_no_option() -> None:
    assert found("srt/managers/scheduler.py") == []
    assert found("srt/layers/attention/flashmla_backend.py", engine=False) == []
