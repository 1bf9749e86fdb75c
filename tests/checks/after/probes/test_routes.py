"""Routes that a chat does not use are asked, each for what only it can get wrong."""

from __future__ import annotations

import zlib

import pytest

from checks.after.probes.routes import cosine, png
from checks.vocabulary import Outcome
from tests.support.planted_serving import verdicts


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("completions", "completions-list-alike"),
        ("completions", "completions-templated"),
        ("embeddings", "embeddings-constant"),
        ("embeddings", "embeddings-random"),
        ("rerank", "rerank-index-wrong"),
        ("classify", "embeddings-constant"),
        ("pictures", "pictures-channels-swapped"),
    ],
)
def test_a_planted_fault_is_found(probe: str, fault: str) -> None:
    found = verdicts(probe, fault=fault)[probe]
    assert found.outcome is Outcome.FAIL, found.message


@pytest.mark.parametrize("probe", ["completions"])
def test_a_sound_server_passes(probe: str) -> None:
    found = verdicts(probe)[probe]
    assert found.outcome is Outcome.PASS, found.message


@pytest.mark.parametrize(
    ("probe", "odd"), [("embeddings", "embedding"), ("rerank", "reranker"), ("classify", "classifier")]
)
def test_servers_that_generate_no_text_pass(probe: str, odd: str) -> None:
    assert verdicts(probe, odd=odd)[probe].outcome is Outcome.PASS


def test_a_picture_is_a_png_of_one_colour() -> None:
    data = png((1, 2, 3), size=2)
    assert data.startswith(b"\x89PNG\r\n")
    assert zlib.decompress(data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8]) == b"\0\1\2\3\1\2\3" * 2


def test_the_cosine_of_vectors() -> None:
    assert cosine([1.0, 0.0], [2.0, 0.0]) == pytest.approx(1.0)
    assert cosine([1.0, 0.0], [0.0, 1.0]) == 0.0
    assert cosine([0.0], [1.0]) == 0.0
