"""L. Routes that nobody asks: completions, embeddings, rankings, pictures and adapters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.serving import vectors, vocabulary
from tests.serving.asking import Asker, Body
from tests.serving.damage import bodies, mistaken, salad, setting
from tests.serving.pictures import painted
from tests.serving.planting import At, Fault, When, both, each, sampled, when
from tests.serving.prose import unit
from tests.serving.witness import strange, wrong

ALIKE = ("The cat sits on the warm stone.", "A cat sits on a warm stone.", "Stock markets fell after the report.")
Vector = list[float]


def _on(path: str) -> When:
    return lambda at: at.call.path == path


COMPLETIONS = _on("/v1/completions")


def embedded(check: Callable[[list[Vector]], bool], texts: tuple[str, ...] = ALIKE) -> Any:
    """Return a witness that reads embeddings."""

    def look(ask: Asker) -> bool:
        return check(
            [
                entry["embedding"]
                for entry in ask.json("/v1/embeddings", {"model": "default", "input": list(texts)})["data"]
            ]
        )

    return look


def _vector(change: Callable[[Vector, Any], Vector]) -> Any:
    return lambda vector, at: change(vector, at.extra)


def _unlike(vectors_: list[Vector]) -> bool:
    alike = vectors.cosine(vectors_[0], vectors_[1])
    return alike < 0.5 or alike <= vectors.cosine(vectors_[0], vectors_[2]) + 0.1


def _alone(ask: Asker) -> bool:
    """Return whether a text has another embedding alone than among others."""
    texts = [f"{ALIKE[number % 3]} {number}" for number in range(8)]
    both_ways = ask.json("/v1/embeddings", {"model": "default", "input": texts})["data"]
    for text, entry in zip(texts, both_ways, strict=True):
        alone = ask.json("/v1/embeddings", {"model": "default", "input": text})["data"][0]["embedding"]
        if vectors.cosine(alone, entry["embedding"]) < 0.99:
            return True
    return False


def _ranked(check: Callable[[list[Body]], bool]) -> Any:
    documents = ["Bread is baked in an oven.", "The harbour of Oslo is cold in winter.", "Oslo is a city by a fjord."]
    return lambda ask: check(
        ask.json("/v1/rerank", {"query": "How cold is the harbour of Oslo?", "documents": documents})
    )


def _ranking(change: Callable[[list[Body]], list[Body]]) -> Any:
    return lambda ranked, at: change(ranked) if at.extra == "rerank" else ranked


def _picture(ask: Asker, *colours: str) -> str:
    parts: list[Body] = [{"type": "image_url", "image_url": {"url": painted(colour)}} for colour in colours]
    return ask.say([{"role": "user", "content": [*parts, {"type": "text", "text": "What colour is the picture?"}]}])


def _all_colours(ask: Asker) -> bool:
    return any(colour not in _picture(ask, colour) for colour in ("red", "blue", "green", "yellow"))


def _turned(images: list[str], at: At) -> list[str]:
    """Take red for blue and blue for red, as swapped channels do."""
    swapped = {"red": "blue", "blue": "red", "yellow": "cyan", "cyan": "yellow"}
    return [" ".join(swapped.get(word, word) for word in image.split()) for image in images]


def _adapted(ask: Asker) -> bool:
    texts = [
        ask.say("What is the capital of France?", model=name)
        for name in ("default", "default:pirate", "default:formal")
    ]
    return not (texts[1].startswith("Arr") and texts[2].startswith("Dear") and texts[0].startswith("The"))


def _listed(ask: Asker) -> bool:
    prompts = [f"Question: What is the capital of {country}?\nAnswer:" for country in ("France", "Spain", "Japan")]
    texts = [choice["text"] for choice in ask.complete(prompts)["choices"]]
    return not all(city in text for city, text in zip(("Paris", "Madrid", "Tokyo"), texts, strict=True))


def _native_list(ask: Asker) -> bool:
    prompts = [f"Question: What is the capital of {country}?\nAnswer:" for country in ("France", "Spain", "Japan")]
    texts = [made["text"] for made in ask.native(prompts)]
    return not all(city in text for city, text in zip(("Paris", "Madrid", "Tokyo"), texts, strict=True))


def _ids(ask: Asker) -> bool:
    text = "Question: What is the capital of Spain?\nAnswer:"
    return bool(ask.native(vocabulary.encode(text))["text"] != ask.native(text)["text"])


def _unechoed(body: Body, at: At) -> None:
    if at.call.body.get("echo"):
        for choice in body["choices"]:
            choice["text"] = choice["text"][len(vocabulary.decode(vocabulary.encode(at.call.body["prompt"]))) :]


def _same_texts(body: Body, at: At) -> None:
    for choice in body.get("choices") or ():
        choice["text"] = body["choices"][0]["text"]


def _first_text(reply: Any, at: At) -> Any:
    if isinstance(reply.body, list):
        for body in reply.body:
            body["text"] = reply.body[0]["text"]
    return reply


def _scores(ask: Asker) -> bool:
    wanted = [vocabulary.encode(" Paris")[0], vocabulary.encode(" Rome")[0]]
    body = {"model": "default", "query": "The capital of France is", "items": [""], "label_token_ids": wanted}
    scores = ask.json("/v1/score", body)["scores"][0]
    return bool(scores[0] <= scores[1])


EMBEDDING, VISION, ADAPTERS = frozenset({"embedding"}), frozenset({"vision"}), frozenset({"adapters"})


def _strange(text: str) -> bool:
    return strange(text) > 0.3


FAULTS = (
    Fault("completions-salad", "L", "/v1/completions answers with word salad.", {"token": when(COMPLETIONS, salad)},
          witness=wrong(4, route="completions")),
    Fault("completions-sampled-salad", "L", "/v1/completions answers with salad when sampled.",
          {"token": when(both(COMPLETIONS, sampled), salad)}, rate="only sampled",
          witness=wrong(4, route="completions", temperature=0.6)),
    Fault("completions-templated", "L", "/v1/completions wraps prompts into the chat template.",
          {
              "prompt": when(
                  COMPLETIONS, lambda prompt, at: f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
              )
          },
          witness=lambda ask: ask.complete("The sea")["usage"]["prompt_tokens"] != len(vocabulary.encode("The sea"))),
    Fault("completions-wrong-each-15", "L", "One answer in 15 of /v1/completions is salad.",
          {"token": when(both(COMPLETIONS, each(15)), salad)}, rate="1/15 of one route",
          witness=wrong(100, 4, route="completions")),
    Fault("completions-echo-lost", "L", "`echo` has no effect.", {"reply": when(COMPLETIONS, bodies(_unechoed))},
          witness=lambda ask: not ask.complete("The sea is", echo=True)["choices"][0]["text"].startswith("The sea is")),
    Fault("completions-list-alike", "L", "All prompts of a list get the first one's answer.",
          {"reply": when(COMPLETIONS, bodies(_same_texts))}, witness=_listed),
    Fault("completions-limit-ignored", "L", "/v1/completions goes on past its limit.",
          {"params": when(COMPLETIONS, setting(limit=lambda limit: limit + 20))},
          witness=lambda ask: ask.complete("The sea is", max_tokens=6)["usage"]["completion_tokens"] > 6),
    Fault("native-list-alike", "L", "All prompts of a list to the engine's own route get the first one's answer.",
          {"reply": _first_text}, witness=_native_list),
    Fault("input-ids-shifted", "L", "Prompts given as tokens lose their last one.",
          {"ids": lambda ids, at: ids[:-1] if "input_ids" in at.call.body and len(ids) > 1 else ids}, witness=_ids),
    Fault("native-wrong-each-20", "L", "One answer in 20 of the engine's own route is salad.",
          {"token": when(both(_on("/generate"), each(20)), salad)}, rate="1/20 of one route",
          witness=wrong(130, 4, route="native")),
    Fault("scores-alike", "L", "/v1/score gives all tokens the same probability.",
          {
              "reply": when(
                  _on("/v1/score"),
                  bodies(lambda body, at: body.update(scores=[[0.5] * len(row) for row in body["scores"]])),
              )
          }, witness=_scores),
    Fault("embeddings-constant", "L", "All texts have the same embedding.",
          {"vector": _vector(lambda vector, _: vectors.embedded("x"))}, needs=EMBEDDING, witness=embedded(_unlike)),
    Fault("embeddings-random", "L", "Embeddings have nothing to do with the text.",
          {"vector": _vector(lambda vector, _: [unit(place, sum(vector)) - 0.5 for place in range(len(vector))])},
          needs=EMBEDDING, witness=embedded(_unlike)),
    Fault("embeddings-start-only", "L", "Only the first four words of a text count.",
          {"vector": lambda vector, at: vectors.embedded(" ".join(at.extra[1][at.extra[0]].split()[:4]))},
          needs=EMBEDDING,
          witness=embedded(
              lambda got: vectors.cosine(got[0], got[1]) > 0.999,
              ("In the early morning the baker made bread.", "In the early morning the ship was lost."),
          )),
    Fault("embeddings-nan-each-20", "L", "One embedding in 20 has NaN.",
          {"vector": when(each(20), _vector(lambda vector, _: [math.nan, *vector[1:]]))}, rate="1/20", needs=EMBEDDING,
          witness=lambda ask: any(embedded(lambda got: any(map(math.isnan, got[0])))(ask) for _ in range(130))),
    Fault("embeddings-not-normed", "L", "Embeddings do not have the length one.",
          {"vector": _vector(lambda vector, _: [17 * part for part in vector])}, needs=EMBEDDING,
          witness=embedded(lambda got: abs(sum(part**2 for part in got[0]) - 1) > 0.01)),
    Fault("embeddings-crossed", "L", "In a list of texts neighbours have swapped embeddings.",
          {"vector": lambda vector, at: vectors.embedded(at.extra[1][(at.extra[0] + 1) % len(at.extra[1])])},
          rate="only lists", needs=EMBEDDING, witness=_alone),
    Fault("embeddings-padded", "L", "In lists of more than four texts the last ones are blurred by padding.",
          {
              "vector": lambda vector, at: (
                  [part + 0.4 * (unit(place) - 0.5) for place, part in enumerate(vector)]
                  if at.extra[0] > 4
                  else vector
              )
          }, rate="lists above 4", needs=EMBEDDING, witness=_alone),
    Fault("rerank-reversed", "L", "The worst document comes first.", {"vector": _ranking(lambda ranked: ranked[::-1])},
          needs=frozenset({"reranker"}), witness=_ranked(lambda ranked: ranked[0]["score"] < ranked[-1]["score"])),
    Fault("rerank-constant", "L", "All documents have the same score.",
          {"vector": _ranking(lambda ranked: [{**one, "score": 0.5} for one in ranked])}, needs=frozenset({"reranker"}),
          witness=_ranked(lambda ranked: len({one["score"] for one in ranked}) == 1)),
    Fault("rerank-index-wrong", "L", "The index of ranked documents is that of their rank.",
          {"vector": _ranking(lambda ranked: [{**one, "index": place} for place, one in enumerate(ranked)])},
          needs=frozenset({"reranker"}), witness=_ranked(lambda ranked: [one["index"] for one in ranked] == [0, 1, 2])),
    Fault("pictures-unseen", "L", "Pictures do not reach the model.", {"images": lambda images, at: []}, needs=VISION,
          witness=_all_colours),
    Fault("pictures-first-only", "L", "Of several pictures only the first is seen.",
          {"images": lambda images, at: images[:1]}, rate="only several", needs=VISION,
          witness=lambda ask: "blue" not in _picture(ask, "red", "blue")),
    Fault("pictures-channels-swapped", "L", "The colour channels of pictures are swapped.", {"images": _turned},
          needs=VISION, witness=_all_colours),
    Fault("adapter-ignored", "L", "Adapters have no effect.", {"adapter": lambda name, at: ""}, needs=ADAPTERS,
          witness=_adapted),
    Fault("adapter-always", "L", "All requests are answered with an adapter.",
          {"adapter": lambda name, at: name or "pirate"}, needs=ADAPTERS, witness=_adapted),
    Fault("adapter-stays", "L", "The adapter of the last request stays for requests without one.",
          {
              "adapter": lambda name, at: (
                  name or at.memory.get("adapter", "") if not name else at.memory.setdefault("adapter", name) and name
              )
          }, needs=ADAPTERS,
          witness=lambda ask: _adapted(ask) or ask.say("What is the capital of France?").startswith(("Arr", "Dear"))),
    Fault("adapter-weakens", "L", "With an adapter short answers are wrong.",
          {"answer": when(lambda at: bool(at.job and at.job.adapter), mistaken)}, rate="only adapters", needs=ADAPTERS,
          witness=wrong(6, model="default:formal")),
    Fault("completions-late-salad", "L", "Long texts of /v1/completions turn into salad.",
          {"token": when(COMPLETIONS, lambda token, at: salad(token, at) if len(at.running.out) > 40 else token)},
          rate="above 40 tokens of one route",
          witness=lambda ask: _strange(ask.complete("Once upon a time", max_tokens=160)["choices"][0]["text"])),
)  # fmt: skip
