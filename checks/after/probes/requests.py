"""Payloads that probes send, and how two greedy answers to the same prompt are compared.

Greedy everywhere: temperature 0 is the only setting under which two answers may be compared at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from checks.after.probes.context import Context
from checks.after.probes.exchange import Answer, Ask, error_text

GENERATE = "/generate"
CHAT = "/v1/chat/completions"
HEALTH = Ask(path="/health", timeout=30.0)  # the engine itself gives up after 20 (SGLANG_HEALTH_CHECK_TIMEOUT)
NEAR_TIE = 0.5  # nats: two tokens this close may change places with the batch size, in any engine


class Agreement(Struct, frozen=True, kw_only=True):
    """How far two greedy answers agree. `same` counts equal leading tokens (or characters, without ids)."""

    equal: bool
    near_tie: bool = False  # they part at a token where both choices were about as likely
    same: int = 0
    of: int = 0

    @property
    def close(self) -> bool:
        """Equal as far as rounding allows."""
        return self.equal or self.near_tie


def generate(
    text: str | Sequence[int], tokens: int, *, logprobs: bool = False, stream: bool = False, **sampling: Any
) -> Ask:
    """A greedy /generate of a text or of token ids. `sampling` adds to sampling_params (stop, ignore_eos ...)."""
    payload: dict[str, Any] = {
        ("text" if isinstance(text, str) else "input_ids"): text if isinstance(text, str) else list(text),
        "sampling_params": {"temperature": 0, "max_new_tokens": tokens, **sampling},
    }
    if logprobs:
        payload["return_logprob"] = True
    if stream:
        payload["stream"] = True
    return Ask(path=GENERATE, payload=payload, stream=stream)


def chat(context: Context, prompt: str, tokens: int, *, stream: bool = False, **more: Any) -> Ask:
    """A greedy chat turn; a base model (`expect.chat: false`) gets it as a question to be continued."""
    if not context.expect.chat:
        return generate(as_completion(prompt), tokens, stream=stream, stop=["\nQuestion:", "\n\n"])
    payload: dict[str, Any] = {
        "model": context.model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": tokens,
        **more,
    }
    if not context.expect.thinking:
        # Templates that know no such switch ignore it; without it a thinking model spends all tokens on thoughts
        payload["chat_template_kwargs"] = {"enable_thinking": False, "thinking": False}
    if stream:
        payload |= {"stream": True, "stream_options": {"include_usage": True}}
    return Ask(path=CHAT, payload=payload, stream=stream)


def stands_still(health: Answer) -> str:
    """What an answer to HEALTH says of an engine that does not move; empty when it moves, or is not there at all."""
    if health.status == 503 and health.seconds > 15:
        return (
            f"the engine stands still: /health answers 503 after {health.seconds:.0f} s without a sign of a scheduler"
        )
    if health.fault == "timeout":
        return f"the engine stands still: it takes connections, and /health is not answered in {HEALTH.timeout:.0f} s"
    return ""


def as_completion(prompt: str) -> str:
    """A question in the form that a base model continues with its answer."""
    return f"Question: {prompt}\nAnswer:"


def lacks_template(answer: Answer) -> bool:
    """Whether a chat request was refused because the tokenizer has no chat template."""
    return answer.status in (400, 500) and "chat template" in error_text(answer).replace("_", " ").lower()


def agreement(first: Answer, second: Answer) -> Agreement:
    """Compare two greedy answers to one prompt, by token ids and log-probabilities where both have them."""
    one: Sequence[Any] = first.ids if first.ids and second.ids else first.said
    two: Sequence[Any] = second.ids if first.ids and second.ids else second.said
    same = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    size = max(len(one), len(two))
    if same == size:
        return Agreement(equal=True, same=same, of=size)
    tie = _near_tie(first, second, same) if first.ids and second.ids else False
    return Agreement(equal=False, near_tie=tie, same=same, of=size)


def _near_tie(first: Answer, second: Answer, position: int) -> bool:
    if max(len(first.logprobs), len(second.logprobs)) == 0 or position >= min(
        len(first.logprobs), len(second.logprobs)
    ):
        return False
    a, b = first.logprobs[position], second.logprobs[position]
    if a is None or b is None:
        return False
    # Each is the best token of its own run: were one far ahead, rounding could not have changed the choice.
    # exp(-0.2) = 0.82: above that the other token holds less than a quarter of it.
    return abs(a - b) < NEAR_TIE and max(a, b) < -0.2
