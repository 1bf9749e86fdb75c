"""What the toy model knows and can work out: facts, sums, lists, and finding again what it was told."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

from tests.serving import words

Known = tuple[str, str]
"""The bare answer, and a sentence that gives it."""

_NUMBER = r"-?\d+(?:\.\d+)?"
_WORD_OPERATORS = (
    (r"\bplus\b|\badded to\b", "+"),
    (r"\bminus\b", "-"),
    (r"\btimes\b|\bmultiplied by\b|×|(?<=\d)\s*x\s*(?=\d)", "*"),
    (r"\bdivided by\b|÷", "/"),
    (r"\bto the power of\b|\^", "**"),
    (r"−", "-"),
)
_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_STOPPED = (
    "what is the a an my our your was are of in for to tell me please say which who whose did i you that it only "
    "answer reply with and just give this and do does remember told said mention mentioned above text now at on by "
    "be from hidden find return exactly nothing else one question document following"
)
_STOP = frozenset(_STOPPED.split())


def worked_out(question: str) -> Known | None:
    """Return the result of the last sum in a question."""
    text = question
    for pattern, sign in _WORD_OPERATORS:
        text = re.sub(pattern, f" {sign} ", text, flags=re.I)
    if match := re.search(rf"(?i)\b(sum|product|difference) of ({_NUMBER}) and ({_NUMBER})", text):
        text = f"{match[2]} {'+*-'[('sum', 'product', 'difference').index(match[1].lower())]} {match[3]}"
    found = re.findall(rf"\(?{_NUMBER}(?:\s*(?:\*\*|//|[-+*/%])\s*\(?\s*{_NUMBER}\s*\)?)+", text)
    found = [item for item in found if not re.fullmatch(r"\d{4}-\d\d(-\d\d)?|\d+-\d+-\d+|\d+/\d+/\d+", item.strip())]
    if not found:
        return None
    expression = found[-1].strip()
    while expression.count("(") != expression.count(")"):
        expression = expression[1:] if expression.startswith("(") else expression.rstrip(")")
    try:
        value = _value(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ZeroDivisionError, ValueError, OverflowError):
        return None
    shown = str(int(value)) if value == int(value) else f"{value:.4g}"
    return shown, f"{' '.join(expression.split())} = {shown}"


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            return float(left**right) if abs(right) < 20 and abs(left) < 1000 else 0
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    raise ValueError(ast.dump(node))


def word_problem(question: str) -> Known | None:
    """Return the result of a simple story about things gained and lost."""
    low = question.lower()
    if "how many" not in low and "how much" not in low:
        return None
    numbers = [(int(match[0]), match.start()) for match in re.finditer(r"\b\d+\b", low)]
    if len(numbers) < 2:
        return None
    if match := re.search(r"(\d+) \w+ (?:with|of|containing|each with) (\d+)", low):
        return str(int(match[1]) * int(match[2])), f"That makes {int(match[1]) * int(match[2])}."
    if "each" in low and len(numbers) == 2:
        product = numbers[0][0] * numbers[1][0]
        return str(product), f"That makes {product} in all."
    total, previous = numbers[0][0], numbers[0][1]
    for number, place in numbers[1:]:
        lost = re.search(
            r"\b(gives?|gave|loses?|lost|eats?|ate|sells?|sold|leaves?|left|spends?|spent|away)\b", low[previous:place]
        )
        total += -number if lost else number
        previous = place
    return str(total), f"In the end there are {total}."


def fact(question: str) -> Known | None:
    """Return a fact that the model was taught."""
    low = question.lower()
    if match := re.search(r"capital(?: city)? of (?:the )?([a-z ]+?)(?:[?.,!:]|$| is\b| in\b)", low):
        for country, capital in words.CAPITALS.items():
            if country.lower().removeprefix("the ") == match[1].strip():
                return capital, f"The capital of {country} is {capital}."
    match = re.search(r"(?:opposite of|antonym of|antonym for) (?:the word )?[\"'“]?(\w+)", low)
    if match and match[1] in words.OPPOSITES:
        return words.OPPOSITES[match[1]], f"The opposite of {match[1]} is {words.OPPOSITES[match[1]]}."
    if re.search(r"colou?r", low):
        for thing, colour in words.COLOURS_OF.items():
            if re.search(rf"\b{thing}s?\b", low):
                return colour, f"The {thing} is {colour}."
    for phrase, count in words.COUNTS.items():
        if phrase in low:
            return str(count), f"There are {count}."
    if re.search(r"chemical symbol|symbol (?:for|of)|formula", low):
        for name, symbol in words.SYMBOLS.items():
            if re.search(rf"\b{name}\b", low):
                return symbol, f"The chemical symbol for {name} is {symbol}."
    return _calendar(low) or _counted(low) or _compared(low)


def _calendar(low: str) -> Known | None:
    """Return the day or month before or after another."""
    for names in (words.DAYS, words.MONTHS):
        for position, name in enumerate(names):
            match = re.search(rf"(after|before|follows|precedes)\b[^.?]*\b{name.lower()}", low)
            match = match or re.search(rf"\b{name.lower()}\b[^.?]*(next|tomorrow|yesterday)", low)
            if match:
                step = -1 if match[1] in {"before", "precedes", "yesterday"} else 1
                found = names[(position + step) % len(names)]
                return found, f"It is {found}."
    return None


def _counted(low: str) -> Known | None:
    """Return how many letters or words a text has, or a word written backwards."""
    if match := re.search(r"how many letters (?:are )?(?:there )?(?:are )?in (?:the word )?[\"'“]?(\w+)", low):
        return str(len(match[1])), f"The word {match[1]} has {len(match[1])} letters."
    if match := re.search(
        r"how many (?:times does the letter )?[\"']?(\w)[\"']?(?:'s| letters)? .*?in (?:the word )?[\"'“]?(\w+)", low
    ):
        return str(match[2].count(match[1])), f"There are {match[2].count(match[1])}."
    if (match := re.search(r"(?:reverse|backwards)[^\"'“:]*[\"'“: ]+(\w+)", low)) and "write" in low:
        return match[1][::-1], match[1][::-1]
    return None


def _compared(low: str) -> Known | None:
    """Return yes or no to a comparison, or the larger of some numbers."""
    if match := re.search(rf"is ({_NUMBER}) (greater|larger|bigger|more|less|smaller) than ({_NUMBER})", low):
        more = float(match[1]) > float(match[3])
        yes = more if match[2] in {"greater", "larger", "bigger", "more"} else float(match[1]) < float(match[3])
        return ("Yes", "Yes, it is.") if yes else ("No", "No, it is not.")
    if match := re.search(
        rf"(largest|larger|greater|bigger|biggest|smallest|smaller)\b[^\d]*((?:{_NUMBER}[,\s]*(?:or|and)?\s*){{2,}})",
        low,
    ):
        numbers = [float(item) for item in re.findall(_NUMBER, match[2])]
        best = min(numbers) if match[1].startswith("small") else max(numbers)
        return f"{best:g}", f"It is {best:g}."
    if match := re.search(r"is (\d+) (?:an )?(even|odd|prime)", low):
        number = int(match[1])
        prime = number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
        yes = {"even": number % 2 == 0, "odd": number % 2 == 1, "prime": prime}[match[2]]
        return ("Yes", f"Yes, {number} is {match[2]}.") if yes else ("No", f"No, {number} is not {match[2]}.")
    return None


def separator(low: str) -> str:
    """Return what is to stand between the items of a list."""
    if re.search(r"separated by (?:a )?(?:single )?(?:space|blank)", low):
        return " "
    if re.search(r"new lines?|each on (?:its|a) (?:own|new) line|one per line|line breaks?", low):
        return "\n"
    return "," if "without spaces" in low else ", "


def enumeration(question: str) -> Known | None:
    """Return a list that was asked for: numbers in order, or names of things."""
    low = question.lower()
    if match := re.search(r"(?:count|numbers)[^.\d]*\b(\d+)\b (?:up |down )?(?:to|through|and) (\d+)", low):
        first, last = int(match[1]), int(match[2])
        step = 1 if last >= first else -1
        if abs(last - first) <= 3000:
            listed = separator(low).join(map(str, range(first, last + step, step)))
            return listed, listed
    if (match := re.search(r"count (?:up )?to (\w+)", low)) and (match[1].isdigit() or match[1] in words.NUMBERS):
        last = int(match[1]) if match[1].isdigit() else words.NUMBERS.index(match[1])
        listed = separator(low).join(map(str, range(1, min(last, 3000) + 1)))
        return listed, listed
    if match := re.search(r"(?:first|next) (\w+) (even|odd|prime|natural|positive)", low):
        count = (
            int(match[1]) if match[1].isdigit() else words.NUMBERS.index(match[1]) if match[1] in words.NUMBERS else 5
        )
        number, found = 0, list[str]()
        while len(found) < min(count, 200):
            number += 1
            prime = number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
            fits = {"even": number % 2 == 0, "odd": number % 2 == 1, "prime": prime}.get(match[2], True)
            found += [str(number)] if fits else []
        return ", ".join(found), ", ".join(found)
    if re.search(r"\b(name|list|give|write)\b", low):
        for kind, things in words.LISTS.items():
            match = re.search(
                rf"\b(\w+) (?:different |primary |common |days of the |months of the )?{kind}(?:s|es)?\b", low
            )
            if match:
                count = (
                    int(match[1])
                    if match[1].isdigit()
                    else words.NUMBERS.index(match[1])
                    if match[1] in words.NUMBERS
                    else 0
                )
                if count or match[1] in {"the", "all", "some"}:
                    listed = ", ".join(things[: count or len(things)])
                    return listed, listed + "."
    return None


def content_words(text: str) -> set[str]:
    """Return the words of a text that carry meaning, in lower case and without a plural s."""
    return {word.rstrip("s") for word in re.findall(r"[\w']+", text.lower()) if word not in _STOP}


_GIVEN = re.compile(
    r"([^.!?\n;]{2,90}?)(?:\s+(?:is|was|are|equals|reads|called|named)(?:\s+now)?[:\s]+|\s*[:=]\s*)[\"'“*`«]*([^\s\"'“”.,;!?`*»][^.,;!?\n\"”`*»]{0,60})"
)
_HAS = re.compile(r"(?i)\b(\w+ [\w-]+) has (?:the |a )?(\w+) [\"'“]*([\w-]+)")
_REMEMBER = re.compile(
    r"(?i)(?:remember|memori[sz]e|note|keep|store)[^.:\n]{0,40}?\b(word|code|number|name|key|phrase|password)\b[^\w\n\"'“]{0,3}[\"'“:]*\s*([\w-]+)"
)


def recalled(question: str, said: str) -> Known | None:
    """Return what was said before about the thing that a question asks for."""
    asked = content_words(question)
    if not asked:
        return None
    best: tuple[float, str] | None = None
    for match in _GIVEN.finditer(said):
        about = content_words(match[1])
        shared = asked & about
        if not shared:
            continue
        score = len(shared) / len(asked) - 0.02 * len(about - asked)
        if best is None or score >= best[0]:
            best = score, match[2].strip()
    for match in _HAS.finditer(said) if best is None or best[0] < 0.9 else ():
        if asked and len(asked & content_words(f"{match[1]} {match[2]}")) == len(asked):
            best = 1.0, match[3]
    noted = _REMEMBER.search(said) if best is None or best[0] < 0.45 else None
    if noted and noted[1].lower() in question.lower():
        return noted[2], f"The {noted[1].lower()} is {noted[2]}."
    if best is None or best[0] < 0.34:
        return None
    value = re.split(r"\s+(?:and|but|which|that|because|please|so)\b", best[1])[0].strip()
    return value, f"It is {value}."
