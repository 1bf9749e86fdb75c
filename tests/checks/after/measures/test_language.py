"""Common words tell language from salad, in English and in the languages that are listed."""

from __future__ import annotations

import pytest

from checks.after.measures.language import common_share, other_language, words_of


@pytest.mark.parametrize(
    ("text", "english", "other"),
    [
        ("The ship came into the harbour before the storm, and nobody was surprised.", True, False),
        ("Am frühen Morgen ging der alte Wärter mit einer schweren Lampe durch die Stadt.", False, True),
        ("Tôt le matin la jeune maîtresse traversait le petit pont, car il restait du temps.", False, True),
        ("qua ment ist olo xan driv ek ump fra thel gor iv zug per ment qua", False, False),
    ],
)
def test_languages(text: str, english: bool, other: bool) -> None:
    words = words_of(text)
    assert (common_share(words) >= 0.15) is english
    assert other_language(words) is other or english


def test_no_words_are_no_language() -> None:
    assert common_share([]) == 0.0
