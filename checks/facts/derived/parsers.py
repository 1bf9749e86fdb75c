"""Derive facts about parsers: does the tool call or reasoning parser fit the syntax of the model family?

Two tables, taken from the engine's detectors (0.5.23:srt/function_call, srt/parser/reasoning_parser.py). A family that
is not listed gives no fact.
"""

from __future__ import annotations

import re
from typing import Any

from checks.catalog.conditions import Facts

_TOOLS: dict[str, tuple[str, ...]] = {
    "qwen2.5": ("qwen25", "qwen", "hermes"),
    "qwen3": ("qwen25", "qwen", "hermes"),
    "qwen3-next": ("qwen25", "qwen", "hermes", "qwen3_coder"),
    "qwen3-coder": ("qwen3_coder",),
    "qwen3.5": ("qwen3_coder",),
    "deepseek-v3": ("deepseekv3",),
    "deepseek-r1": ("deepseekv3",),
    "deepseek-v3.1": ("deepseekv31",),
    "deepseek-v3.2": ("deepseekv32",),
    "deepseek-v4": ("deepseekv4", "deepseekv41"),
    "glm-4.5": ("glm45", "glm", "glm47"),
    "glm-4.7": ("glm47", "glm"),
    "kimi-k2": ("kimi_k2",),
    "kimi-k3": ("kimi_k3",),
    "gpt-oss": ("gpt-oss",),
    "llama-3": ("llama3", "pythonic"),
    "llama-4": ("pythonic", "llama3"),
    "minimax-m2": ("minimax-m2",),
    "step3": ("step3", "step3p5"),
    "mimo": ("mimo", "qwen25", "qwen"),
    "gemma-4": ("gemma4",),
    "mistral": ("mistral",),
}
_REASONING: dict[str, tuple[str, ...]] = {
    "qwen3": ("qwen3", "qwen3-thinking", "deepseek-r1"),
    "qwen3-next": ("qwen3", "qwen3-thinking", "deepseek-r1"),
    "qwen3.5": ("qwen3", "qwen3-thinking"),
    "deepseek-r1": ("deepseek-r1",),
    "deepseek-v3": ("deepseek-v3",),
    "deepseek-v3.1": ("deepseek-v3",),
    "deepseek-v3.2": ("deepseek-v3",),
    "deepseek-v4": ("deepseek-v4", "deepseek-v41"),
    "glm-4.5": ("glm45",),
    "glm-4.7": ("glm45",),
    "kimi-k2": ("kimi_k2",),
    "kimi-k3": ("kimi_k3",),
    "gpt-oss": ("gpt-oss",),
    "minimax-m2": ("minimax", "minimax-append-think"),
    "step3": ("step3", "step3p5"),
    "mimo": ("mimo", "qwen3"),
    "gemma-4": ("gemma4",),
    "nemotron-3": ("nemotron_3", "nano_v3", "deepseek-r1"),
    "mistral": ("mistral",),
    "qwen2.5": (),
    "qwen3-coder": (),
    "llama-3": (),
    "llama-4": (),
}
_ANY = ("auto", "response_template")
# Parsers that look for `<think>` or `</think>`, and whose models' chat templates write one of them.
THINK_MARKS = (
    "deepseek-r1", "deepseek-v3", "glm45", "kimi_k2", "mimo", "nano_v3", "nemotron_3", "qwen3", "qwen3-thinking",
)  # fmt: skip
# Qwen3 `Instruct` checkpoints never produce reasoning; the small Qwen3.5 checkpoints do so only on request.
_NO_REASONING = re.compile(r"qwen-?3.*instruct|qwen-?3\.5-(0\.8|2|4|9)b", re.IGNORECASE)


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.` tool_parser_fits, tool_parser_wanted, reasoning_parser_fits, reasoning_parser_wanted."""
    family = str(facts.get("model.family") or "")
    derived = {
        **_judge("tool", facts.get("flag.tool-call-parser"), _TOOLS.get(family)),
        **_judge("reasoning", facts.get("flag.reasoning-parser"), _REASONING.get(family)),
    }
    unmarked = facts.get("model.chat_template_has_think") is False and facts.get("flag.reasoning-parser") in THINK_MARKS
    plain = unmarked or _NO_REASONING.search(str(facts.get("model.name") or ""))
    if plain and "launch.reasoning_parser_fits" in derived:
        derived.update({"launch.reasoning_parser_fits": False, "launch.reasoning_parser_wanted": "none"})
    return derived


def _judge(kind: str, parser: object, fitting: tuple[str, ...] | None) -> dict[str, Any]:
    if not parser or fitting is None:
        return {}
    return {
        f"launch.{kind}_parser_fits": str(parser) in fitting or str(parser) in _ANY,
        f"launch.{kind}_parser_wanted": " or ".join(fitting) or "none",
    }
