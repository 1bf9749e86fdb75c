"""Tell language from word salad by its commonest words: English, or another language whose words are listed here."""

from __future__ import annotations

import re
from collections.abc import Sequence

COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the a an and or of to in is are was were it its that this with for on as by at from be can has have not but "
        "they their which one when where into than also he she his her we you your i there these those more most",
    )
)
_GERMAN = (
    "der die das und in zu den mit von ist des sich auf für nicht ein eine als auch es an werden aus er hat dass sie "
    "nach bei einer um am sind noch wie einem über so zum war haben nur oder aber vor zur bis mehr durch man sein ich"
)
_FRENCH = (
    "le la les de des du un une et est en que qui dans pour sur pas au aux ce cette il elle avec se sont plus par ne "
    "était sans car vers à"
)
_SPANISH = (
    "el la los las de del un una y en que es por con para no se su al lo como más pero sus le ya o este sí porque "
    "hacia sin después a"
)
_ITALIAN = "il lo la i gli le di del della un una e in che è per con non si su al da come più ma sono questo"
_PORTUGUESE = "o a os as de do da um uma e em que é por com para não se no na mais como mas dos das ao"
_DUTCH = "de het een en van in is dat op te zijn met voor niet aan er om ook als bij naar maar"
OTHER_LANGUAGES = tuple(
    frozenset(words.split()) for words in (_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH)
)
_CORE = frozenset(
    ["the", "a", "an", "and", "of", "to", "in", "is", "was", "it", "that", "for", "on", "with", "as", "at", "by"]
)
LEAST_COMMON = 0.15  # share of common words in prose


def words_of(text: str) -> list[str]:
    """Return the words of a text in Latin letters, in lower case."""
    return re.findall(r"[a-zà-öø-ÿ']+", text.lower())


def common_share(words: Sequence[str]) -> float:
    """Return the share of common English words; 0 without words."""
    return sum(word in COMMON_WORDS for word in words) / len(words) if words else 0.0


def core_share(words: Sequence[str]) -> float:
    """Return the share of the few words that hold English sentences together: 0.2 and more in prose, 0.03 in salad."""
    return sum(word in _CORE for word in words) / len(words) if words else 0.0


def other_language(words: Sequence[str]) -> bool:
    """Return whether words are of another language than English that has its common words listed here."""
    return any(sum(word in common for word in words) >= LEAST_COMMON * len(words) for common in OTHER_LANGUAGES)
