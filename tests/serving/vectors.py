"""Embeddings, rankings, classes and scores: what servers answer that do not write."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tests.serving import vocabulary
from tests.serving.calls import Call, Refusal, Reply
from tests.serving.prose import unit
from tests.serving.skills import content_words
from tests.serving.walk import Walk

if TYPE_CHECKING:
    from tests.serving.state import State

SIZE = 96
_NOT = (
    "This model does not appear to be an embedding model by default. Please add `--is-embedding` when launching the "
    "server or try another model."
)


def embedded(text: str) -> list[float]:
    """Return the embedding of a text: near to those of texts with the same words, of length one."""
    parts = [0.3 * unit("base", number) for number in range(SIZE)]
    meant = content_words(text)
    weights = dict.fromkeys(re.findall(r"\w+|[^\w\s]", text), 0.15) | dict.fromkeys(
        re.findall(r"(?=(\w{4}))", text.lower()), 0.3
    )
    for feature, weight in (weights | dict.fromkeys(sorted(meant), 1.0) or {text: 1.0}).items():
        for number in range(8):
            parts[int(unit(feature, number) * SIZE)] += weight * (1 if unit(feature, number, "sign") > 0.5 else -1)
    length = math.sqrt(sum(part * part for part in parts))
    return [part / length for part in parts]


def cosine(first: list[float], second: list[float]) -> float:
    """Return the cosine of two vectors."""
    product = sum(one * two for one, two in zip(first, second, strict=True))
    return product / math.sqrt(sum(part**2 for part in first) * sum(part**2 for part in second))


def embeddings(state: State, call: Call) -> Reply:
    """Answer a request to /v1/embeddings."""
    if state.options.kind != "embedding":
        raise Refusal(_NOT)
    given = call.body.get("input", "")
    many = isinstance(given, list) and (not given or not isinstance(given[0], int))
    texts = [_text(item) for item in (given if many else [given])]
    counts = [len(vocabulary.encode(text)) for text in texts]
    if max(counts, default=0) > state.options.context:
        raise Refusal(
            f"The input ({max(counts)} tokens) is longer than the model's context length ({state.options.context} "
            "tokens)."
        )
    data = []
    for number, text in enumerate(texts):
        vector = state.faults("vector", embedded(text), state.at(call, (number, texts)))
        if size := call.body.get("dimensions"):
            vector = [part / math.sqrt(sum(other**2 for other in vector[:size])) for part in vector[:size]]
        data.append({"object": "embedding", "embedding": vector, "index": number})
    told = {
        "prompt_tokens": sum(counts),
        "total_tokens": sum(counts),
        "completion_tokens": 0,
        "prompt_tokens_details": None,
    }
    return Reply({"object": "list", "data": data, "model": call.body.get("model", state.options.name), "usage": told})


def _text(item: Any) -> str:
    return vocabulary.decode(item) if isinstance(item, list) else str(item)


def encode(state: State, call: Call) -> Reply:
    """Answer a request to /encode."""
    if state.options.kind != "embedding":
        raise Refusal(_NOT)
    given = call.body.get("text", "")
    texts = given if isinstance(given, list) else [given]
    made = [
        {
            "embedding": state.faults("vector", embedded(text), state.at(call, (number, texts))),
            "meta_info": {
                "id": f"{call.number}-{number}",
                "prompt_tokens": len(vocabulary.encode(text)),
                "finish_reason": None,
            },
        }
        for number, text in enumerate(texts)
    ]
    return Reply(made if isinstance(given, list) else made[0])


def rerank(state: State, call: Call) -> Reply:
    """Answer a request to /v1/rerank: the documents, the best first."""
    if state.options.kind not in {"embedding", "reranker"}:
        raise Refusal(_NOT)
    query = str(call.body.get("query", ""))
    scored = [(relevance(query, str(text)), number, text) for number, text in enumerate(call.body.get("documents", ()))]
    ranked = [
        {
            "score": score,
            "document": text,
            "index": number,
            "meta_info": {"prompt_tokens": len(vocabulary.encode(str(text)))},
        }
        for score, number, text in sorted(scored, reverse=True)
    ]
    return Reply(state.faults("vector", ranked, state.at(call, "rerank")))


def relevance(query: str, text: str) -> float:
    """Return from 0 to 1 how well a text answers a query."""
    asked, found = content_words(query), content_words(text)
    shared = len(asked & found) / max(1, len(asked))
    return 1 / (1 + math.exp(-(6 * shared - 3 + 2 * cosine(embedded(query), embedded(text)))))


def classify(state: State, call: Call) -> Reply:
    """Answer a request to /classify: a vector of logits for each text."""
    if state.options.kind not in {"classifier", "embedding", "reranker"}:
        raise Refusal(_NOT)
    given = call.body.get("text", call.body.get("input", ""))
    texts = given if isinstance(given, list) else [given]
    made = []
    for number, text in enumerate(texts):
        good = len(content_words(text) & {"good", "great", "love", "happy", "wonderful", "best", "glad", "like"})
        bad = len(content_words(text) & {"bad", "awful", "hate", "sad", "terrible", "worst", "angry", "boring"})
        logits = state.faults("vector", [bad - good + 0.1, good - bad - 0.1], state.at(call, (number, texts)))
        made.append(
            {
                "embedding": logits,
                "meta_info": {"prompt_tokens": len(vocabulary.encode(str(text))), "finish_reason": None},
            }
        )
    return Reply(made if isinstance(given, list) else made[0])


def score(state: State, call: Call) -> Reply:
    """Answer a request to /v1/score: the probability of tokens after each item."""
    body = call.body
    wanted = [int(token) for token in body.get("label_token_ids") or ()]
    if not wanted:
        raise Refusal("Label token IDs must be provided.")
    items = body.get("items") if isinstance(body.get("items"), list) else [body.get("items", "")]
    scores = []
    for item in items or ():
        first, second = (item, body.get("query", "")) if body.get("item_first") else (body.get("query", ""), item)
        walk = Walk(state.mind(state.job(call, [0], {"max_new_tokens": 0})))
        walk.read(vocabulary.encode(f"{first}{second}"))
        shares = [walk.expect().probability(token) for token in wanted]
        scores.append([share / sum(shares) for share in shares] if body.get("apply_softmax") else shares)
    return Reply({"scores": scores, "model": body.get("model", state.options.name), "usage": None, "object": "scoring"})
