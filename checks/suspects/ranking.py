"""Weigh each setting against the clues of a failure, and rank the suspects.

The score of a setting is a sum of logarithmic weights, so evidence multiplies. A word or a reader counts by how rare it
is in the engine: that a function reads `tp_size` tells little, that it reads `speculative_eagle_topk` much. A frame
counts less the farther it is from the failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from checks.engine.feature_map import FeatureMap, plain, words_of
from checks.suspects.affinities import affinity, told
from checks.suspects.clues import Clues, Place
from checks.suspects.settings import COMMON, Setting
from checks.vocabulary import Finding, Severity

_OVERRIDDEN = 12.0  # more than any evidence of words and frames
THRESHOLD = 1.5  # a lower score is less than one rare word in the message
_MOST_PLACES = 14
_PATH = re.compile(r"\S*/\S*/\S*")  # its folders name an installation, not a feature
_LONG_NAME = 10  # characters of an attribute that is no ordinary word
_NEAR_DEPTH, _NEAR_WEIGHT = 0.35, 0.7  # a step of the engine counts nearly in full among the six innermost frames


Kind = Literal[
    "foreseen", "names", "value-quoted", "condition", "selects", "option-file", "reads", "source", "affinity",
    "word", "value-word", "related", "told",
]  # fmt: skip
"""What a piece of evidence is; `attribution_wording` has a sentence for each."""


class Weighed(Struct, frozen=True, kw_only=True):
    """A setting with its score and what speaks for it, the strongest first."""

    setting: Setting
    score: float
    reasons: tuple[Reason, ...]


class Reason(Struct, frozen=True, kw_only=True):
    """One piece of evidence that a setting leads to the failure."""

    weight: float
    kind: Kind
    place: str = ""  # file:line of a frame
    word: str = ""


def rank(
    settings: Iterable[Setting],
    clues: Clues,
    features: FeatureMap,
    findings: Iterable[Finding] = (),
    *,
    stated: frozenset[str] = frozenset(),
    overridden: bool = False,
) -> list[Weighed]:
    """Return the settings that something speaks for, the most suspicious first. Equal scores keep their order.

    `stated` are the options that the caller knows to be in the launch, if it knows them: what the log adds to them is
    the engine's own choice, which is less suspicious. `overridden`: the launch was started in spite of the findings,
    so an error among them is the first suspect.
    """
    scene = _Scene(clues, features)
    foreseen = _by_subject(findings)
    weighed = []
    for setting in settings:
        evidence = scene.reasons(setting, foreseen.get(setting.fact), overridden)
        reasons = sorted(evidence, key=lambda reason: -reason.weight)
        known = setting.fact in foreseen
        score = sum(reason.weight for reason in reasons) - (0.0 if known else _prior(setting, stated))
        if score >= THRESHOLD:
            weighed.append(Weighed(setting=setting, score=score, reasons=tuple(reasons)))
    return sorted(weighed, key=lambda item: -item.score)


def _by_subject(findings: Iterable[Finding]) -> Mapping[str, Finding]:
    worst: dict[str, Finding] = {}
    for finding in findings:
        if finding.severity is not Severity.INFO:
            worst.setdefault(finding.subject, finding)
    return worst


def _prior(setting: Setting, stated: frozenset[str]) -> float:
    """Return what a setting must overcome that nearly every launch has, or that the engine chose itself."""
    if setting.fact in _EVERYWHERE:
        return 3.0
    chosen = bool(stated) and setting.fact.startswith("flag.") and setting.fact not in stated and setting.given
    if setting.fact.startswith("model."):
        return 2.0  # an option beside it can be changed, the model cannot
    return 2.0 if not setting.given else 1.0 if chosen else 0.0


_EVERYWHERE = frozenset({
    "flag.model-path", "flag.host", "flag.port", "flag.trust-remote-code", "flag.served-model-name", "flag.log-level",
    "flag.mem-fraction-static",
})  # fmt: skip


class _Scene:
    """The clues in the forms that settings are searched in."""

    def __init__(self, clues: Clues, features: FeatureMap) -> None:
        self._features = features
        self._places = clues.places[:_MOST_PLACES]
        self._message = clues.message
        self._conditions = " ".join(clues.conditions)
        words = _PATH.sub(" ", clues.message)
        self._message_words = frozenset(map(stem, words_of(words)))
        self._plain = plain(words)
        self._depths = {id(place): 1 / (1 + 0.3 * depth) for depth, place in enumerate(self._places)}
        self._place_words: dict[str, tuple[float, Place]] = {}
        self._engine_words: dict[str, tuple[float, Place]] = {}
        for place in self._places:
            near = self._depths[id(place)] * (1.0 if place.engine else 0.5)  # a package serves several features
            for word in (*words_of(_tail(place.file)), *words_of(place.function)):
                self._place_words.setdefault(stem(word), (near, place))
                if place.engine:
                    self._engine_words.setdefault(stem(word), (near, place))

    def reasons(self, setting: Setting, finding: Finding | None, overridden: bool) -> Iterator[Reason]:
        """Yield everything that speaks for a setting."""
        if finding is not None:
            weight = (_OVERRIDDEN if overridden else 3.0) if finding.severity is Severity.ERROR else 1.0
            yield Reason(weight=weight, kind="foreseen", word=finding.id)
        yield from self._in_message(setting)
        yield from self._in_places(setting)
        yield from self._by_words(setting)

    def _in_message(self, setting: Setting) -> Iterator[Reason]:
        for name in sorted(setting.names, key=len, reverse=True):
            if _has_word(self._message, name):
                yield Reason(weight=6, kind="names", word=name)
                break
        depends = told(f"{self._message}\n{self._conditions}", setting.fact)
        if depends and not (setting.fact == "flag.tp-size" and setting.value == "1"):
            yield Reason(weight=depends, kind="told")
        condition = next((name for name in setting.attributes if _has_word(self._conditions, name.lstrip("$"))), "")
        if condition:
            yield Reason(weight=5, kind="condition", word=condition)
        value = setting.value
        path = setting.path
        if len(path) > 3 and path in self._message:
            yield Reason(weight=5, kind="value-quoted", word=path)
        elif value.isdigit() and _has_word(self._message, value):
            weight = 1.5 + 0.5 * len(value) if len(value) > 1 else 1.0 if len(self._message) < 200 else 0.0
            yield Reason(weight=weight, kind="value-quoted", word=value)
        elif len(setting.plain_value) > 3 and setting.plain_value not in COMMON and not value.isdigit():
            if _has_word(self._message, value):
                yield Reason(weight=3, kind="value-quoted", word=value)
            elif len(setting.plain_value) > 5 and setting.plain_value in self._plain:
                yield Reason(weight=2, kind="value-quoted", word=value)

    def _in_places(self, setting: Setting) -> Iterator[Reason]:
        best: dict[str, Reason] = {}
        for place in self._places:
            for reason in self._at(setting, place):
                if reason.kind not in best or best[reason.kind].weight < reason.weight:
                    best[reason.kind] = reason
        yield from best.values()

    def _at(self, setting: Setting, place: Place) -> Iterator[Reason]:
        depth, where = self._depths[id(place)], place.where
        used = next((name for name in setting.attributes if _has_word(place.source, name.lstrip("$"))), "")
        if len(used) > 3:
            yield Reason(weight=(4 if len(used) > _LONG_NAME or "_" in used else 2) * depth, kind="source", place=where)
        depends = affinity(place.function, setting.fact, self._message)
        if depends and not (setting.fact == "flag.tp-size" and setting.value == "1"):
            near = max(depth, _NEAR_WEIGHT) if depth > _NEAR_DEPTH else depth
            yield Reason(weight=depends * near, kind="affinity", place=where, word=place.function)
        if not place.engine:
            return
        values = self._features.values.get(place.file, frozenset())
        if setting.chooses and setting.plain_value in values:
            yield Reason(weight=6 * depth / len(values) ** 0.5, kind="selects", place=where, word=setting.value)
        if not self._features.options.get(place.file, frozenset()).isdisjoint(setting.attributes):
            yield Reason(weight=3 * depth, kind="option-file", place=where)
        settings = self._features.settings_at(place.file, place.line, place.function)
        read = next((name for name in setting.attributes if name in settings), "")
        if read:
            weight = 4 * depth * self._features.distinctness(read) / len(settings) ** 0.5
            yield Reason(weight=weight, kind="reads", place=where)

    def _by_words(self, setting: Setting) -> Iterator[Reason]:
        named = [list(self._matched(words, "word", 2.5)) for words in setting.spellings or (setting.words,)]
        yield from max(named, key=lambda found: sum(reason.weight for reason in found))
        yield from self._matched(setting.value_words, "value-word", 2.5)
        # what a library calls its variable is chosen by hand; the help text of an option also has ordinary words
        yield from self._matched(setting.related, "related", 2.5 if setting.fact.startswith("env.") else 1.0)

    def _located(self, word: str, kind: Kind) -> tuple[float, Place] | None:
        """Return the weight and place of a word in the frames; a format such as `fp4` may be a part of a name."""
        # an ordinary word of a help text is in the paths of many libraries by chance
        words = self._engine_words if kind == "related" else self._place_words
        exact = words.get(stem(word))
        if exact or kind != "value-word" or not _has_digit(word):
            return exact
        return next((place for name, place in self._place_words.items() if word in name), None)

    def _is_said(self, word: str, kind: Kind) -> bool:
        part = kind == "value-word" and _has_digit(word) and len(word) > 2
        return stem(word) in self._message_words or (part and any(word in said for said in self._message_words))

    def _matched(self, words: frozenset[str], kind: Kind, scale: float) -> Iterator[Reason]:
        """Yield the words of a group in the message and in the frames; each counts by the share of the group it is."""
        rarities = {word: self._features.rarity(word) for word in words}
        whole = sum(rarities.values()) ** 0.5 if kind != "related" else 1.0
        in_message = {word for word in words if self._is_said(word, kind)}
        if in_message and whole:
            total = min(sum(rarities[word] for word in in_message) / whole, 1.5)
            yield Reason(weight=scale * total, kind=kind, word=max(in_message, key=lambda word: rarities[word]))
        located = {word: place for word in words if (place := self._located(word, kind))}
        if located and whole:
            total = min(sum(rarities[word] * depth for word, (depth, _) in located.items()) / whole, 1.5)
            best = max(located, key=lambda word: rarities[word] * located[word][0])
            yield Reason(weight=scale * total, kind=kind, place=located[best][1].where, word=best)


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


def stem(word: str) -> str:
    """Return a word without the commonest endings, so that `graphs` is `graph` and `parallelism` is `parallel`."""
    for ending in ("s", "ization", "ism", "ing", "ed", "er", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
    return word


def _has_word(text: str, word: str) -> bool:
    """Return whether a text contains a word; as a part of a path it names a folder, not a setting."""
    return bool(text) and word in text and re.search(rf"(?<![\w/-]){re.escape(word)}(?![\w/-])", text) is not None


def _tail(file: str) -> str:
    """Return the last two parts of a path: folders far above it name the product, not the feature."""
    return "/".join(file.rsplit("/", 2)[-2:]).removesuffix(".py")
