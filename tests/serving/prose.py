"""Fluent text without end: what the model writes where no short answer is due."""

from __future__ import annotations

import zlib

Choice = tuple[str, float]

_ENGLISH = (
    (
        "In the early morning", "Before the storm", "Every evening", "After a long day", "On the second day",
        "Late in the summer", "When the fog came in", "At the end of the road", "For a long time", "By the old gate",
        "Some years later", "In the middle of the night", "As the sun went down", "One day in winter",
        "Not far from the harbour", "Behind the town hall", "While the others slept", "Once the rain had stopped",
    ),
    (
        "the old keeper", "a young teacher", "the baker's daughter", "my uncle", "the captain", "a tired farmer",
        "the last sailor", "her brother", "the village doctor", "a small boat", "the quiet student", "an old friend",
        "the woman from the island", "the night watch", "a boy with a lantern", "the new engineer", "his sister",
    ),
    (
        "carried the heavy lamp up the narrow stairs", "wrote a long letter to the people of the valley",
        "looked across the water and waited for a sign", "found a broken key under the kitchen table",
        "told the children a story about the sea", "walked along the shore until the light was gone",
        "opened the window and listened to the wind", "drew a map of every path through the forest",
        "bought fresh bread and a little milk", "learned how to build a strong bridge",
        "kept a small garden behind the house", "asked the same question once more",
        "sold the horse and bought a better boat", "taught the others to read the weather",
        "planted three apple trees on the hill", "forgot the name of the street",
        "counted the ships that came into the harbour", "held the rope and called for help",
        "painted the front door in a warm yellow", "sang an old song that everyone knew",
    ),
    (
        "", ", and nobody was surprised", ", because there was still enough time", ", although it was very cold",
        ", as it had always been done", " and felt glad to be home", ", while the town was still asleep",
        " without a word", ", which made the whole family laugh", " and then went back to work",
        ", and that was the start of a long journey", " with great care", ", just as the bell began to ring",
    ),
)  # fmt: skip
_GERMAN = (
    ("Am frühen Morgen", "Nach dem Regen", "Jeden Abend", "Im letzten Sommer", "Später am Tag", "Eines Nachts"),
    ("ging der alte Wärter", "kam die junge Lehrerin", "lief ein müder Bauer", "fuhr der Kapitän", "zog meine Tante"),
    ("langsam zum Hafen", "mit einer schweren Lampe durch die Stadt", "über die schmale Brücke", "in das kleine Dorf",
     "zurück nach Hause", "durch den grünen Wald", "an das Ufer des Flusses"),
    ("", ", und niemand war überrascht", ", weil noch genug Zeit war", ", obwohl es sehr kalt war", " und lachte"),
)  # fmt: skip
_FRENCH = (
    ("Tôt le matin", "Après la pluie", "Chaque soir", "Pendant l'été", "Plus tard", "Un jour d'hiver"),
    ("le vieux gardien", "la jeune maîtresse", "un marin fatigué", "mon oncle", "la fille du boulanger"),
    ("marchait vers le port", "portait une lampe très lourde", "traversait le petit pont", "écrivait une longue lettre",
     "regardait la mer sans rien dire", "rentrait à la maison"),
    ("", ", et personne n'était surpris", ", car il restait du temps", " malgré le froid", " en souriant"),
)  # fmt: skip
_SPANISH = (
    ("Por la mañana", "Después de la lluvia", "Cada tarde", "En el verano", "Más tarde", "Una noche"),
    ("el viejo farero", "la joven maestra", "un marinero cansado", "mi tío", "la hija del panadero"),
    ("caminaba hacia el puerto", "llevaba una lámpara muy pesada", "cruzaba el puente pequeño",
     "escribía una carta larga", "miraba el mar en silencio", "volvía a casa"),
    ("", ", y nadie se sorprendió", ", porque aún había tiempo", " a pesar del frío", " con una sonrisa"),
)  # fmt: skip
_CHINESE = (
    ("清晨，", "雨后，", "每天晚上，", "夏天的时候，", "后来，", "有一天夜里，"),
    ("老守塔人", "年轻的老师", "疲惫的水手", "我的叔叔", "面包师的女儿"),
    ("慢慢走向港口", "提着沉重的灯", "穿过狭窄的小桥", "写了一封长信", "静静地看着大海", "回到了家里"),
    ("", "，没有人感到惊讶", "，因为还有时间", "，虽然天气很冷", "，脸上带着微笑"),
)
_TABLES = {"en": _ENGLISH, "de": _GERMAN, "fr": _FRENCH, "es": _SPANISH, "zh": _CHINESE}
_ABOUT = (
    "The {topic} is something that many people think about.",
    "There is more to say about the {topic} than most books do.",
    "A good way to understand the {topic} is to look at it slowly.",
    "People have told stories about the {topic} for a long time.",
    "What makes the {topic} so useful is that it is easy to learn.",
    "Everyone in the village has an idea of what the {topic} means.",
)


def crc(*parts: object) -> int:
    """Return a stable number for any parts."""
    value = zlib.crc32("\x1f".join(map(str, parts)).encode())
    # a checksum is linear: without mixing, equal differences of the parts would show as equal differences here
    value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return value ^ value >> 16


def unit(*parts: object) -> float:
    """Return a stable number from 0 to 1 for any parts."""
    return crc(*parts) / 2**32


def sentence(language: str, *key: object) -> str:
    """Return one sentence; the same for the same key."""
    openers, subjects, deeds, ends = _TABLES[language]
    seed = crc(language, *key)
    parts = []
    for number, table in enumerate((openers, subjects, deeds, ends)):
        parts.append(table[crc(seed, number) % len(table)])
    if language == "zh":
        return "".join(parts) + "。"
    joint = ", " if language == "en" else " "
    return f"{parts[0]}{joint}{parts[1]} {parts[2]}{parts[3]}."


SLOTS = 4
"""The parts of a sentence: opening, subject, deed and end."""


def choices(language: str, number: int, *key: object) -> tuple[Choice, ...]:
    """Return the ways in which open text may go on: the parts of its sentences, four to a sentence.

    The margins between them are drawn from 0 to 2 nats, as they are in a trained model: a few are near ties.
    """
    slot = number % SLOTS
    table = _TABLES[language][slot]
    seed = crc(language, number, *key)
    picked = [table[(seed + option * (1 + seed % (len(table) - 1))) % len(table)] for option in range(6)]
    blank = "" if language == "zh" or number == 0 else " "
    stop = "。" if language == "zh" else "."
    texts = [f"{text}{stop}" if slot == SLOTS - 1 else f"{blank}{text}" for text in picked]
    if slot == 0 and language == "en":
        texts = [f"{text}," for text in texts]
    return weighted(tuple(dict.fromkeys(texts)), seed)


def about(topic: str, *key: object) -> tuple[Choice, ...]:
    """Return sentences about a topic that open a text."""
    return weighted(tuple(text.format(topic=topic) for text in _ABOUT), crc("about", *key))


def weighted(texts: tuple[str, ...], seed: int) -> tuple[Choice, ...]:
    """Return alternatives with the weights that a model may give them."""
    weights = [2.718 ** (-2 * unit("margin", seed, place)) for place in range(len(texts))]
    return tuple((text, weight / sum(weights)) for text, weight in zip(texts, weights, strict=True))


def length_wanted(request: str) -> int:
    """Return how many sentences an open request is answered with."""
    low = request.lower()
    if any(word in low for word in ("essay", "story", "detail", "long", "article", "500", "1000", "chapter")):
        return 40
    if any(word in low for word in ("one sentence", "a sentence", "short", "briefly", "one line")):
        return 1
    return 5 + crc(low) % 5
