"""Build the requests that probes send, and compare two greedy answers to the same prompt.

All requests are greedy: only at temperature 0 can two answers be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from checks.after.probes.context import Context
from checks.after.probes.exchange import Answer, Ask, error_text

GENERATE = "/generate"
CHAT = "/v1/chat/completions"
HEALTH = Ask(path="/health", timeout=30.0)  # the engine's own limit is 20 s (SGLANG_HEALTH_CHECK_TIMEOUT)
NEAR_TIE = 0.5  # nats: two tokens this close may swap ranks when the batch size changes, in any engine


class Agreement(Struct, frozen=True, kw_only=True):
    """How far two greedy answers agree. `same` counts equal leading tokens (or characters, without ids)."""

    equal: bool
    near_tie: bool = False  # they first differ at a token where both choices were about equally likely
    same: int = 0
    of: int = 0

    @property
    def close(self) -> bool:
        """Whether the answers are equal up to rounding."""
        return self.equal or self.near_tie


def generate(
    text: str | Sequence[int], tokens: int, *, logprobs: bool = False, stream: bool = False, **sampling: Any
) -> Ask:
    """Return a greedy /generate request for a text or token ids. `sampling` extends sampling_params (stop ...)."""
    payload: dict[str, Any] = {
        ("text" if isinstance(text, str) else "input_ids"): text if isinstance(text, str) else list(text),
        "sampling_params": {"temperature": 0, "max_new_tokens": tokens, **sampling},
    }
    if logprobs:
        payload["return_logprob"] = True
    if stream:
        payload["stream"] = True
    return Ask(path=GENERATE, payload=payload, stream=stream)


def chat(context: Context, prompt: str, tokens: int, *, stream: bool = False, **parameters: Any) -> Ask:
    """Return a greedy chat request; a base model (`expect.chat: false`) gets the prompt as a completion instead."""
    if not context.expect.chat:
        return generate(as_completion(prompt), tokens, stream=stream, stop=["\nQuestion:", "\n\n"])
    payload: dict[str, Any] = {
        "model": context.model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": tokens,
        **parameters,
    }
    if not context.expect.thinking:
        # Templates without this switch ignore it; without it a reasoning model spends all tokens on reasoning
        payload["chat_template_kwargs"] = {"enable_thinking": False, "thinking": False}
    if stream:
        payload |= {"stream": True, "stream_options": {"include_usage": True}}
    return Ask(path=CHAT, payload=payload, stream=stream)


def stands_still(health: Answer) -> str:
    """Return how an answer to HEALTH shows a stalled engine; empty when it is running, or not reachable at all."""
    if health.status == 503 and health.seconds > 15:
        return (
            f"the engine is stalled: /health returned 503 after {health.seconds:.0f} s because no scheduler responded"
        )
    if health.fault == "timeout":
        return f"the engine is stalled: it accepts connections but did not answer /health in {HEALTH.timeout:.0f} s"
    return ""


def as_completion(prompt: str) -> str:
    """Return a question in a form that a base model continues with the answer."""
    return f"Question: {prompt}\nAnswer:"


def lacks_template(answer: Answer) -> bool:
    """Return whether a chat request was rejected because the tokenizer has no chat template."""
    return answer.status in (400, 500) and "chat template" in error_text(answer).replace("_", " ").lower()


def agreement(first: Answer, second: Answer) -> Agreement:
    """Compare two greedy answers to one prompt, by token ids and log-probabilities where both have them."""
    left: Sequence[Any] = first.ids if first.ids and second.ids else first.said
    right: Sequence[Any] = second.ids if first.ids and second.ids else second.said
    same = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    size = max(len(left), len(right))
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
    # Each is the most likely token of its run: with a clear winner, rounding could not have changed the choice.
    # exp(-0.2) = 0.82: above that, the other token has less than a quarter of its probability.
    return abs(a - b) < NEAR_TIE and max(a, b) < -0.2
