"""Faults that a proxy can make out of a correct server, by rewriting its requests and replies."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import msgspec

from tests.serving import vocabulary
from tests.serving.asking import Asker
from tests.serving.damage import bodies, choices, chunks, delta_texts, sleeping, texts, without
from tests.serving.planting import At, Fault, both, chat, each, streamed, when
from tests.serving.prose import crc
from tests.serving.table import FAULTS

Body = dict[str, Any]


def _contents(change: Callable[[str], str], roles: tuple[str, ...] = ("user",)) -> Any:
    """Return a hook that changes the texts of a request's prompt, on all routes."""

    def edit(body: Body, at: At) -> Body:
        body = dict(body)
        for key in ("text", "prompt"):
            if isinstance(body.get(key), str):
                body[key] = change(body[key])
        if "messages" in body:
            body["messages"] = [
                {**one, "content": change(one["content"])}
                if one.get("role") in roles and isinstance(one.get("content"), str)
                else one
                for one in body["messages"]
            ]
        return body

    return edit


def _chats(change: Callable[[list[Body]], list[Body]]) -> Any:
    return lambda body, at: {**body, "messages": change(body["messages"])} if body.get("messages") else body


def _parameter(name: str, native: str, change: Callable[[Any], Any]) -> Any:
    """Return a hook that changes a sampling parameter under both of its names."""

    def edit(body: Body, at: At) -> Body:
        if isinstance(inner := body.get("sampling_params"), dict):
            return {**body, "sampling_params": {**inner, native: change(inner.get(native))}}
        return {**body, name: change(body.get(name))}

    return edit


def _words(text: str, at: At) -> str:
    """Replace each word by any other."""
    listed = vocabulary.WORDS
    return re.sub(
        r"\w+",
        lambda match: vocabulary.decode([listed[crc(match[0], match.start(), at.call.number) % len(listed)]]).strip(),
        text,
    )


def _template(text: str) -> str:
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def _without_head(text: str) -> str:
    return text[len(text) // 4 :] if len(text) > 8000 else text


def _without_middle(text: str) -> str:
    return text[:4000] + text[-4000:] if len(text) > 12_000 else text


def _is_sampled(at: At) -> bool:
    inner = at.call.body.get("sampling_params") or at.call.body
    return bool(inner.get("temperature", 1))


def _shifted(value: Any, by: float) -> Any:
    """Add to all log-probabilities in a reply, wherever they stand."""
    if isinstance(value, dict):
        return {
            key: inner + by if key == "logprob" and isinstance(inner, float) else _shifted(inner, by)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        if (
            len(value) == 3
            and isinstance(value[0], float)
            and isinstance(value[1], int)
            and not isinstance(value[2], list)
        ):
            return [value[0] + by, *value[1:]]
        return [_shifted(inner, by) for inner in value]
    return value


def _shift(body: Body, at: At) -> None:
    body.update(_shifted(dict(body), 0.2))


def _swapped(body: Body, at: At) -> None:
    """Give each chat that ends within 0.3 s of another the other's answer."""
    if not body.get("choices") or "message" not in body["choices"][0]:
        return
    message = body["choices"][0]["message"]
    kept = at.memory.get("swap")
    at.memory["swap"] = dict(message), time.monotonic()
    if kept and time.monotonic() - kept[1] < 0.3:
        message.update(kept[0])


def _stored(body: Body, at: At) -> None:
    """Answer from a store under the first 12 characters of the last message."""
    asked = str((at.call.body.get("messages") or [{}])[-1].get("content", ""))
    if body.get("choices") and asked:
        body["choices"] = at.memory.setdefault(("stored", asked[:12]), body["choices"])


def _usage(body: Body, at: At) -> None:
    if isinstance(body.get("usage"), dict) and "completion_tokens" in body["usage"]:
        body["usage"]["completion_tokens"] += 1


EXTRA = (
    Fault("proxy-template-twice", "C", "The chat template is applied to its own output.",
          {"body": _contents(_template)}),
    Fault("proxy-system-dropped", "C", "The system message is dropped.",
          {"body": _chats(lambda turns: [one for one in turns if one.get("role") != "system"])}),
    Fault("proxy-history-dropped", "C", "Only the last message is passed on.",
          {"body": _chats(lambda turns: turns[-1:])}),
    Fault("proxy-lowered", "C", "Messages are passed on in small letters.", {"body": _contents(str.lower)}),
    Fault("proxy-head-lost", "I", "The first quarter of long prompts is lost.", {"body": _contents(_without_head)},
          rate="long prompts"),
    Fault("proxy-middle-lost", "I", "The middle of long prompts is lost.", {"body": _contents(_without_middle)},
          rate="long prompts"),
    Fault("proxy-non-ascii-lost", "D", "Characters beyond ASCII in prompts become question marks.",
          {"body": _contents(lambda text: text.encode("ascii", "replace").decode())}),
    Fault("proxy-greedy-warm", "A", "Greedy requests are sampled at 0.4.",
          {"body": _parameter("temperature", "temperature", lambda value: value or 0.4)}),
    Fault("proxy-greedy-warm-each-15", "A", "One greedy request in 15 is sampled at 0.7.",
          {"body": when(each(15), _parameter("temperature", "temperature", lambda value: value or 0.7))}, rate="1/15"),
    Fault("proxy-temperature-high", "A", "Sampling runs at a temperature higher by 0.8.",
          {"body": _parameter("temperature", "temperature", lambda value: value + 0.8 if value else value)}),
    Fault("proxy-temperature-zero", "A", "Sampling takes the likeliest token.",
          {"body": _parameter("temperature", "temperature", lambda value: 0)}),
    Fault("proxy-one-too-many", "B", "All limits are higher by one.",
          {
              "body": _parameter(
                  "max_tokens", "max_new_tokens", lambda value: value + 1 if isinstance(value, int) else value
              )
          }),
    Fault("proxy-stop-lost", "B", "Stop texts are lost.", {"body": without("stop")}),
    Fault("proxy-schema-lost", "H", "Schemas are lost.",
          {"body": without("response_format", "json_schema", "regex", "ebnf")}),
    Fault("proxy-tools-lost-each-10", "H", "One request in 10 loses its tools.",
          {"body": when(each(10), without("tools", "tool_choice"))}, rate="1/10"),
    Fault("proxy-salad-each-20", "J", "One answer in 20 is word salad.",
          {"reply": when(each(20), texts(_words)), "events": when(both(chat, each(20)), delta_texts(_words))},
          rate="1/20"),
    Fault("proxy-sampled-salad", "A", "Sampled answers are word salad.",
          {"reply": when(_is_sampled, texts(_words)), "events": when(both(chat, _is_sampled), delta_texts(_words))},
          rate="only sampled"),
    Fault("proxy-usage-off-by-one", "B", "The usage counts one token too many.",
          {"reply": bodies(_usage), "events": chunks(_usage)}),
    Fault("proxy-logprobs-shifted", "E", "Log-probabilities are too high by 0.2.", {"reply": bodies(_shift)}),
    Fault("proxy-replies-swapped", "G", "Chats that end at about the same time get each other's answers.",
          {"reply": bodies(_swapped)}, rate="only at once"),
    Fault("proxy-answers-stored", "G", "Answers are kept under the first 12 characters of the last message.",
          {"reply": bodies(_stored)}),
    Fault("proxy-stalls-each-25", "J", "One request in 25 waits for 3 s.", {"arrival": when(each(25), sleeping(3))},
          rate="1/25"),
    Fault("proxy-names-model", "B", "Replies name another model.",
          {"reply": bodies(lambda body, at: body.update(model="gpt-3.5-turbo") if "model" in body else None)}),
    Fault("proxy-plain-role", "B", "Answers come in the role of the user.",
          {"reply": choices(lambda choice, at: choice.get("message", {}).update(role="user"))}),
    Fault("proxy-stream-limit", "F", "Streams get one token less than asked for.",
          {
              "body": when(
                  streamed,
                  _parameter(
                      "max_tokens",
                      "max_new_tokens",
                      lambda value: value - 1 if isinstance(value, int) and value > 1 else value,
                  ),
              )
          }, rate="only streamed"),
)  # fmt: skip
_SHARED = (
    "no-done", "no-done-each-20", "event-lost", "event-lost-each-20", "event-twice-each-15", "events-swapped",
    "stream-usage-zero", "stream-in-one-piece",
    "no-finish", "deltas-grow", "frames-joined", "stream-ids-change", "blanks-lost-in-events", "role-user",
    "created-1970", "ids-repeated", "usage-missing",
    "n-one-missing", "choices-index-zero", "blank-answer-each-40", "error-500-each-40", "error-in-200-each-30",
    "body-cut-each-40", "hangs-each-60",
    "tool-finish-stop", "chat-logprobs-null", "tool-choice-none-ignored", "logit-bias-ignored",
    "max-completion-tokens-ignored",
)  # fmt: skip
_SEEN_BY = {
    "proxy-template-twice": "template-twice", "proxy-system-dropped": "system-ignored",
    "proxy-history-dropped": "history-dropped",
    "proxy-lowered": "template-lowers", "proxy-head-lost": "head-lost-6k", "proxy-middle-lost": "middle-lost-8k",
    "proxy-non-ascii-lost": "non-ascii-in-lost", "proxy-greedy-warm": "second-best-each-50",
    "proxy-greedy-warm-each-15": "greedy-warm-each-15", "proxy-temperature-high": "temperature-twice",
    "proxy-temperature-zero": "temperature-ignored", "proxy-one-too-many": "chat-one-too-many",
    "proxy-stop-lost": "chat-stop-ignored",
    "proxy-schema-lost": "schema-ignored", "proxy-tools-lost-each-10": "tool-calls-as-text-each-8",
    "proxy-salad-each-20": "salad-each-20",
    "proxy-sampled-salad": "sampled-salad", "proxy-usage-off-by-one": "usage-prompt-off-by-one",
    "proxy-replies-swapped": "replies-swapped", "proxy-answers-stored": "answers-stored-by-start",
    "proxy-stalls-each-25": "first-token-slow-each-25", "proxy-names-model": "model-field-other",
    "proxy-plain-role": "role-user",
    "proxy-stream-limit": "stream-one-short",
}  # fmt: skip
"""Which fault of the stand-in has the witness that sees one of the proxy's."""


def _above_zero(ask: Asker) -> bool:
    """Return whether a token is told to be likelier than certain."""
    made = ask.native("The sea is", {"max_new_tokens": 24}, return_logprob=True)
    return any(row[0] > 0.01 for row in made["meta_info"]["output_token_logprobs"])


_WITNESSES = {name: FAULTS[other].witness for name, other in _SEEN_BY.items()} | {"proxy-logprobs-shifted": _above_zero}
_WITNESSED = (msgspec.structs.replace(fault, witness=_WITNESSES[fault.name]) for fault in EXTRA)
RULES: dict[str, Fault] = {fault.name: fault for fault in _WITNESSED} | {
    name: FAULTS[name] for name in _SHARED if name in FAULTS
}
"""All faults that the proxy knows, by name."""
