"""Judge what a look at the host says about the files, folders and LoRA adapters that a launch names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from checks.catalog.conditions import Facts, as_number

# Layers that every release adapts (0.5.11:srt/lora/utils.py get_normalized_target_modules); a model may name others.
_ADAPTED = frozenset({
    "q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj", "down_proj",
    "embed_tokens", "lm_head",
})  # fmt: skip
_PLAIN = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")  # no layers of their own
_FROM_HIDDEN = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.path_faults`, `launch.folder_faults` and `launch.adapter_faults`, each a list of sentences."""
    found = {
        "launch.path_faults": [*_faults(facts.get("host.paths_read")), *_pairs(facts)],
        "launch.folder_faults": _faults(facts.get("host.paths_written")),
        "launch.adapter_faults": list(_adapters(facts)),
    }
    return {name: texts for name, texts in found.items() if texts}


def _faults(looked: Any) -> list[str]:
    return [f"{name} {fault}" for name, fault in looked.items() if fault] if isinstance(looked, Mapping) else []


def _pairs(facts: Facts) -> Iterator[str]:
    """Yield a certificate without its key, or the reverse: uvicorn needs both to serve HTTPS."""
    for one, other in (("ssl-certfile", "ssl-keyfile"), ("ssl-keyfile", "ssl-certfile")):
        if facts.get(f"flag.{one}") and not facts.get(f"flag.{other}"):
            yield f"--{one} is given without --{other}"


def _adapters(facts: Facts) -> Iterator[str]:
    looked = facts.get("host.adapters")
    for name, content in looked.items() if isinstance(looked, Mapping) else ():
        if content.get("fault"):
            yield f"{name} {content['fault']}"
        else:
            yield from (f"{name} {text}" for text in _of_adapter(content, facts))


def _of_adapter(content: Mapping[str, Any], facts: Facts) -> Iterator[str]:
    config = content.get("config") or {}
    rank, most = as_number(config.get("r")), as_number(facts.get("flag.max-lora-rank"))
    if rank is not None and most is not None and rank > most:
        yield f"has rank {rank:.0f}, more than --max-lora-rank {most:.0f}"
    if config.get("use_dora"):
        yield "is a DoRA adapter, which the engine does not serve"
    targets = config.get("target_modules")
    plain = any(name in _PLAIN for name in facts.get("model.architectures") or ())
    if isinstance(targets, list) and plain and (odd := sorted({_leaf(name) for name in targets} - _ADAPTED)):
        yield f"adapts {', '.join(odd)}, which the model does not have"
    hidden = as_number(facts.get("model.hidden_size"))
    for module, width in (content.get("in_features") or {}).items():
        if module in _FROM_HIDDEN and hidden is not None and width != hidden:
            yield f"was made for a hidden size of {width}, the model has {hidden:.0f}"
            return


def _leaf(module: str) -> str:
    return module.rpartition(".")[2]
