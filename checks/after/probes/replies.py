"""Parse HTTP replies of SGLang into Answers: /generate, /v1/chat/completions, /v1/completions, plain and streamed.

Field names are the same in every release from 0.4.10 on; a missing field stays empty. The probes judge the answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from checks.after.probes.exchange import Answer, error_message

# What reading JSON of another shape raises: null, a number or a list where the route has an object.
_SHAPE = (AttributeError, TypeError, ValueError, KeyError, IndexError)
_OTHER_SHAPE = "the reply is JSON of another shape than this route's"
SHOWN = 400  # characters of a body kept as evidence


def parse_reply(path: str, status: int, body: bytes, seconds: float) -> Answer:
    """Return the answer in a complete reply body; an unreadable body becomes an `error`."""
    raw = body.decode("utf-8", "replace")
    answer = Answer(path=path, status=status, raw=raw[:SHOWN], seconds=seconds)
    if status != 200:
        return replace(answer, body=_json_or_none(raw))
    if path.startswith(("/health", "/metrics", "/flush_cache", "/ready")):
        return replace(answer, text=raw)
    try:
        data = json.loads(raw)
    except ValueError as error:
        return replace(answer, error=f"the reply is not valid JSON: {error}", fault="unreadable")
    if isinstance(data, Mapping) and data.get("error") and not data.get("choices") and "meta_info" not in data:
        said = error_message(data["error"])[:200]
        return replace(answer, body=data, error=f"HTTP 200 carries an error: {said}", fault="broken")
    try:
        return _fill(replace(answer, body=data), data)
    except _SHAPE as error:
        return replace(answer, body=data, error=f"{_OTHER_SHAPE}: {error}", fault="unreadable")


def parse_events(
    path: str, status: int, events: Sequence[tuple[float, bytes]], seconds: float, *, cut: bool = False
) -> Answer:
    """Join SSE `data:` lines, each with the seconds since the request was sent, into one answer.

    `cut` means that the client closed the stream deliberately, so a missing end is not a fault.
    """
    raw = b"\n".join(line for _, line in events[:3]).decode("utf-8", "replace")
    answer = Answer(path=path, status=status, raw=raw[:SHOWN], seconds=seconds)
    if status != 200:
        return replace(answer, body=_json_or_none(raw))
    chunks, done = [], False
    for when, line in events:
        if line.strip() == b"[DONE]":
            done = True
            continue
        try:
            chunks.append((when, json.loads(line)))
        except ValueError as error:
            return replace(answer, error=f"a stream event is not valid JSON: {error}", fault="unreadable")
    reported = next((chunk["error"] for _, chunk in chunks if isinstance(chunk, Mapping) and "error" in chunk), None)
    if reported is not None:
        return replace(answer, error=f"the stream reports an error: {error_message(reported)}", fault="broken")
    if not chunks:
        return replace(answer, error="the stream ended without an event", fault="broken")
    answer = replace(answer, chunks=tuple(chunk for _, chunk in chunks), done=done)
    try:
        whole = _join_generate(answer, chunks) if path == "/generate" else _join_openai(answer, chunks)
    except _SHAPE as error:
        return replace(answer, error=f"{_OTHER_SHAPE}: {error}", fault="unreadable")
    if not done and not whole.finish and not cut:
        return replace(whole, error="the stream ended without a finish reason or [DONE]", fault="broken")
    return whole


def failure(path: str, fault: str, message: str, seconds: float) -> Answer:
    """Return the answer for a request without a reply. `fault` is a kind listed at `Answer.fault`."""
    return Answer(path=path, error=message, fault=fault, seconds=seconds)


def _json_or_none(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _fill(answer: Answer, data: Any) -> Answer:
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        data = data[0]
    if not isinstance(data, Mapping):
        return answer
    if isinstance(data.get("meta_info"), Mapping):
        return _fill_generate(answer, data)
    if isinstance(data.get("choices"), list) and data["choices"]:
        return _fill_openai(answer, data)
    return answer


def _fill_generate(answer: Answer, data: Mapping[str, Any]) -> Answer:
    meta = data["meta_info"]
    prompt = _pairs(meta.get("input_token_logprobs"))
    output = _pairs(meta.get("output_token_logprobs"))
    ids = data.get("output_ids") or [token for _, token in output]
    return replace(
        answer,
        text=str(data.get("text") or ""),
        finish=_finish(meta.get("finish_reason")),
        prompt_tokens=_int(meta.get("prompt_tokens")),
        completion_tokens=_int(meta.get("completion_tokens")),
        cached_tokens=_int(meta.get("cached_tokens")),
        ids=tuple(int(token) for token in ids if isinstance(token, int)),
        logprobs=tuple(value for value, _ in output),
        # the first token of the text has no log-probability: the engine sends null there
        prompt_ids=tuple(token for _, token in prompt[1:]),
        prompt_logprobs=tuple(value for value, _ in prompt[1:]),
        meta=meta,
    )


def _fill_openai(answer: Answer, data: Mapping[str, Any]) -> Answer:
    choice = data["choices"][0]
    message = choice.get("message") or {}
    usage = data.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    logprobs = ((choice.get("logprobs") or {}).get("content") or []) if isinstance(choice.get("logprobs"), dict) else []
    return replace(
        answer,
        text=str(message.get("content") or choice.get("text") or ""),
        reasoning=str(message.get("reasoning_content") or message.get("reasoning") or ""),
        tool_calls=tuple(dict(call) for call in message.get("tool_calls") or ()),
        finish=str(choice.get("finish_reason") or ""),
        prompt_tokens=_int(usage.get("prompt_tokens")),
        completion_tokens=_int(usage.get("completion_tokens")),
        cached_tokens=_int(details.get("cached_tokens")),
        logprobs=tuple(_number(item.get("logprob")) for item in logprobs),
    )


def _join_generate(answer: Answer, chunks: Sequence[tuple[float, Any]]) -> Answer:
    times: list[float] = []
    counts: list[int] = []
    texts: list[str] = []
    for when, chunk in chunks:
        count = _int((chunk.get("meta_info") or {}).get("completion_tokens"))
        if count is not None and count > (counts[-1] if counts else 0):
            times.append(when)
            counts.append(count)
        texts.append(str(chunk.get("text") or ""))
    last = chunks[-1][1]
    filled = replace(_fill(answer, last), body=last, times=tuple(times), counts=tuple(counts))
    if not _incremental(last, texts):
        return filled
    ids = [token for _, chunk in chunks for token in chunk.get("output_ids") or ()]
    return replace(filled, text="".join(texts), ids=tuple(ids) or filled.ids)


def _incremental(last: Mapping[str, Any], texts: Sequence[str]) -> bool:
    """Return whether each event contains only new output (`--incremental-streaming-output`), not all output so far."""
    ids, count = last.get("output_ids"), _int((last.get("meta_info") or {}).get("completion_tokens"))
    if isinstance(ids, list) and count is not None:
        return len(ids) < count
    return not all(later.startswith(earlier) for earlier, later in pairwise(texts))


def _join_openai(answer: Answer, chunks: Sequence[tuple[float, Any]]) -> Answer:
    text, reasoning, finish = "", "", ""
    usage: Mapping[str, Any] = {}
    times: list[float] = []
    calls: dict[int, dict[str, Any]] = {}
    for when, chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            new = str(delta.get("content") or choice.get("text") or "")
            thought = str(delta.get("reasoning_content") or delta.get("reasoning") or "")
            if new or thought or delta.get("tool_calls"):
                times.append(when)
            text, reasoning = text + new, reasoning + thought
            _collect_calls(calls, delta.get("tool_calls") or ())
            finish = str(choice.get("finish_reason") or finish)
    return replace(
        answer,
        body=chunks[-1][1],
        text=text,
        reasoning=reasoning,
        tool_calls=tuple(calls[index] for index in sorted(calls)),
        finish=finish,
        prompt_tokens=_int(usage.get("prompt_tokens")),
        completion_tokens=_int(usage.get("completion_tokens")),
        times=tuple(times),
    )


def _collect_calls(calls: dict[int, dict[str, Any]], deltas: Iterable[Mapping[str, Any]]) -> None:
    for delta in deltas:
        function = delta.get("function") or {}
        call = calls.setdefault(int(delta.get("index") or 0), {"function": {"name": "", "arguments": ""}})
        call |= {"id": delta["id"], "type": delta.get("type") or "function"} if delta.get("id") else {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""


def _pairs(items: Any) -> list[tuple[float | None, int]]:
    return [(_number(item[0]), int(item[1])) for item in items or () if isinstance(item, list) and len(item) >= 2]


def _finish(reason: Any) -> str:
    return str(reason.get("type") or "") if isinstance(reason, Mapping) else str(reason or "")


def _int(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
