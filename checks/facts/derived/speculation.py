"""Derive facts about speculative decoding: the algorithm, its three sizes as the engine resolves them, the overlap.

The default sizes of each release are known here because rules need them; `checks.after.probes.acceptance` judges the
acceptance of draft tokens after the launch.
"""

from __future__ import annotations

from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.vocabulary import EngineRange

EAGLE = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "FROZEN_KV_MTP")
_TREE_BY_DEFAULT = ("LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM")


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.speculative` and `launch.spec_` algorithm, family, triple, steps, topk, draft_tokens, v2 ...."""
    algorithm = str(facts.get("flag.speculative-algorithm") or "").upper()
    if algorithm in ("", "NONE"):
        return {"launch.speculative": False, "launch.spec_algorithm": None, "launch.spec_v2": False}
    family = "eagle" if algorithm in EAGLE else algorithm.lower()
    found: dict[str, Any] = {
        "launch.speculative": True,
        "launch.spec_algorithm": algorithm,
        "launch.spec_family": family,
        "launch.spec_triple": _triple(facts) if family == "eagle" else "none",
        "launch.spec_v2": _overlapped(facts, family),
        "launch.spec_has_draft_path": facts.get("flag.speculative-draft-model-path") is not None,
    }
    found.update(_sizes(facts, family, found["launch.spec_triple"]))
    tokens = found.get("launch.spec_draft_tokens")
    limit = as_number(facts.get("model.max_position_embeddings"))
    wanted = as_number(facts.get("flag.context-length"))
    if tokens and limit:
        # Verification writes up to this position; RoPE tables and page tables end at the model's maximum.
        found["launch.spec_past_context"] = (wanted or limit) + tokens - limit > 0
    found.update(_draft(facts, wanted or limit))
    return found


def _draft(facts: Facts, context: float | None) -> dict[str, Any]:
    """Return the differences between draft and target model; no fact where one side is unknown."""
    found: dict[str, Any] = {}
    draft_limit = as_number(facts.get("draft.max_position_embeddings"))
    if draft_limit and context:
        found["launch.draft_context_short"] = draft_limit < context
    head, experts = facts.get("model.mtp_dtype"), facts.get("model.routed_experts")
    if head and experts:
        found["launch.draft_experts_differ"] = str(head) != str(experts)
    for key in ("vocab_size", "hidden_size", "mla"):
        target, draft = facts.get(f"model.{key}"), facts.get(f"draft.{key}")
        if target is not None and draft is not None:
            found[f"launch.draft_{key}_differs"] = str(target) != str(draft)
    return found


def _triple(facts: Facts) -> str:
    """Return `none`, `complete` or `partial`; with top-k 1 the engine calculates the number of draft tokens itself."""
    steps, topk, tokens = (_number(facts, name) for name in ("num-steps", "eagle-topk", "num-draft-tokens"))
    if steps is None and topk is None and tokens is None:
        return "none"
    if facts.get("flag.speculative-adaptive"):
        return "complete"  # steps are chosen at run time
    return "complete" if steps is not None and topk is not None and (tokens is not None or topk == 1) else "partial"


def _sizes(facts: Facts, family: str, triple: str) -> dict[str, Any]:
    """Return the sizes that the engine chooses (`auto_choose_speculative_params`, end of 0.5.9:srt/server_args.py)."""
    steps, topk, tokens = (_number(facts, name) for name in ("num-steps", "eagle-topk", "num-draft-tokens"))
    if family == "eagle" and triple == "none":
        architectures = facts.get("model.architectures")
        if architectures is None:
            return {}
        steps, topk, tokens = _automatic(facts, architectures)
    elif family in ("dflash", "dspark"):
        steps = topk = 1
        tokens = tokens or _number(facts, "dflash-block-size")
    elif family == "eagle" and topk == 1 and steps is not None:
        tokens = steps + 1  # the engine overrides any other value with a warning
    values = {"spec_steps": steps, "spec_topk": topk, "spec_draft_tokens": tokens}
    return {f"launch.{name}": value for name, value in values.items() if value is not None}


def _automatic(facts: Facts, architectures: Any) -> tuple[int, int, int]:
    standalone = facts.get("launch.spec_algorithm") == "STANDALONE"
    tree = any(name in _TREE_BY_DEFAULT for name in architectures) and not standalone
    return (5, 4, 8) if tree else (3, 1, 4)


def _overlapped(facts: Facts, family: str) -> bool:
    """Return whether the overlapped worker (spec v2) runs; its switch changed in 0.5.4, 0.5.5 and 0.5.11."""
    version = facts.get("engine.version")
    if family != "eagle" or facts.get("flag.disable-overlap-schedule"):
        return family in ("dflash", "dspark")
    setting = str(facts.get("env.SGLANG_ENABLE_SPEC_V2") or "").lower()
    if EngineRange("<0.5.5").contains(version) and version:
        return bool(facts.get("flag.enable-beta-spec"))
    if EngineRange("<0.5.11").contains(version) and version:
        return setting in ("1", "true", "yes", "y", "on", "t")
    if EngineRange("<0.5.13").contains(version) and version:
        # 0.5.11 and 0.5.12 fall back to the older worker for draft trees.
        return setting not in ("0", "false", "no", "n", "off", "f") and (_number(facts, "eagle-topk") or 1) == 1
    return True


def _number(facts: Facts, name: str) -> int | None:
    number = as_number(facts.get(f"flag.speculative-{name}"))
    return int(number) if number is not None else None
