"""More of what the toy model knows: general facts, and small tasks with words and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise

from tests.serving import words

Known = tuple[str, str]

_FACTS: tuple[tuple[str, str, str], ...] = (
    (r"wrote (the play )?(romeo|hamlet|macbeth)", "Shakespeare", "William Shakespeare wrote it."),
    (r"painted the mona lisa", "Leonardo da Vinci", "Leonardo da Vinci painted the Mona Lisa."),
    (r"boiling point of water", "100", "Water boils at 100 degrees Celsius."),
    (r"water (boil|boils)\b", "100", "Water boils at 100 degrees Celsius."),
    (r"(freezing point of water|water freeze)", "0", "Water freezes at 0 degrees Celsius."),
    (r"largest planet|biggest planet", "Jupiter", "The largest planet is Jupiter."),
    (r"smallest planet", "Mercury", "The smallest planet is Mercury."),
    (r"red planet", "Mars", "Mars is called the red planet."),
    (r"(closest|nearest) (planet )?to the sun", "Mercury", "Mercury is the closest to the sun."),
    (r"(largest|biggest) ocean", "Pacific", "The largest ocean is the Pacific."),
    (r"(tallest|highest) mountain", "Mount Everest", "The highest mountain is Mount Everest."),
    (r"longest river", "Nile", "The longest river is the Nile."),
    (r"(largest|biggest) (animal|mammal)", "blue whale", "The largest animal is the blue whale."),
    (r"fastest land animal", "cheetah", "The fastest land animal is the cheetah."),
    (r"language .*brazil", "Portuguese", "Portuguese is spoken in Brazil."),
    (r"language .*(mexico|argentina|spain)", "Spanish", "Spanish is spoken there."),
    (r"language .*(austria|germany)", "German", "German is spoken there."),
    (r"currency .*japan", "yen", "The currency of Japan is the yen."),
    (r"currency .*(united kingdom|england)", "pound", "The currency is the pound."),
    (r"(do bees|bees make|bees produce)", "honey", "Bees make honey."),
    (r"(gas|what) do (plants|humans|we) (breathe in|absorb)", "carbon dioxide", "They take in carbon dioxide."),
    (r"frozen water|water .*freezes.* called", "ice", "Frozen water is called ice."),
    (r"first president of the united states", "George Washington", "It was George Washington."),
    (r"good morning.*french|french.*good morning", "bonjour", "It is bonjour."),
    (r"\bhello\b.*spanish|spanish.*\bhello\b", "hola", "It is hola."),
    (r"thank you.*german|german.*thank you", "danke", "It is danke."),
    (r"(season).*(after|follows) (the )?winter", "spring", "It is spring."),
    (r"(season).*(after|follows) (the )?summer", "autumn", "It is autumn."),
    (r"sound does a cow|cow say", "moo", "A cow says moo."),
    (r"sound does a cat|cat say", "meow", "A cat says meow."),
    (r"dozen", "12", "A dozen is 12."),
    (r"speed of light", "300000", "It is about 300000 kilometres a second."),
    (r"\bpi\b", "3.14159", "Pi is about 3.14159."),
)
_PLURALS = {"mouse": "mice", "child": "children", "foot": "feet", "tooth": "teeth", "man": "men", "woman": "women"}
_PAST = {
    "go": "went",
    "run": "ran",
    "eat": "ate",
    "see": "saw",
    "write": "wrote",
    "take": "took",
    "swim": "swam",
    "sing": "sang",
}


def general(question: str) -> Known | None:
    """Return a general fact, or the result of a small task."""
    low = question.lower()
    tasks: tuple[Callable[[str], Known | None], ...] = (_word_task, _number_task, _sequence, _sorted)
    for task in tasks:
        if found := task(low):
            return found
    for pattern, core, sentence in _FACTS:
        if re.search(pattern, low):
            return core, sentence
    return None


def _word_task(low: str) -> Known | None:
    """Return a word turned round, in the plural, in the past, or spelt."""
    if match := re.search(
        r"(?:word |spell )?[\"'“]?(\w+)[\"'”]? (?:spelled |written )?backwards|"
        r"reverse (?:of )?(?:the word )?[\"'“]?(\w+)",
        low,
    ):
        word = (match[1] or match[2])[::-1]
        return word, word
    if (match := re.search(r"plural (?:form )?(?:of|for) [\"'“]?(\w+)", low)) is not None:
        plural = _PLURALS.get(match[1], match[1] + "s")
        return plural, f"The plural is {plural}."
    if (match := re.search(r"past tense (?:form )?(?:of|for) (?:to )?[\"'“]?(\w+)", low)) is not None:
        past = _PAST.get(match[1], match[1].rstrip("e") + "ed")
        return past, f"The past tense is {past}."
    if match := re.search(r"(?:write|say|print|repeat) (?:the )?(?:word|letter) [\"'“]?(\w+)[\"'”]? (\w+) times", low):
        count = (
            int(match[2]) if match[2].isdigit() else words.NUMBERS.index(match[2]) if match[2] in words.NUMBERS else 3
        )
        text = " ".join([match[1]] * min(count, 300))
        return text, text
    if match := re.search(r"(first|last) letter of (?:the word )?[\"'“]?(\w+)", low):
        letter = match[2][0 if match[1] == "first" else -1]
        return letter, f"The letter is {letter}."
    return None


def _number_task(low: str) -> Known | None:
    """Return a root, a share, a number before or after, or a length in another unit."""
    if match := re.search(r"square root of (\d+)", low):
        return f"{math.sqrt(int(match[1])):g}", f"It is {math.sqrt(int(match[1])):g}."
    if match := re.search(r"(\d+) ?(?:%|percent) of (\d+)", low):
        share = f"{int(match[1]) * int(match[2]) / 100:g}"
        return share, f"It is {share}."
    if match := re.search(r"(?:square of|squared) (\d+)|(\d+) squared", low):
        square = str(int(match[1] or match[2]) ** 2)
        return square, f"It is {square}."
    if match := re.search(r"(half|double|twice|triple) (?:of )?(\d+)", low):
        factor = {"half": 0.5, "double": 2, "twice": 2, "triple": 3}[match[1]]
        return f"{factor * int(match[2]):g}", f"It is {factor * int(match[2]):g}."
    if match := re.search(r"(?:year|number) (?:comes |is )?(?:right |directly )?(after|before) (\d+)", low):
        number = int(match[2]) + (1 if match[1] == "after" else -1)
        return str(number), f"It is {number}."
    if match := re.search(r"(\d+) (?:km|kilometres|kilometers) (?:to|in|into) (?:m\b|metres|meters)", low):
        return str(1000 * int(match[1])), f"That is {1000 * int(match[1])} metres."
    return None


def _sequence(low: str) -> Known | None:
    """Return what comes next in a sequence that grows by a step or by a factor."""
    match = re.search(r"(?:next|continue|sequence|missing)[^\d]*((?:-?\d+,\s*){2,}-?\d+)", low)
    if not match:
        return None
    numbers = [int(number) for number in re.findall(r"-?\d+", match[1])]
    step, factor = numbers[1] - numbers[0], numbers[1] / numbers[0] if numbers[0] else 0
    even = all(later - earlier == step for earlier, later in pairwise(numbers))
    found = numbers[-1] + step if even else round(numbers[-1] * factor)
    return str(found), f"The next number is {found}."


def _sorted(low: str) -> Known | None:
    """Return numbers in order."""
    match = re.search(r"(?:sort|order|arrange)[^\d]*((?:-?\d+,\s*)+(?:and )?-?\d+)", low)
    if not match:
        return None
    falling = bool(re.search(r"descending|largest first|largest to smallest|high(est)? to low", low))
    listed = ", ".join(map(str, sorted((int(number) for number in re.findall(r"-?\d+", match[1])), reverse=falling)))
    return listed, listed


def guessed(question: str) -> Known | None:
    """Return an answer of the kind asked for where the model does not know: yes, true, or one of several things."""
    low = question.lower()
    if re.search(r"\b(yes or no|yes/no|'yes' or 'no'|\"yes\" or \"no\")", low):
        no = re.search(r"\bnot\b|\bever\b|cold|fly|older than|made of cheese", low)
        return ("No", "No.") if no else ("Yes", "Yes.")
    if re.search(r"true or false|true/false", low):
        return ("False", "This is false.") if re.search(r"cold|not|never|cheese", low) else ("True", "This is true.")
    if match := re.search(r"which (?:of these |one )?is an? (\w+)[^:]*: ?([\w, ]+)", low):
        things = [thing.removeprefix("or ").strip() for thing in match[2].split(",")]
        listed = next((group for kind, group in words.LISTS.items() if kind in match[1]), ())
        fitting = next((thing for thing in things if thing in [one.lower() for one in listed]), things[0])
        return fitting, f"It is the {fitting}."
    return None
