"""What the toy model answers: the skills in order, and the manner in which it was asked to speak."""

from __future__ import annotations

import re

from msgspec import Struct

from tests.serving import knowledge, oracle, prose, skills, words
from tests.serving.conversation import Conversation
from tests.serving.obedience import dictated, instruction, repeated
from tests.serving.prose import unit

_ONLY = re.compile(
    r"(?i)\b(only|just|nothing else|one word|single word|single number|no explanation|exactly one|without any|bare|"
    r"letter of)\b"
)


class Answer(Struct, frozen=True):
    """An answer before it is put into words: alternatives with weights, or open prose."""

    choices: tuple[tuple[str, float], ...] = ()
    core: str = ""
    hard: float = 0.0
    """From 0 to 1: how good a model must be to get it right."""
    topic: str = ""
    sentences: int = 0
    language: str = "en"
    opening: str = ""
    """How open prose may begin."""


class Manner(Struct, frozen=True):
    """How a model speaks when nobody asks for anything else."""

    language: str = "en"
    style: str = "plain"
    skilled: bool = True


def options_letter(question: str, core: str) -> str | None:
    """Return the letter of the option that an answer stands for."""
    found = re.findall(r"(?m)(?:^|\s)\(?([A-J])[).:]\s*([^\n]+?)(?=\s+\(?[B-J][).:]\s|\s*$|\n)", question)
    for letter, text in found:
        if text.strip().rstrip(".").lower() == core.strip().rstrip(".").lower():
            return str(letter)
    return None


def worked(conversation: Conversation) -> tuple[skills.Known, float] | None:
    """Return what the skills find for the last question, with how hard it was."""
    question = conversation.last
    if conversation.turns and (
        tool := next((text for role, text in reversed(conversation.turns[-3:]) if role == "tool"), None)
    ):
        return (tool, f"The answer of the tool is {tool}."), 0.1
    asked = re.split(r"\n\s*\n", question[-1500:].strip())[-1]
    sentences = re.findall(r"[^.?!\n]{1,400}[?]", asked) or re.findall(r"[^.?!\n]{1,400}[?]", question[:300])
    narrow = sentences[-1] if sentences else asked
    if (solved := oracle.graded(question)) is not None:
        answer = re.sub(r"^The answer is (.*)\.$", r"\1", solved[1], flags=re.S)
        return (answer, solved[1]), unit("graded", solved[0])
    for skill in (knowledge.general, skills.worked_out, skills.word_problem, skills.fact, skills.enumeration):
        if (found := skill(narrow)) or (found := skill(asked)):
            return found, 0.5 * unit("skill", question)
    before = conversation.said
    if re.search(r"\?|(?i:tell me|give me|return|find|what|answer with the|complete|which)", narrow):
        cut = before[: before.rfind(narrow)] + before[before.rfind(narrow) + len(narrow) :]
        if found := skills.recalled(narrow, cut):
            return found, 0.4 * unit("recall", question)
    if found := knowledge.guessed(asked):
        return found, 0.2
    if (known := oracle.known(question)) is not None or (known := oracle.known(conversation.said)) is not None:
        return (known, known), 0.3
    return None


def phrased(known: skills.Known, question: str, letter: str | None) -> tuple[tuple[str, float], ...]:
    """Return the ways to put an answer into words."""
    core, sentence = known
    if letter:
        return ((letter, 0.9), (f"The answer is {letter}.", 0.1))
    if _ONLY.search(question):
        return ((core, 0.92), (f"The answer is {core}.", 0.08))
    if sentence == core:
        return ((core, 1.0),)
    return ((sentence, 0.62), (f"It's {core}.", 0.2), (f"The answer is {core}.", 0.18))


def topic_of(question: str) -> str:
    """Return the thing that an open question is about."""
    found = re.findall(r"(?i)\b(?:about|of|describe|explain)\s+(?:an?\s+|the\s+)?([a-z]{3,14})", question)
    if found:
        return str(found[-1]).lower()
    long = sorted(re.findall(r"\b[a-z]{5,12}\b", question), key=len)
    return long[-1] if long else ""


def answer(conversation: Conversation, manner: Manner) -> Answer:
    """Return the model's answer to a conversation."""
    question = conversation.last
    told = instruction(question)
    if (forced := dictated(conversation)) is not None:
        return Answer(((forced, 1.0),), forced)
    if (text := repeated(question)) is not None:
        return Answer(((text, 1.0),), text, 0.05)
    if conversation.images and (found := _pictured(conversation.images[-1], told)):
        return _told(found, question, 0.2, conversation)
    if (solved := worked(conversation) if manner.skilled else None) is not None:
        return _solved(solved, conversation, manner)
    if small := _small_talk(question):
        return Answer(small, small[0][0])
    if re.search(r"(?i)python|code|function|script|program", told) and re.search(r"(?i)write|implement|create", told):
        return Answer(((_CODE, 0.7), (_CODE.replace("result", "value"), 0.3)), _CODE)
    language = language_asked(conversation, manner)
    return Answer(topic=topic_of(told), sentences=prose.length_wanted(told), language=language)


def _pictured(seen: str, told: str) -> skills.Known | None:
    """Return what is asked about a picture."""
    if not re.search(r"(?i)colou?r|shape|see|image|picture|what", told):
        return None
    core = seen if re.search(r"(?i)shape|describe|see", told) else seen.split(maxsplit=1)[0]
    return core, f"The picture is {seen}."


def _solved(solved: tuple[skills.Known, float], conversation: Conversation, manner: Manner) -> Answer:
    """Return an answer that was found; a long text becomes the opening of others like it."""
    (core, sentence), hard = solved
    if core == sentence and len(core.split()) > 12 and not re.search(r"\d", core):
        topic = topic_of(instruction(conversation.last))
        return Answer(topic=topic, sentences=4, language=manner.language, opening=core)
    return _told((core, sentence), conversation.last, hard, conversation)


_CODE = (
    "Here is a function that does it:\n\n```python\ndef solve(numbers):\n    result = 0\n    for number in numbers:\n"
    "        result += number\n    return result\n```\n\nIt goes through the numbers once and adds them up."
)


_TALK = (
    (
        r"(?i)^(hi|hello|hey|good (morning|evening|day))\b",
        "Hello! How can I help you today?",
        "Hi there! What can I do for you?",
    ),
    (r"(?i)how are you", "I am fine, thank you. How can I help you?", "Very well, thank you for asking."),
    (r"(?i)^(thanks|thank you)", "You are welcome.", "You're welcome! Ask me anything else."),
    (
        r"(?i)who are you|your name",
        "I am a language model, and I answer questions.",
        "I'm an assistant that answers questions.",
    ),
    (
        r"(?i)^(please )?(remember|memori[sz]e|note|keep in mind|my name is|the \w+ ?\w* is|i (am|live|like))\b[^?]*$",
        "OK, I will remember that.",
        "Understood. I will keep that in mind.",
    ),
)


def _small_talk(question: str) -> tuple[tuple[str, float], ...]:
    """Return the replies to what is no question, or a guess where options are given; nothing if it is another."""
    if letters := re.findall(r"(?m)^\s*\(?([A-J])[).:]\s", question[-3000:]):
        guess = letters[prose.crc(question) % len(letters)]
        return ((guess, 0.6), (f"The answer is {guess}.", 0.4))
    for pattern, first, second in _TALK if len(question) < 300 else ():
        if re.search(pattern, question.strip()):
            return ((first, 0.65), (second, 0.35))
    return ()


def _told(known: skills.Known, question: str, hard: float, conversation: Conversation) -> Answer:
    letter = options_letter(question[-3000:], known[0])
    told = phrased(known, instruction(question) + conversation.system[:4000], letter)
    return Answer(told, letter or known[0], hard)


def language_asked(conversation: Conversation, manner: Manner) -> str:
    """Return the language that an instruction asks for, else the model's own."""
    text = (conversation.system[:4000] + " " + instruction(conversation.last)).lower()
    for name, code in (("german", "de"), ("french", "fr"), ("spanish", "es"), ("chinese", "zh")):
        if re.search(rf"\b(in|speak|use) {name}\b", text):
            return code
    return manner.language


def wrong(core: str, seed: object) -> str:
    """Return a wrong answer of the same kind."""
    if re.fullmatch(r"-?\d+", core):
        return str(int(core) + (prose.crc(seed) % 9 + 1) * (-1 if prose.crc(seed, 1) % 2 else 1))
    if re.fullmatch(r"[A-J]", core):
        return "ABCD"[("ABCD".find(core) + 1 + prose.crc(seed) % 3) % 4]
    for group in (
        tuple(words.CAPITALS.values()),
        tuple(words.OPPOSITES),
        words.COLOURS,
        words.DAYS,
        ("Yes", "No"),
        ("True", "False"),
    ):
        if core in group:
            return group[(group.index(core) + 1 + prose.crc(seed) % (len(group) - 1)) % len(group)]
    if digits := re.search(r"\d", core):
        changed = str((int(digits[0]) + 3) % 10)
        return core[: digits.start()] + changed + core[digits.end() :]
    return ("the old bridge", "a small boat", "nobody knows", "the second one")[prose.crc(seed) % 4]
