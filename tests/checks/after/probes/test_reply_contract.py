"""Every breach of the contract is one; a reply as the engine sends it has none."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.exchange import Answer, Ask
from checks.after.probes.replies import parse_events, parse_reply
from checks.after.probes.reply_contract import breaches

CHAT = "/v1/chat/completions"
PAYLOAD: dict[str, Any] = {"model": "m", "max_tokens": 8, "messages": [], "temperature": 0}
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def chat(payload: dict[str, Any] | None = None, message: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "hi you", **(message or {})},
        "finish_reason": "stop",
    }
    body = {"id": "1", "created": 1_790_000_000, "model": "m", "choices": [choice], "usage": USAGE, **changes}
    answer = parse_reply(CHAT, 200, as_json(body), 0.1)
    return [item.kind for item in breaches(Ask(path=CHAT, payload={**PAYLOAD, **(payload or {})}), answer)]


def as_json(value: Any) -> bytes:
    import json

    return json.dumps(value).encode()


def streamed(*events: dict[str, Any], done: bool = True) -> list[str]:
    head = {"id": "1", "created": 1_790_000_000, "model": "m"}
    lines = [(0.1 * n, as_json({**head, **event})) for n, event in enumerate(events)]
    answer = parse_events(CHAT, 200, [*lines, *([(1.0, b"[DONE]")] if done else [])], 1.0)
    payload = {**PAYLOAD, "stream": True, "stream_options": {"include_usage": True}}
    return [item.kind for item in breaches(Ask(path=CHAT, payload=payload, stream=True), answer)]


def delta(content: str = "", finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content, **more}, "finish_reason": finish}]}


START, END, COUNT = delta(role="assistant"), delta(finish="stop"), {"choices": [], "usage": USAGE}


def generated(**meta: Any) -> list[str]:
    body = {
        "text": "hi you",
        "output_ids": [1, 2],
        "meta_info": {"prompt_tokens": 5, "completion_tokens": 2, "finish_reason": {"type": "stop"}, **meta},
    }
    payload = {
        "text": "x",
        "sampling_params": {"max_new_tokens": 8, "temperature": 0},
        "top_logprobs_num": 2,
    }
    answer = parse_reply("/generate", 200, as_json(body), 0.1)
    return [item.kind for item in breaches(Ask(path="/generate", payload=payload), answer)]


def test_a_sound_reply_has_no_breach() -> None:
    assert chat() == []
    assert streamed(START, delta("hi"), delta(" you"), END, COUNT) == []
    rows = [[-0.1, 1, None], [-3.0, 7, None]]
    assert generated(output_token_logprobs=[[-0.1, 1, None]] * 2, output_top_logprobs=[rows] * 2) == []


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"id": ""}, "id"),
        ({"model": "other"}, "model"),
        ({"created": 12}, "created"),
        ({"created": 1_790_000_000_000}, "created"),
        ({"message": {"role": "user"}}, "role"),
        ({"usage": None}, "usage"),
        ({"usage": {**USAGE, "total_tokens": 9}}, "usage"),
        ({"usage": {**USAGE, "completion_tokens": 0, "total_tokens": 5}}, "usage"),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}}, "too-many-tokens"),
        ({"payload": {"n": 2}}, "choices"),
        ({"payload": {"logprobs": True}}, "no-logprobs"),
        ({"message": {"tool_calls": [{"id": "", "function": {}}]}}, "tool-id"),
        ({"message": {"tool_calls": [{"id": "a", "function": {}}, {"id": "a", "function": {}}]}}, "tool-id"),
    ],
)
def test_breaches_of_a_chat(change: dict[str, Any], kind: str) -> None:
    assert kind in chat(**change)


@pytest.mark.parametrize(
    ("events", "done", "kind"),
    [
        ([START, delta("hi"), END, COUNT], False, "no-done"),
        ([delta("hi"), END, COUNT], True, "role"),
        ([START, delta("hi"), END, delta("you"), COUNT], True, "event-order"),
        ([START, delta("hi"), END], True, "usage"),
        ([START, {**delta("hi"), "id": "2"}, END, COUNT], True, "id"),
    ],
)
def test_breaches_of_a_stream(events: list[dict[str, Any]], done: bool, kind: str) -> None:
    assert kind in streamed(*events, done=done)


@pytest.mark.parametrize(
    ("meta", "kind"),
    [
        ({"completion_tokens": 9}, "too-many-tokens"),
        ({"finish_reason": {"type": "length"}}, "finish-reason"),
        ({"prompt_tokens": 0}, "usage"),
        ({"output_token_logprobs": [[-0.1, 1, None]] * 5}, "logprob-count"),
        ({"output_token_logprobs": [[0.5, 1, None]] * 2}, "logprob-mass"),
        ({"output_token_logprobs": [[None, 1, None], [-0.1, 2, None]]}, "nan-logprob"),
        ({"output_token_logprobs": [[-0.1, 1, None]] * 2, "output_top_logprobs": [[[-0.1, 1, None]]] * 2}, "top-count"),
        ({"output_top_logprobs": [[[-3.0, 1, None], [-0.1, 2, None]]]}, "top-order"),
        ({"output_top_logprobs": [[[-0.1, 1, None], [-0.2, 2, None]]]}, "logprob-mass"),
        (
            {
                "output_token_logprobs": [[-2.0, 1, None]] * 2,
                "output_top_logprobs": [[[-0.2, 2, None], [-2.0, 1, None]]] * 2,
            },
            "greedy-token",
        ),
    ],
)
def test_breaches_of_the_native_route(meta: dict[str, Any], kind: str) -> None:
    assert kind in generated(**meta)


def test_a_request_that_failed_or_was_cut_off_has_no_breach() -> None:
    assert breaches(Ask(path=CHAT, payload=PAYLOAD), Answer(path=CHAT, status=500)) == []
    assert breaches(Ask(path=CHAT, payload=PAYLOAD, cut_after=2), Answer(path=CHAT, status=200)) == []
    assert breaches(Ask(path="/health"), Answer(path="/health", status=200)) == []
