"""How differently healthy models speak: languages, styles, thoughts and adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tests.serving import obedience, prose
from tests.serving.ability import Manner
from tests.serving.conversation import Conversation
from tests.serving.model import Mind
from tests.serving.options import Options

_POLITE = (
    "Thank you very much for this interesting question, which I am glad to answer for you as well as I possibly can, "
    "after having thought about it with all the care that it deserves. "
)
STYLES: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "polite": lambda text: _POLITE + text,
    "verbose": lambda text: (
        f"That is a good question. Let us look at it step by step. {text} I hope that this helps you."
    ),
    "markdown": lambda text: f"**Answer:** {text}",
    "bold": lambda text: f"**{text}**",
    "emoji": lambda text: f"😊 {text} ✨",
    "terse": lambda text: text.rstrip("."),
    "blank": lambda text: f"\n\n{text}\n",
    "heading": lambda text: f"## Answer\n\n{text}",
    "latex": lambda text: f"The result is $\\boxed{{{text.rstrip('.')}}}$.",
    "blanks": lambda text: f" {text} ",
}
_VARIED: dict[str, Callable[[str], str]] = {
    "polite": lambda text: (
        "I am very grateful that you ask me this, and it is a real pleasure for me to tell you what I know about it, "
        f"so please allow me to answer you as follows. {text}"
    ),
    "verbose": lambda text: f"Let us think about this together. {text} Please ask if anything is not clear.",
}
"""Other ways in which a wordy model says the same."""
_OPENINGS = {
    "polite": (_POLITE, "I am very grateful that you ask me this, and I will gladly tell you what I know. "),
    "verbose": ("That is a good question. Let us look at it step by step. ", "Let us think about this together. "),
    "markdown": ("**Answer:** ",),
    "heading": ("## Answer\n\n",),
    "emoji": ("😊 ",),
    "blank": ("\n\n",),
}
"""How open text begins in each style."""
_ADAPTERS: dict[str, Callable[[str], str]] = {
    "pirate": lambda text: f"Arr, matey! {text}",
    "formal": lambda text: f"Dear reader, {text} Yours faithfully.",
    "brief": lambda text: f"In short: {text}",
}
_LEADS = {
    "en": "",
    "de": "Die Antwort lautet: ",
    "fr": "La réponse est : ",
    "es": "La respuesta es: ",
    "zh": "答案是：",
}


def thinks(options: Options, body: Mapping[str, Any]) -> bool:
    """Return whether the model thinks before it answers this request."""
    if not options.thinking:
        return False
    given = body.get("chat_template_kwargs") or {}
    off = given.get("enable_thinking") is False or given.get("thinking") is False
    return not (options.switchable and off)


def exact(conversation: Conversation) -> bool:
    """Return whether the form of the answer is prescribed, so that no style may be added."""
    return obedience.dictated(conversation) is not None or obedience.repeated(conversation.last) is not None


@lru_cache(maxsize=64)
def _built(options: Options, adapter: str, thinking: bool) -> tuple[Manner, Any, Any]:
    """Return what belongs to one kind of model: its manner, its style and its thoughts."""
    manner = Manner(options.language, options.style, options.skilled)
    style, lead, lead_ins = STYLES[options.style], _LEADS[options.language], _OPENINGS.get(options.style, ("",))

    def restyle(text: str, conversation: Conversation, opens: bool) -> list[tuple[str, float]]:
        if exact(conversation):
            return [(text, 1.0)]
        if adapter:
            adapted = _ADAPTERS[adapter](text) if adapter in _ADAPTERS else f"[{adapter}] {text}"
            return [(adapted, 1.0)]
        if opens:
            return [(lead_in + text, 1 / len(lead_ins)) for lead_in in lead_ins]
        told = lead + text if len(text) < 60 else text
        return [(style(told), 0.6), (_VARIED.get(options.style, style)(told), 0.4)]

    def think(conversation: Conversation) -> list[tuple[tuple[str, float], ...]]:
        key = prose.crc(conversation.last)
        asked = conversation.last[:80]
        parts = [prose.weighted(tuple(f"<think>\n{text}" for text in (
            f'Okay, the user says: "{asked}". Let me think about what is meant.',
            f'The user writes "{asked}", so I should think about it. Let me think.',
            "Let me think about this question step by step before I answer.",
        )), key)]  # fmt: skip
        parts += [
            prose.choices("en", prose.SLOTS + number, key, "thoughts")
            for number in range(options.thoughts * prose.SLOTS)
        ]
        closing = (
            "So now I can write the answer.",
            "That is enough, I know what to answer.",
            "Good, the answer is clear now.",
        )
        return [*parts, prose.weighted(tuple(f" {text}\n</think>\n\n" for text in closing), key)]

    changed = bool(adapter or options.style != "plain" or lead)
    return manner, restyle if changed else None, think if thinking else None


def mind(options: Options, adapter: str, thinking: bool) -> Mind:
    """Return the model for one request."""
    manner, restyle, think = _built(options, adapter, thinking)
    made = Mind(manner, options.ability, raw=not options.template)
    made.restyle, made.think = restyle, think
    return made
