"""How differently healthy models speak: languages, styles, thoughts and adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tests.serving import ability, prose
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
    "verbose": lambda text: f"That is a good question. Let us look at it step by step. {text} I hope that this helps you.",
    "markdown": lambda text: f"**Answer:** {text}",
    "bold": lambda text: f"**{text}**",
    "emoji": lambda text: f"😊 {text} ✨",
    "terse": lambda text: text.rstrip("."),
    "blank": lambda text: f"\n\n{text}\n",
    "heading": lambda text: f"## Answer\n\n{text}",
    "latex": lambda text: f"The result is $\\boxed{{{text.rstrip('.')}}}$.",
    "blanks": lambda text: f" {text} ",
}
_ADAPTERS: dict[str, Callable[[str], str]] = {
    "pirate": lambda text: f"Arr, matey! {text}",
    "formal": lambda text: f"Dear reader, {text} Yours faithfully.",
    "brief": lambda text: f"In short: {text}",
}
_LEADS = {"en": "", "de": "Die Antwort lautet: ", "fr": "La réponse est : ", "es": "La respuesta es: ", "zh": "答案是："}


def thinks(options: Options, body: Mapping[str, Any]) -> bool:
    """Return whether the model thinks before it answers this request."""
    if not options.thinking:
        return False
    given = body.get("chat_template_kwargs") or {}
    off = given.get("enable_thinking") is False or given.get("thinking") is False
    return not (options.switchable and off)


def exact(conversation: Conversation) -> bool:
    """Return whether the form of the answer is prescribed, so that no style may be added."""
    return ability.dictated(conversation) is not None or ability.repeated(conversation.last) is not None


@lru_cache(maxsize=64)
def _built(options: Options, adapter: str, thinking: bool) -> tuple[Manner, Any, Any]:
    """Return what belongs to one kind of model: its manner, its style and its thoughts."""
    manner = Manner(options.language, options.style, options.skilled)
    style, lead = STYLES[options.style], _LEADS[options.language]

    def restyle(text: str, conversation: Conversation) -> str:
        if exact(conversation):
            return text
        if adapter:
            return _ADAPTERS.get(adapter, lambda told: f"[{adapter}] {told}")(text)
        return style(lead + text if len(text) < 60 else text)

    def think(conversation: Conversation) -> str:
        key = prose.crc(conversation.last)
        told = [f'Okay, the user says: "{conversation.last[:80]}". Let me think about what is meant.']
        told += ["Wait, I should look at this once more." if number % 5 == 4 else prose.sentence("en", key, number) for number in range(options.thoughts)]
        return " ".join([*told, "So now I can write the answer."])

    changed = bool(adapter or options.style != "plain" or lead)
    return manner, restyle if changed else None, think if thinking else None


def mind(options: Options, adapter: str, thinking: bool) -> Mind:
    """Return the model for one request."""
    manner, restyle, think = _built(options, adapter, thinking)
    made = Mind(manner, options.ability, raw=not options.template)
    made.restyle, made.think = restyle, think
    return made
