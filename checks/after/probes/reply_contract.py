"""Hold every reply to the contract of its route, whatever the probe that asked wanted to know. Pure.

The contract is what clients rely on: roles, ids, the model's name, token counts, finish reasons, log-probabilities that
are probabilities, the order and the end of a stream (0.4.10 to 0.5.23: srt/entrypoints/openai/protocol.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import exp
from typing import Any

from msgspec import Struct

from checks.after.probes.exchange import Answer, Ask

CHAT, COMPLETIONS, GENERATE = "/v1/chat/completions", "/v1/completions", "/generate"
FINISHES = {"stop", "length", "tool_calls", "content_filter", "abort", "function_call"}
MOST_MASS = 1.01  # rounding of a sum of probabilities
TIE = 0.02  # nats: two tokens this close may swap places between the sampler and the list
_SINCE, _UNTIL = 1_600_000_000, 4_000_000_000  # seconds since the epoch: `created` is a time, not one in milliseconds


class Breach(Struct, frozen=True, kw_only=True):
    """One way in which a reply breaks the contract. `kind` groups equal breaches of many replies."""

    kind: str
    message: str


def breaches(ask: Ask, answer: Answer) -> list[Breach]:
    """Return every breach of one usable reply; a failed or deliberately cut request has none."""
    if not answer.ok or ask.payload is None or ask.cut_after:
        return []
    if ask.path == GENERATE:
        return [*_generate(ask.payload, answer), *_logprob_lists(ask.payload, answer)]
    if ask.path in (CHAT, COMPLETIONS):
        return [*_openai(ask, answer), *_usage(ask.payload, answer)]
    return []


def _generate(payload: Mapping[str, Any], answer: Answer) -> Iterator[Breach]:
    sampling = payload.get("sampling_params") or {}
    most, count = sampling.get("max_new_tokens"), answer.completion_tokens
    if not isinstance(answer.body, Mapping):
        return  # several prompts in one request have one reply each
    if answer.prompt_tokens is not None and answer.prompt_tokens < 1:
        yield Breach(kind="usage", message=f"a prompt of {answer.prompt_tokens} tokens")
    yield from _limits(most, count, answer)
    if count is not None and answer.logprobs and abs(len(answer.logprobs) - count) > 1 and not answer.chunks:
        message = f"{len(answer.logprobs)} log-probabilities for {count} tokens"
        yield Breach(kind="logprob-count", message=message)
    counts = [c for chunk in answer.chunks if (c := _count(chunk)) is not None]
    if any(later < earlier for earlier, later in pairwise(counts)):
        yield Breach(kind="event-order", message="the events of a stream count backwards")
    if answer.chunks and not answer.done:
        yield Breach(kind="no-done", message="a stream ends without [DONE]")


def _limits(most: Any, count: int | None, answer: Answer) -> Iterator[Breach]:
    if count is None or not isinstance(most, int):
        return
    if count > most:
        yield Breach(kind="too-many-tokens", message=f"{count} tokens although at most {most} were asked for")
    elif answer.finish == "length" and count < most:
        yield Breach(kind="finish-reason", message=f"finish reason length after {count} of {most} tokens")


def _count(chunk: Any) -> int | None:
    meta = chunk.get("meta_info") if isinstance(chunk, Mapping) else None
    count = meta.get("completion_tokens") if isinstance(meta, Mapping) else None
    return count if isinstance(count, int) else None


def _openai(ask: Ask, answer: Answer) -> Iterator[Breach]:
    payload: Mapping[str, Any] = ask.payload or {}
    heads = answer.chunks or ((answer.body,) if isinstance(answer.body, Mapping) else ())
    heads = tuple(head for head in heads if isinstance(head, Mapping))
    ids = {head.get("id") for head in heads}
    if len(ids) > 1 or not all(ids):
        yield Breach(kind="id", message="the events of one stream have several ids" if all(ids) else "without an id")
    for name in {str(head.get("model") or "") for head in heads}:
        wanted = str(payload.get("model") or name)
        if not name or (wanted not in name and name not in wanted):
            yield Breach(kind="model", message=f"`model` is {name!r}, {wanted!r} was asked for")
    times = [head.get("created") for head in heads]
    if not all(isinstance(when, int | float) and _SINCE < when < _UNTIL for when in times):
        yield Breach(kind="created", message="`created` is not a time of this age")
    choices = [choice for head in heads for choice in head.get("choices") or () if isinstance(choice, Mapping)]
    yield from _choices(ask, answer, choices)
    if answer.chunks and not answer.done:
        yield Breach(kind="no-done", message="a stream ends without [DONE]")


def _choices(ask: Ask, answer: Answer, choices: Sequence[Mapping[str, Any]]) -> Iterator[Breach]:
    payload: Mapping[str, Any] = ask.payload or {}
    prompts = payload["prompt"] if isinstance(payload.get("prompt"), list) else [""]
    wanted = (payload.get("n") or 1) * (len(prompts) if isinstance(prompts[0], str) else 1)
    indexes = {choice.get("index") for choice in choices}
    if indexes != set(range(wanted)) and choices:
        yield Breach(kind="choices", message=f"choices {sorted(map(str, indexes))}, {wanted} were asked for")
    parts = [choice.get("delta") if ask.stream else choice.get("message") for choice in choices]
    roles = [part["role"] for part in parts if isinstance(part, Mapping) and part.get("role")]
    if ask.path == CHAT and (any(role != "assistant" for role in roles) or not roles):
        yield Breach(kind="role", message=f"the role is {roles[0]!r}" if roles else "no reply names its role")
    finishes = [str(choice["finish_reason"]) for choice in choices if choice.get("finish_reason")]
    if odd := [finish for finish in finishes if finish not in FINISHES]:
        yield Breach(kind="finish-reason", message=f"finish reason {odd[0]!r}")
    if ask.stream and len(finishes) != wanted:
        yield Breach(kind="finish-reason", message=f"{len(finishes)} finish reasons in a stream of {wanted} choices")
    if ask.stream and ask.path == CHAT and _after_finish(choices):
        yield Breach(kind="event-order", message="a stream goes on after its finish reason")
    yield from _calls(answer)
    if payload.get("logprobs") and ask.path == CHAT and not ask.stream:
        given = [choice.get("logprobs") for choice in choices]
        if not all(isinstance(item, Mapping) and item.get("content") for item in given):
            yield Breach(kind="no-logprobs", message="no log-probabilities although a chat asked for them")


def _after_finish(choices: Iterable[Mapping[str, Any]]) -> bool:
    ended: set[Any] = set()
    for choice in choices:
        delta = choice.get("delta") or {}
        if choice.get("index") in ended and (delta.get("content") or delta.get("tool_calls")):
            return True
        if choice.get("finish_reason"):
            ended.add(choice.get("index"))
    return False


def _calls(answer: Answer) -> Iterator[Breach]:
    if not answer.tool_calls:
        return
    ids = [str(call.get("id") or "") for call in answer.tool_calls]
    if not all(ids):
        yield Breach(kind="tool-id", message="a tool call without an id")
    elif len(set(ids)) < len(ids):
        yield Breach(kind="tool-id", message="two tool calls with one id")
    if answer.finish not in ("tool_calls", "length"):
        yield Breach(kind="finish-reason", message=f"tool calls with finish reason {answer.finish or 'none'}")


def _usage(payload: Mapping[str, Any], answer: Answer) -> Iterator[Breach]:
    usage = next((c["usage"] for c in reversed(answer.chunks) if isinstance(c, Mapping) and c.get("usage")), None)
    if not answer.chunks and isinstance(answer.body, Mapping):
        usage = answer.body.get("usage")
    if not isinstance(usage, Mapping):
        if not answer.chunks or (payload.get("stream_options") or {}).get("include_usage"):
            yield Breach(kind="usage", message="no usage")
        return
    counts = [usage.get(f"{name}_tokens") for name in ("prompt", "completion", "total")]
    known = [count for count in counts if isinstance(count, int)]
    if len(known) < len(counts):
        yield Breach(kind="usage", message="a usage without its three counts")
        return
    prompt, completion, total = known
    if prompt < 1 or (completion < 1 and (answer.said or answer.tool_calls)):
        yield Breach(kind="usage", message=f"a usage of {prompt} and {completion} tokens")
    if total != prompt + completion:
        yield Breach(kind="usage", message=f"{prompt} and {completion} tokens, {total} in total")
    most = payload.get("max_completion_tokens") or payload.get("max_tokens")
    if (payload.get("n") or 1) == 1 and not isinstance(payload.get("prompt"), list):
        yield from _limits(most, completion, answer)
    words = len(answer.said.split())
    if words >= 8 and completion * 2 < words:
        yield Breach(kind="usage", message=f"{completion} tokens for {words} words")


def _logprob_lists(payload: Mapping[str, Any], answer: Answer) -> Iterator[Breach]:
    """Yield what is wrong with lists of likely tokens: a mass above 1, or a greedy token that is not the first."""
    for name in ("input_top_logprobs", "output_top_logprobs"):
        rows = [row for row in answer.meta.get(name) or () if isinstance(row, list) and row]
        above = [mass for row in rows if (mass := _mass(row)) > MOST_MASS]
        if above:
            message = f"probabilities of top tokens add up to {max(above):.2f}"
            yield Breach(kind="logprob-mass", message=message)
    missing = sum(value is None for value in (*answer.logprobs, *answer.prompt_logprobs))
    if missing:
        yield Breach(kind="nan-logprob", message=f"{missing} log-probabilities are NaN or missing")
    asked = payload.get("top_logprobs_num") or 0
    rows = [row for row in answer.meta.get("output_top_logprobs") or () if isinstance(row, list)]
    if asked and any(len(row) < asked for row in rows):
        yield Breach(kind="top-count", message=f"a list of {min(map(len, rows))} likely tokens, {asked} were asked for")
    if any(_unsorted(row) for row in rows):
        yield Breach(kind="top-order", message="a list of likely tokens is not in order")
    positive = [value for value in (*answer.logprobs, *answer.prompt_logprobs) if value is not None and value > 1e-3]
    if positive:
        yield Breach(kind="logprob-mass", message=f"a log-probability of {max(positive):.3g}")
    greedy = (payload.get("sampling_params") or {}).get("temperature") == 0
    tops = answer.meta.get("output_top_logprobs") or ()
    if greedy and tops and any(_lower(row, value) for row, value in zip(tops, answer.logprobs, strict=False)):
        yield Breach(kind="greedy-token", message="a greedy token is not the likeliest of its list")


def _unsorted(row: Sequence[Any]) -> bool:
    values = [item[0] for item in row if isinstance(item, list) and isinstance(item[0], int | float)]
    return any(later > earlier + TIE for earlier, later in pairwise(values))


def _mass(row: Sequence[Any]) -> float:
    return sum(exp(min(item[0], 1.0)) for item in row if isinstance(item, list) and isinstance(item[0], int | float))


def _lower(row: Any, value: float | None) -> bool:
    listed = [item[0] for item in row or () if isinstance(item, list) and isinstance(item[0], int | float)]
    return bool(listed) and value is not None and value < max(listed) - TIE
