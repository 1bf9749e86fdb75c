"""The parameters of each kind of probe: their names and types, and the reader that refuses every other.

A parameter is read by the script of its kind, which also holds the default (`registry.KINDS` names the scripts). What
a profile may ask of a probe is `expectations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from checks import KNOWLEDGE
from checks.catalog.yaml_reader import Node, YamlError, did_you_mean


class Param(Struct, frozen=True):
    """One parameter: the check of its value, and whether a probe of the kind must give it."""

    check: Callable[[Node], None]
    needed: bool = False


def _text(node: Node) -> None:
    if not node.text().strip():
        raise node.fail("expected text, found an empty one")


def _count(node: Node) -> None:
    if type(node.value) is not int or node.value < 1:
        raise node.fail("expected a whole number from 1")


def _number(node: Node) -> None:
    if node.number() < 0:
        raise node.fail("expected a number, 0 or more")


def _share(node: Node) -> None:
    if not 0 <= node.number() <= 1:
        raise node.fail("expected a share from 0 to 1")


def _listed(check: Callable[[Node], None]) -> Callable[[Node], None]:
    def each(node: Node) -> None:
        if not node.sequence():
            raise node.fail("expected a list of at least one")
        for item in node.sequence():
            check(item)

    return each


def _question(node: Node) -> None:
    node.mapping(("prompt", "accept"))
    _text(node.need("prompt"))
    _listed(_text)(node.need("accept"))


def _schema(node: Node) -> None:
    _text(node.need("type"))


def _word(*words: str) -> Callable[[Node], None]:
    def one(node: Node) -> None:
        if node.text() not in words:
            raise node.fail(f"`{node.text()}` is not one of {', '.join(words)}", did_you_mean(node.text(), words))

    return one


def _accuracy_set(node: Node) -> None:
    _word(*sorted(path.stem for path in (KNOWLEDGE / "accuracy").glob("*.yaml")))(node)


_PROMPT = Param(_text, needed=True)
_COUNT, _NUMBER, _SHARE = Param(_count), Param(_number), Param(_share)

PARAMS: Mapping[str, Mapping[str, Param]] = {
    "health": {},
    "names-model": {},
    "known-answer": {
        "questions": Param(_listed(_question), needed=True), "more": Param(_listed(_question)), "max_tokens": _COUNT,
        "thinking_tokens": _COUNT,
    },
    "greedy-repeat": {"prompt": _PROMPT, "max_tokens": _COUNT},
    "limits": {"prompt": _PROMPT, "max_tokens": _COUNT},
    "stream-equals-plain": {"prompt": _PROMPT, "max_tokens": _COUNT},
    "prose": {"prompt": _PROMPT, "max_tokens": _COUNT, "common_words": _SHARE},
    "logprobs": {"prompt": _PROMPT, "max_tokens": _COUNT, "prompt_nll": _NUMBER},
    "long-prompt": {"max_tokens": _COUNT, "most_tokens": _COUNT, "seed": _COUNT},
    "needle": {"depths": Param(_listed(_share), needed=True), "tokens": _COUNT, "max_tokens": _COUNT},
    "cache-rerun": {"tokens": _COUNT, "max_tokens": _COUNT, "seed": _COUNT},
    "concurrency-agreement": {"prompts": _COUNT, "max_tokens": _COUNT, "at_once": _COUNT, "tolerance": _SHARE},
    "batch-sweep": {"max_tokens": _COUNT, "most_sizes": _COUNT},
    "context-edge": {"most_tokens": _COUNT},
    "abort": {"max_tokens": _COUNT, "looks": _COUNT},
    "pulse": {"max_tokens": _COUNT, "each": _COUNT, "timeout": _NUMBER},
    "tool-call": {"prompt": _PROMPT, "max_tokens": _COUNT},
    "reasoning": {"prompt": _PROMPT, "max_tokens": _COUNT},
    "json-schema": {"prompt": _PROMPT, "max_tokens": _COUNT, "schema": Param(_schema, needed=True)},
    "adapters": {"prompt": _PROMPT, "most": _COUNT},
    "fingerprint": {"prompt": _PROMPT, "tokens": _COUNT, "top": _COUNT, "kl_at_most": _NUMBER},
    "greedy-baseline": {"prompts": _COUNT, "max_tokens": _COUNT, "tolerance": _SHARE},
    "speculation": {"prompts": Param(_listed(_text), needed=True), "max_tokens": _COUNT},
    "speed": {"tokens": _COUNT, "repeats": _COUNT, "margin": _NUMBER},
    "sampled": {"prompt": _PROMPT, "max_tokens": _COUNT, "answers": _COUNT},
    "long-answer": {"prompt": _PROMPT, "max_tokens": _COUNT},
    "needles": {"max_tokens": _COUNT, "most_tokens": _COUNT},
    "sampling-limits": {"prompt": _PROMPT, "max_tokens": _COUNT},
    "penalties": {"max_tokens": _COUNT},
    "prefill-equals-decode": {"prompt": _PROMPT, "max_tokens": _COUNT, "nats": _NUMBER},
    "chat-limits": {"prompt": _PROMPT, "max_tokens": _COUNT},
    "system-and-history": {"max_tokens": _COUNT},
    "every-script": {"max_tokens": _COUNT},
    "sampling-distribution": {"prompt": _PROMPT, "draws": _COUNT},
    "exact-copies": {"max_tokens": _COUNT},
    "token-counts": {"tokens": _COUNT},
    "conversation": {"max_tokens": _COUNT},
    "users-apart": {"at_once": _COUNT, "rounds": _COUNT, "max_tokens": _COUNT},
    "after-a-pause": {"prompt": _PROMPT, "max_tokens": _COUNT, "pause": _NUMBER},
    "completions": {"max_tokens": _COUNT},
    "embeddings": {}, "rerank": {}, "classify": {}, "reports": {},
    "pictures": {"max_tokens": _COUNT},
    "rich-schema": {"max_tokens": _COUNT},
    "several-tools": {"max_tokens": _COUNT},
    "reply-contract": {}, "every-text": {}, "every-stream": {},
    "accuracy": {"set": Param(_accuracy_set, needed=True), "form": Param(_word("chat", "few-shot")), "n": _COUNT},
}  # fmt: skip
"""Kind of probe → its parameters; a kind without an entry has no script and no observer either."""


def read_params(kind: str, entry: Node) -> Mapping[str, Any]:
    """The `params` of a probe's file. Raises YamlError for an unknown, missing or wrongly typed parameter."""
    known = PARAMS[kind]
    node = entry.get("params") or Node({}, entry.path, entry.line, entry.column, {})
    for name, value in node.mapping().items():
        if name not in known:
            hint = did_you_mean(name, known) or f"`{kind}` has no parameters"
            raise YamlError(f"`{kind}` has no parameter `{name}`", node.key_where(name), hint)
        known[name].check(value)
    for name, param in known.items():
        if param.needed:
            node.need(name)
    return {name: value.plain() for name, value in node.mapping().items()}
