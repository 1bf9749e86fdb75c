"""Scripts for what happens to text on its way: copies of odd texts, and tokens counted by two routes.

A model that copies a text perfectly but for its case, accents, quotes or blanks did not do that by itself: something on
the way changes every text alike. Token counts show a template that doubles or drops, without any ability.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Mapping

from checks.after.probes.asking import ask_until_answered, conclusion
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Script, failed_requests, quote, verdict
from checks.after.probes.requests import chat, generate, lacks_template
from checks.after.probes.texts import long_text
from checks.vocabulary import Outcome

TEXTS = (
    'McDonald said "no" to LaTeX & <b>HTML</b>',
    "Ångström, naïve café, 2 < 3 & 'x' > y",
    "one  two   three; iPhone 4711 0815, façade",
    "pneumonoultramicroscopicsilicovolcanoconiosis, ﬁve m², Ⅳ, 1️⃣",
)


def _plain(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


_CHANGES: Mapping[str, Callable[[str], str]] = {
    "upper and lower case": str.casefold,
    "accents": _plain,
    "quotes": lambda text: re.sub(r"[\"'“”‘’«»„]", "", text),
    "HTML characters": html.unescape,
    "blanks": lambda text: " ".join(text.split()),
    "every blank": lambda text: re.sub(r"\s", "", text),
}


def exact_copies(probe: Probe, context: Context) -> Script:
    """Check that no reply is a perfect copy but for one kind of character, which a model would not lose alone."""
    prompts = [f"Copy this line exactly, character by character, and write nothing else:\n{text}" for text in TEXTS]
    answers = yield from ask_until_answered(context, prompts, probe.count("max_tokens", 48), most=256)
    if bad := failed_requests(probe.id, answers):
        return bad
    said = [conclusion(answer).strip().strip("`") for answer in answers]
    exact = sum(text in reply for text, reply in zip(TEXTS, said, strict=True))
    for name, change in _CHANGES.items():
        pairs = [(text, reply) for text, reply in zip(TEXTS, said, strict=True) if text not in reply]
        altered = [reply for text, reply in pairs if change(text) in change(reply)]
        touched = sum(change(text) != text for text in TEXTS)
        if len(altered) >= 2 and len(altered) >= touched - 1:
            message = f"{len(altered)} of {len(TEXTS)} texts come back changed in their {name} only"
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in answers[:3]], exact=exact)
    before = (context.baseline.figures.get(probe.id, {}) if context.baseline else {}).get("exact")
    if before is not None and exact < float(before) - 1:
        message = f"{exact} of {len(TEXTS)} texts are copied exactly, {before:g} in the baseline"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer) for answer in answers[:3]], exact=exact)
    return verdict(
        probe.id, Outcome.PASS, f"{exact} of {len(TEXTS)} texts are copied exactly, none is changed alike", exact=exact
    )


def token_counts(probe: Probe, context: Context) -> Script:
    """Check that a text costs as many tokens in a chat as on the native route, whatever the template adds."""
    short, text = "Hello.", "Hello. " + long_text(probe.count("tokens", 300), 11)
    small, large, native_small, native = yield [
        chat(context, short, 1),
        chat(context, text, 1),
        generate(short, 1),
        generate(text, 1),
    ]
    if lacks_template(small) or not context.expect.chat:
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template")
    if bad := failed_requests(probe.id, [small, large, native_small, native]):
        return bad
    counts = [answer.prompt_tokens for answer in (small, large, native_small, native)]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return verdict(probe.id, Outcome.SKIP, "the server counts no tokens of a prompt", [quote(small)])
    in_chat, alone = known[1] - known[0], known[3] - known[2]
    if abs(in_chat - alone) > max(4, alone // 50):
        message = f"a text of {alone} tokens adds {in_chat} to a chat: the template drops, changes or doubles it"
        return verdict(probe.id, Outcome.FAIL, message, [quote(small), quote(large)])
    if not 0 < known[2] <= 12:
        message = f"`{short}` counts as {known[2]} tokens"
        return verdict(probe.id, Outcome.FAIL, message, [quote(native_small)])
    return verdict(probe.id, Outcome.PASS, f"a text counts as {alone} tokens on both routes")
