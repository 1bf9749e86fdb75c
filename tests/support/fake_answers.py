"""Builds the reply bodies of the stand-in server: /generate, chat, /v1/models and /server_info.

The JSON has the form of SGLang 0.5.10 to 0.5.23. The text comes from `fake_model`, the damage from `faults`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tests.support.fake_model import FILLER, Output, healthy, logprob, piece_of, pieces_of, prompt_logprob, token_id
from tests.support.fake_speculation import speculate
from tests.support.faults import Request, ids_of, spoil

_SERVED: dict[int, float | None] = {}  # token → the log-probability with which it was served last


class Reply(Struct, frozen=True, kw_only=True):
    """One reply, as a plain body and as a stream of events."""

    status: int
    body: Any
    events: Iterable[Mapping[str, Any]] = ()  # generated one by one, while they are sent
    tokens: int = 0


class Done(Struct, frozen=True, kw_only=True):
    """A finished generation: the output within its limits, and its token counts."""

    output: Output
    prompt: tuple[str, ...]
    cached: int
    faults: frozenset[str]
    info: Mapping[str, Any]
    payload: Mapping[str, Any]

    number: int = 0  # of the request: each reply has an id of its own

    @property
    def count(self) -> int:
        extra = 3 if "wrong-count" in self.faults else 0
        return max(len(ids_of(self.output)), len(self.output.calls)) + extra

    @property
    def head(self) -> dict[str, Any]:
        """What every reply and event of an OpenAI route begins with."""
        return {"id": f"reply-{self.number}", "created": 1_790_000_000, "model": self.info["served_model_name"]}


def answer(
    path: str,
    payload: Mapping[str, Any],
    info: Mapping[str, Any],
    faults: frozenset[str],
    request: Callable[[str, int], Request],
) -> Reply:
    """Return the reply to one generation request."""
    prompt, pieces = _prompt(payload)
    if "no-chat-template" in faults and path.endswith("/chat/completions"):
        message = "Cannot use chat template functions because tokenizer.chat_template is not set"
        return Reply(status=400, body={"object": "error", "message": message, "type": "BadRequestError", "code": 400})
    if len(pieces) > info["max_req_input_len"] and "accepts-too-long" not in faults:
        message = f"The input ({len(pieces)} tokens) is longer than the model's context length."
        return Reply(status=400, body={"error": {"message": message}})
    if payload.get("return_logprob") and "no-logprob-support" in faults:
        return Reply(status=400, body={"error": {"message": "return_logprob is not supported with DFLASH"}})
    received = request(prompt, len(pieces))
    output = spoil(healthy(prompt, payload, info), faults, received)
    output = speculate(_limit(output, payload, faults), info, faults)
    cached = len(pieces) - 1 if received.seen and not info["disable_radix_cache"] else 0
    done = Done(
        output=output, prompt=pieces, cached=cached, faults=faults, info=info, payload=payload, number=received.number
    )
    chat = path.endswith("/chat/completions")
    body = _chat_body(done) if chat else _generate_body(done, len(output.pieces))
    prompts = payload.get("prompt") or payload.get("text")
    if isinstance(prompts, list) or (payload.get("sampling_params") or {}).get("n", 1) > 1:
        return _many(path, payload, info, faults, request)
    if path.endswith("/v1/completions"):
        choice = {"index": 0, "text": output.text, "finish_reason": output.finish, "logprobs": None}
        body = {**done.head, "object": "text_completion", "choices": [choice], "usage": _usage(done)}
    events = (_chat_events(done) if chat else _generate_events(done)) if payload.get("stream") else ()
    return Reply(status=200, body=body, events=events, tokens=done.count)


def _many(
    path: str, payload: Mapping[str, Any], info: Mapping[str, Any], faults: frozenset[str], request: Any
) -> Reply:
    """Return the reply to several prompts in one request, or to one prompt with several answers."""
    name = "prompt" if "prompt" in payload else "text"
    prompts = payload[name] if isinstance(payload[name], list) else [payload[name]]
    sampling = dict(payload.get("sampling_params") or {})
    copies = sampling.pop("n", 1)
    ones = [
        answer(path, {**payload, name: text, "sampling_params": {**sampling, "seed": copy}}, info, faults, request)
        for text in prompts
        for copy in range(copies)
    ]
    if not path.endswith("/v1/completions"):
        rows = [
            {**one.body, "text": _rotated(one.body["text"], index if sampling.get("temperature") else 0)}
            for index, one in enumerate(ones)
        ]
        return Reply(status=200, body=rows, tokens=sum(one.tokens for one in ones))
    choices = [{**one.body["choices"][0], "index": index} for index, one in enumerate(ones)]
    parts = ("prompt_tokens", "completion_tokens", "total_tokens")
    usage = {part: sum(one.body["usage"][part] for one in ones) for part in parts}
    return Reply(status=200, body={**ones[0].body, "choices": choices, "usage": usage})


def _prompt(payload: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    if "messages" in payload:
        text = "\n\n".join(str(message.get("content") or "") for message in payload["messages"])
    elif "prompt" in payload:
        text = payload["prompt"][0] if isinstance(payload["prompt"], list) else str(payload["prompt"])
    elif "input_ids" in payload:
        pieces = tuple(piece_of(item) for item in payload["input_ids"])
        return "".join(pieces), pieces
    else:
        text = str(payload.get("text") or "")
    return text, pieces_of(text)


def _limit(output: Output, payload: Mapping[str, Any], faults: frozenset[str]) -> Output:
    sampling = payload.get("sampling_params") or payload
    most = int(sampling.get("max_new_tokens") or sampling.get("max_tokens") or 128)
    pieces, ids, finish = output.pieces, output.ids, output.finish
    if sampling.get("logit_bias"):
        pieces, ids, finish = (piece_of(int(next(iter(sampling["logit_bias"])))),) * most, (), "length"
    if 0 < len(pieces) < int(sampling.get("min_new_tokens") or 0):
        pieces += pieces_of(" " + FILLER)[: int(sampling["min_new_tokens"]) - len(pieces)]
    if "ignores-max-tokens" in faults:
        most += 5
    if sampling.get("ignore_eos") and len(pieces) < most and pieces:
        filler = pieces_of(" " + FILLER)
        pieces += (filler * (most // len(filler) + 1))[: most - len(pieces)]
    if len(pieces) > most:
        pieces, ids, finish = pieces[:most], ids[:most], "length"
    elif sampling.get("ignore_eos"):
        finish = "length"
    if finish == "length" and "wrong-finish" in faults:
        finish = "stop"
    stops = sampling.get("stop") or ()
    if stops and "ignores-stop" not in faults:
        pieces, finish = _stop(pieces, [stops] if isinstance(stops, str) else stops, finish)
    return replace(output, pieces=pieces, ids=ids[: len(pieces)], finish=finish)


def _stop(pieces: tuple[str, ...], stops: list[str], finish: str) -> tuple[tuple[str, ...], str]:
    text = "".join(pieces)
    positions = [position for stop in stops if (position := text.find(stop)) >= 0]
    return (pieces_of(text[: min(positions)]), "stop") if positions else (pieces, finish)


def _logprobs(done: Done) -> list[list[Any]]:
    rows = []
    for position, (piece, token) in enumerate(zip(done.output.pieces, ids_of(done.output), strict=False)):
        value = _spoiled_logprob(logprob(piece, position), position, done.faults)
        _SERVED[token] = value
        rows.append([value, token, None])
    return rows


def _spoiled_logprob(value: float, position: int, faults: frozenset[str]) -> float | None:
    if "nan-logprobs" in faults:
        return None
    if "nan-literal" in faults and position % 2:
        return math.nan
    if "flat-logprobs" in faults:
        return -11.93
    return value


def _prompt_logprobs(done: Done) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for position, piece in enumerate(done.prompt):
        value: float | None = prompt_logprob(piece, position)
        if "input_ids" in done.payload:  # read back: as it was served
            value = _SERVED.get(token_id(piece)) or value
        if "random-weights" in done.faults and value is not None:
            value = value / 10 - 10.4
        if done.payload.get("lora_path") and "adapter-ignored" not in done.faults and value is not None:
            value *= 0.9
        value = None if position == 0 else _spoiled_logprob(float(value or 0), position, done.faults)
        rows.append([value, token_id(piece), None])
    return rows


def _top_logprobs(done: Done) -> list[list[list[Any]] | None]:
    rows: list[list[list[Any]] | None] = [None]
    for position, piece in enumerate(done.prompt[1:], 1):
        shares = [0.6, 0.2, 0.1, 0.05, 0.02]
        if "logprobs-drift" in done.faults and position % 2:
            shares = [0.3, 0.3, 0.2, 0.1, 0.05]
        if "logprobs-jitter" in done.faults:
            shares = [share * (1 + 0.01 * (position % 3 - 1)) for share in shares]
        rows.append([[math.log(share), token_id(f"{piece}{rank}"), None] for rank, share in enumerate(shares)])
    return rows


def _ranked(row: list[Any], most: int) -> list[list[Any]]:
    """Return a list of likely tokens that the served one leads."""
    rest = max(0.0, 1 - math.exp(row[0] if row[0] is not None else -1.0)) / 2**12
    return [row, *([math.log(rest * 2.0**-rank + 1e-9), row[1] + 1 + rank, None] for rank in range(most - 1))]


def _generate_body(done: Done, upto: int) -> dict[str, Any]:
    whole = upto >= len(done.output.pieces)
    meta: dict[str, Any] = {
        "id": "1", "prompt_tokens": len(done.prompt), "cached_tokens": done.cached, "e2e_latency": 0.1,
        "completion_tokens": done.count if whole else upto,
        "finish_reason": {"type": done.output.finish} if whole else None,
        **done.output.meta,
    }  # fmt: skip
    if done.payload.get("return_logprob") and "drops-logprobs" not in done.faults:
        meta["output_token_logprobs"] = _logprobs(done)[:upto]
        start = int(done.payload.get("logprob_start_len", -1))
        meta["input_token_logprobs"] = _prompt_logprobs(done)[start:] if start >= 0 else []
        if most := done.payload.get("top_logprobs_num"):
            meta["output_top_logprobs"] = [_ranked(row, most) for row in meta["output_token_logprobs"]]
        if start >= 0 and done.payload.get("top_logprobs_num"):
            meta["input_top_logprobs"] = _top_logprobs(done)
    return {
        "text": "".join(done.output.pieces[:upto]),
        "output_ids": list(ids_of(done.output))[:upto],
        "meta_info": meta,
    }


def _generate_events(done: Done) -> Iterator[Mapping[str, Any]]:
    for upto in range(1, len(done.output.pieces) + 1):
        yield _generate_body(done, upto)
    if not done.output.pieces:
        yield _generate_body(done, 0)


def _chat_body(done: Done) -> dict[str, Any]:
    message = {
        "role": "assistant", "content": done.output.text or None, "tool_calls": list(done.output.calls) or None,
        "reasoning_content": "".join(done.output.reasoning) or None,
    }  # fmt: skip
    rows = [{"token": str(row[1]), "logprob": row[0], "top_logprobs": []} for row in _logprobs(done)]
    listed = {"content": rows} if done.payload.get("logprobs") else None
    count = int(done.payload.get("n") or 1)
    choices = [
        {
            "index": index,
            "message": {**message, "content": _varied(done, message["content"], index)},
            "logprobs": listed,
            "finish_reason": done.output.finish,
        }
        for index in range(count)
    ]
    return {**done.head, "object": "chat.completion", "choices": choices, "usage": _usage(done)}


def _varied(done: Done, text: str | None, index: int) -> str | None:
    """Return the text of one of several answers: at a temperature they differ."""
    return _rotated(text, index) if text and done.payload.get("temperature") else text


def _rotated(text: str, index: int) -> str:
    words = text.split(" ")
    return " ".join(words[index:] + words[:index])


def _chat_events(done: Done) -> Iterator[Mapping[str, Any]]:
    def event(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**done.head, "object": "chat.completion.chunk", "usage": None,
                "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}]}  # fmt: skip

    yield event({"role": "assistant", "content": ""})
    for piece in done.output.reasoning:
        yield event({"reasoning_content": piece, "content": None})
    for piece in done.output.pieces:
        yield event({"content": piece})
    if done.output.calls:
        yield event({"tool_calls": [dict(call) for call in done.output.calls]})
    yield event({}, done.output.finish if "stream-no-finish" not in done.faults else None)
    if (done.payload.get("stream_options") or {}).get("include_usage"):
        yield {**done.head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(done)}


def _usage(done: Done) -> dict[str, Any]:
    return {"prompt_tokens": len(done.prompt), "completion_tokens": done.count,
            "total_tokens": len(done.prompt) + done.count}  # fmt: skip
