"""The one door to answers that the toy model was not taught: other stand-ins know the questions of the product.

Extend `known` if a question of the product is not answered. Whatever it returns for a question must be the right
answer: the faults of this package take care of the wrong ones.
"""

from __future__ import annotations

import re
from functools import cache

OPTIONS = re.compile(r"(?m)^\s*\(?[A-J][).:] ")


@cache
def _graded() -> dict[str, str]:
    """Return the answers of all graded questions, by question."""
    from tests.support import fake_model

    return dict(fake_model.questions())


@cache
def _filler() -> frozenset[str]:
    """Return sentences that the other stand-in gives where it knows no answer."""
    from tests.support import fake_model

    text = fake_model.answer_to("\x00 an unknown prompt \x00")
    return frozenset(part.strip() for part in re.findall(r"[^.]+\.", text))


def graded(text: str) -> tuple[str, str] | None:
    """Return the graded question that a prompt ends with and its answer; None if there is none."""
    best: tuple[int, str, str] | None = None
    try:
        questions = _graded()
    except (ImportError, OSError, AttributeError):
        return None
    tail = text[-6000:]
    for question, answer in questions.items():
        place = tail.rfind(question)
        if place >= 0 and (best is None or (place, len(question)) > (best[0], len(best[1]))):
            best = place, question, answer
    return (best[1], best[2]) if best else None


def known(text: str) -> str | None:
    """Return what another stand-in of this repository answers to a prompt; None if it has nothing but filler."""
    try:
        from tests.support import fake_model

        answer: str = fake_model.answer_to(text)
        filler = _filler()
    except (ImportError, OSError, AttributeError):
        return None
    first = re.match(r"[^.]+\.", answer)
    return None if first and first[0].strip() in filler else answer
