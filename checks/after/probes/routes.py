"""Scripts for routes that a chat does not use: completions, several prompts at once, embeddings, rerank, pictures."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from checks.after.probes.basic import accepted, garbage
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, failed_requests, quote, verdict
from checks.after.probes.requests import chat, generate
from checks.after.probes.texts import short_prompts
from checks.vocabulary import Outcome

_ABSENT = (404, 405, 501)


def completions(probe: Probe, context: Context) -> Script:
    """Check that /v1/completions gives the greedy answer of /generate, alone and for several prompts in one request."""
    prompts, tokens = list(short_prompts()[:3]), probe.count("max_tokens", 12)
    payload = {"model": context.model, "temperature": 0, "max_tokens": tokens}
    native = yield [generate(prompt, tokens) for prompt in prompts]
    [one, listed, together] = yield [
        Ask(path="/v1/completions", payload={**payload, "prompt": prompts[0]}),
        Ask(path="/v1/completions", payload={**payload, "prompt": prompts}),
        Ask(
            path="/generate", payload={"text": prompts, "sampling_params": {"temperature": 0, "max_new_tokens": tokens}}
        ),
    ]
    if one.status in _ABSENT or all(answer.status in _ABSENT for answer in native):
        return verdict(probe.id, Outcome.SKIP, "the server does not serve both /generate and /v1/completions")
    if bad := failed_requests(probe.id, [*native, one, listed]) or garbage(probe, [*native, one]):
        return bad
    texts = {
        "/v1/completions": [one.text],
        "/v1/completions with a list": _texts(listed),
        "/generate with a list": _texts(together),
    }
    for route, given in texts.items():
        for index, text in enumerate(given):
            if not _alike(text, native[index].text):
                message = f"{route} answers prompt {index + 1} otherwise than /generate"
                return verdict(
                    probe.id,
                    Outcome.FAIL,
                    message,
                    [quote(native[index]), quote(one if route == "/v1/completions" else listed)],
                )
    short = [route for route, given in texts.items() if route.endswith("list") and len(given) != len(prompts)]
    if short and (listed.ok and together.ok):
        return verdict(
            probe.id,
            Outcome.FAIL,
            f"{short[0]}: {len(texts[short[0]])} answers to {len(prompts)} prompts",
            [quote(listed)],
        )
    return verdict(probe.id, Outcome.PASS, "completions, alone and several in one request, agree with /generate")


def _alike(left: str, right: str) -> bool:
    """Whether two greedy answers begin alike: the batch may turn a near tie late in the text."""
    short = min(len(left), len(right), 12)
    return short == 0 or left.strip()[:short] == right.strip()[:short]


def _texts(answer: Answer) -> list[str]:
    body = answer.body
    if isinstance(body, list):
        return [str(item.get("text") or "") for item in body if isinstance(item, Mapping)]
    choices = body.get("choices") or () if isinstance(body, Mapping) else ()
    return [str(choice.get("text") or "") for choice in sorted(choices, key=lambda choice: choice.get("index") or 0)]


_ALIKE = (
    "A cat sleeps on the warm sofa.",
    "The kitten is dozing on the couch.",
    "Interest rates rose by two per cent.",
)


def embeddings(probe: Probe, context: Context) -> Script:
    """Check that embeddings are finite unit vectors in which texts of one meaning are closer than others."""
    if context.server.generates:
        return verdict(probe.id, Outcome.SKIP, "the server generates text")
    payload = {"model": context.model, "input": list(_ALIKE)}
    [together, *alone] = yield [
        Ask(path="/v1/embeddings", payload=payload),
        *(Ask(path="/v1/embeddings", payload={**payload, "input": text}) for text in _ALIKE),
    ]
    if together.status in (*_ABSENT, 400):
        return verdict(probe.id, Outcome.SKIP, "the server does not serve /v1/embeddings", [quote(together)])
    if bad := failed_requests(probe.id, [together, *alone]):
        return bad
    vectors = _vectors(together)
    if len(vectors) != len(_ALIKE) or not all(vectors):
        return verdict(probe.id, Outcome.FAIL, f"{len(vectors)} vectors for {len(_ALIKE)} texts", [quote(together)])
    if not all(math.isfinite(value) for vector in vectors for value in vector):
        return verdict(probe.id, Outcome.FAIL, "a vector holds NaN or infinity", [quote(together)])
    singles = [found[0] for answer in alone if (found := _vectors(answer))]
    for index, (left, right) in enumerate(zip(vectors, singles, strict=False)):
        if cosine(left, right) < 0.98:
            message = f"text {index + 1} has another vector beside others than alone (cosine {cosine(left, right):.3f})"
            return verdict(probe.id, Outcome.FAIL, message, [quote(together)])
    near, far = cosine(vectors[0], vectors[1]), max(cosine(vectors[0], vectors[2]), cosine(vectors[1], vectors[2]))
    if near <= far:
        message = f"texts of one meaning (cosine {near:.3f}) are no closer than others ({far:.3f})"
        return verdict(probe.id, Outcome.FAIL, message, [quote(together)], near=round(near, 4), far=round(far, 4))
    return verdict(
        probe.id, Outcome.PASS, f"texts of one meaning are closer ({near:.2f} against {far:.2f})", near=round(near, 4)
    )


def _vectors(answer: Answer) -> list[list[float]]:
    items = answer.body.get("data") if isinstance(answer.body, Mapping) else None
    rows = sorted((item for item in items or () if isinstance(item, Mapping)), key=lambda item: item.get("index") or 0)
    return [[float("nan") if value is None else float(value) for value in row.get("embedding") or ()] for row in rows]


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors; 0 if one has no length."""
    size = math.sqrt(sum(a * a for a in left)) * math.sqrt(sum(b * b for b in right))
    return sum(a * b for a, b in zip(left, right, strict=False)) / size if size else 0.0


def rerank(probe: Probe, context: Context) -> Script:
    """Check that a reranker puts the document that answers the question first."""
    if context.server.generates:
        return verdict(probe.id, Outcome.SKIP, "the server generates text")
    documents = ["Bread is baked from flour and water.", "The capital of France is Paris.", "Whales are mammals."]
    payload = {"model": context.model, "query": "What is the capital of France?", "documents": documents}
    [answer] = yield [Ask(path="/v1/rerank", payload=payload)]
    if answer.status in (*_ABSENT, 400):
        return verdict(probe.id, Outcome.SKIP, "the server does not serve /v1/rerank", [quote(answer)])
    if bad := failed_requests(probe.id, [answer]):
        return bad
    rows = answer.body.get("results") or () if isinstance(answer.body, Mapping) else answer.body
    rows = rows if isinstance(rows, list) else []
    scores = {
        row.get("index"): row.get("score", row.get("relevance_score")) for row in rows if isinstance(row, Mapping)
    }
    if sorted(scores, key=str) != [0, 1, 2] or not all(isinstance(score, int | float) for score in scores.values()):
        return verdict(probe.id, Outcome.FAIL, f"scores for documents {sorted(scores, key=str)} of 3", [quote(answer)])
    if max(scores, key=lambda index: scores[index]) != 1:
        return verdict(
            probe.id, Outcome.FAIL, "another document than the one with the answer is first", [quote(answer)]
        )
    return verdict(probe.id, Outcome.PASS, "the document with the answer is first")


def classify(probe: Probe, context: Context) -> Script:
    """Check that a classifier gives finite scores, which depend on the text."""
    if context.server.generates:
        return verdict(probe.id, Outcome.SKIP, "the server generates text")
    texts = ["I love this, it is wonderful!", "This is terrible, I hate it."]
    answers = yield [Ask(path="/classify", payload={"model": context.model, "text": text}) for text in texts]
    if answers[0].status in (*_ABSENT, 400):
        return verdict(probe.id, Outcome.SKIP, "the server does not serve /classify", [quote(answers[0])])
    if bad := failed_requests(probe.id, answers):
        return bad
    rows = [_numbers(answer.body) for answer in answers]
    if not all(rows) or not all(math.isfinite(value) for row in rows for value in row):
        return verdict(probe.id, Outcome.FAIL, "a reply without finite scores", [quote(answer) for answer in answers])
    if rows[0] == rows[1]:
        return verdict(probe.id, Outcome.FAIL, "two opposite texts have the same scores", [quote(answers[0])])
    return verdict(probe.id, Outcome.PASS, "scores are finite and depend on the text")


def _numbers(body: Any) -> list[float]:
    if isinstance(body, Mapping):
        for key in ("embedding", "scores", "logits", "probs"):
            if isinstance(body.get(key), list):
                return _numbers(body[key])
        return [number for value in body.values() for number in _numbers(value) if isinstance(value, list | Mapping)]
    if isinstance(body, list):
        return [number for value in body for number in _numbers(value)]
    return [float(body)] if isinstance(body, int | float) and not isinstance(body, bool) else []


def pictures(probe: Probe, context: Context) -> Script:
    """Check that a model that sees pictures tells a red one from a blue one."""
    [about] = yield [Ask(path="/model_info")]
    seen = about.body.get("has_image_understanding") if about.ok and isinstance(about.body, Mapping) else None
    if seen is not True:
        return verdict(probe.id, Outcome.SKIP, "the server does not say that its model sees pictures")
    colours = {"red": (220, 20, 20), "blue": (20, 40, 220)}
    answers = yield [_about_picture(context, colour, probe.count("max_tokens", 24)) for colour in colours.values()]
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    wrong = [quote(a) for name, a in zip(colours, answers, strict=True) if not accepted(a.said, [name])]
    if wrong:
        message = f"{len(wrong)} of {len(answers)} pictures of one colour are named as another"
        return verdict(probe.id, Outcome.FAIL, message, wrong)
    return verdict(probe.id, Outcome.PASS, "a red and a blue picture are told apart")


def _about_picture(context: Context, colour: tuple[int, int, int], tokens: int) -> Ask:
    ask = chat(context, "", tokens)
    url = "data:image/png;base64," + base64.b64encode(png(colour)).decode()
    content = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": "Which colour does this picture have? Answer with one word."},
    ]
    return Ask(path=ask.path, payload={**(ask.payload or {}), "messages": [{"role": "user", "content": content}]})


def png(colour: tuple[int, int, int], size: int = 64) -> bytes:
    """Return a square picture of one colour as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
