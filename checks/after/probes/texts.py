"""Generate long prompts: plain, varied, reproducible, and of about the requested number of tokens.

They are generated because their length depends on the server (chunk size, context). English of this kind has about
four characters per token in every common vocabulary.
"""

from __future__ import annotations

import random

CHARACTERS_PER_TOKEN = 4.0

_WHO = ("The baker", "A sailor", "My aunt", "The teacher", "An old farmer", "The postman", "A young nurse", "The judge",
        "Our neighbour", "The gardener", "A painter", "The miller")  # fmt: skip
_DID = ("bought", "found", "repaired", "sold", "carried home", "painted", "lost", "borrowed", "described", "measured",
        "washed", "counted")  # fmt: skip
_WHAT = ("a wooden chair", "seven green apples", "the broken clock", "a map of the coast", "two heavy sacks of flour",
         "a letter without a stamp", "the blue boat", "an empty bottle", "a basket of eggs", "three silver spoons",
         "the garden gate", "a box of nails")  # fmt: skip
_WHEN = ("before sunrise", "on a rainy Monday", "during the long winter", "after the market", "late in the evening",
         "when the church bell rang", "in the last days of May", "while the others slept", "at the end of the holidays",
         "on the way to town")  # fmt: skip


def long_text(tokens: int, seed: int) -> str:
    """Return numbered notes of about `tokens` tokens; the same seed gives the same text."""
    rng = random.Random(seed)
    parts: list[str] = []
    size = 0
    while size < tokens * CHARACTERS_PER_TOKEN:
        sentence = (
            f"Note {len(parts) + 1}: {rng.choice(_WHO)} {rng.choice(_DID)} {rng.choice(_WHAT)} {rng.choice(_WHEN)}."
        )
        parts.append(sentence)
        size += len(sentence) + 1
    return " ".join(parts)


def with_needle(tokens: int, depth: float, code: str, seed: int) -> str:
    """Return a long text with a sentence naming a code at `depth` (0 = start, 1 = end), and a question about it."""
    sentences = long_text(tokens, seed).split(". ")
    sentences.insert(round(depth * len(sentences)), f"The secret code of the harbour is {code}")
    return ". ".join(sentences) + "\n\nWhat is the secret code of the harbour? Answer with the code alone."


def code_word(seed: int) -> str:
    """Return a word that no text contains by chance and every tokenizer can encode."""
    rng = random.Random(seed)
    return "".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(3)) + str(rng.randint(10, 99))


def short_prompts() -> tuple[str, ...]:
    """Return short prompts with a certain continuation, for comparing answers between batches."""
    return (
        "The days of the week are Monday, Tuesday,",
        "The months of the year are January, February, March,",
        "One, two, three, four, five,",
        "The letters of the alphabet are A, B, C, D, E,",
        "2, 4, 6, 8, 10, 12,",
        "The four seasons of the year are spring,",
        "10, 20, 30, 40, 50,",
        "The planets of the solar system are Mercury, Venus,",
        "The colours of the rainbow are red, orange,",
        "The opposite of hot is cold. The opposite of big is",
        "A dog says woof. A cat says",
        "Paris is the capital of France. Rome is the capital of",
    )
