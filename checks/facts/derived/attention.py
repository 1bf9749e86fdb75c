"""Derive facts about attention and caching: the default backends of a release, page size, radix cache, context.

Only what argument resolution decides; there is no fact where GPU or model are unknown. `mamba_strategy` below has the
rules for hybrid models.
"""

from __future__ import annotations

import json
from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.vocabulary import EngineRange

# 0.5.7 made trtllm_mha the default of dense models on SM100 (0.5.7:srt/server_args.py:1535).
_TRTLLM_DEFAULT = EngineRange(">=0.5.7")
_FLASHINFER_GDN = EngineRange(">=0.5.13")
# Page sizes that a backend forces whatever the flag (0.5.10:srt/server_args.py:2328-2442).
_FORCED_PAGES = {"flashmla": 64, "cutlass_mla": 128, "trtllm_mla": 64, "trtllm_mha": 64}
_ACCEPTED_PAGES = {"trtllm_mla": (32, 64), "trtllm_mha": (16, 32, 64, 128)}


def derive(facts: Facts) -> dict[str, Any]:
    """Return `launch.` attention backends, page_size, chunk_mod_page, radix_cache, mamba_strategy, context_over."""
    found: dict[str, Any] = {"launch.radix_cache": not facts.get("flag.disable-radix-cache")}
    backend = _given(facts, "attention-backend") or _default_backend(facts)
    prefill = _given(facts, "prefill-attention-backend") or backend
    decode = _given(facts, "decode-attention-backend") or backend
    backends = {
        "launch.attention_backend": prefill if prefill == decode else backend,
        "launch.prefill_attention_backend": prefill,
        "launch.decode_attention_backend": decode,
    }
    found.update({name: value for name, value in backends.items() if value})
    if prefill and decode:
        found["launch.attention_split"] = prefill != decode
    elif _given(facts, "prefill-attention-backend") or _given(facts, "decode-attention-backend"):
        found["launch.attention_split"] = True
    else:
        found["launch.attention_split"] = False
    found.update(_pages(facts, decode))
    found.update(_linear_backends(facts))
    strategy = mamba_strategy(facts)
    if strategy:
        found["launch.mamba_strategy"] = strategy
    found.update(_context(facts))
    return found


def _context(facts: Facts) -> dict[str, Any]:
    """Compare the requested context with the maximum of `get_context_length` (0.5.9:.. common.py:456)."""
    override = _override(facts)
    text = override.get("text_config")
    values = {**override, **text} if isinstance(text, dict) else override
    scaling = values.get("rope_scaling") or values.get("rope_parameters")
    found: dict[str, Any] = {"launch.rope_scaling_override": bool(scaling)}
    limit = as_number(values.get("max_position_embeddings", facts.get("model.max_position_embeddings")))
    wanted = as_number(facts.get("flag.context-length"))
    scaling = scaling or facts.get("model.rope_scaling")
    if limit and isinstance(scaling, dict) and "original_max_position_embeddings" not in scaling:
        limit *= 1.0 if scaling.get("rope_type") == "llama3" else as_number(scaling.get("factor", 1)) or 1.0
    if limit and wanted:
        found["launch.context_over"] = wanted > limit
    return found


def _override(facts: Facts) -> dict[str, Any]:
    try:
        data = json.loads(str(facts.get("flag.json-model-override-args") or "{}"))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def mamba_strategy(facts: Facts) -> str | None:
    """Return the state strategy of a hybrid model: `extra_buffer`, `extra_buffer_lazy`, `no_buffer`; None if unknown.

    `auto` meant no_buffer until 0.5.13 and is resolved from 0.5.14 on (0.5.14:srt/server_args.py:4380).
    """
    asked = _given(facts, "mamba-radix-cache-strategy") or "auto"
    if asked != "auto":
        return asked
    if facts.get("model.hybrid") is not True:
        return None
    version = facts.get("engine.version")
    if not version:
        return None
    if EngineRange("<0.5.14").contains(version):
        return "no_buffer"
    paged = (as_number(facts.get("flag.page-size")) or 1) > 1
    overlap = not facts.get("flag.disable-overlap-schedule")
    linear = _given(facts, "linear-attn-backend") or "triton"
    supported = linear == "triton" and facts.get("model.recurrent") != "short-conv"
    return "extra_buffer" if (paged or overlap) and supported else "no_buffer"


def _linear_backends(facts: Facts) -> dict[str, Any]:
    """Return the linear attention backends; 0.5.13 made FlashInfer the decode default on SM100 with bfloat16 state."""
    base = _given(facts, "linear-attn-backend") or "triton"
    sm = as_number(facts.get("host.sm")) or 0
    automatic = 100 <= sm < 110 and facts.get("flag.mamba-ssm-dtype") == "bfloat16"
    decode = _given(facts, "linear-attn-decode-backend")
    version = facts.get("engine.version")
    if decode is None and automatic and version and _FLASHINFER_GDN.contains(version):
        decode = "flashinfer"
    decode = decode or base
    return {
        "launch.linear_decode_backend": decode,
        "launch.linear_prefill_backend": _given(facts, "linear-attn-prefill-backend") or base,
        "launch.linear_verify_backend": _given(facts, "linear-attn-verify-backend") or decode,
    }


def _default_backend(facts: Facts) -> str | None:
    """Return the result of `_get_default_attn_backend` on CUDA; None when GPU, model or version do not determine it."""
    sm, version = as_number(facts.get("host.sm")), facts.get("engine.version")
    mla = facts.get("model.mla")
    if sm is None or not version or mla is None or facts.get("host.platform", "cuda") != "cuda":
        return None
    if facts.get("model.dsa") or facts.get("model.query_sparse_attention"):
        return None  # these models have their own backends
    topk = as_number(facts.get("launch.spec_topk")) or as_number(facts.get("flag.speculative-eagle-topk")) or 1
    if mla:
        return "fa3" if sm == 90 else "flashinfer" if 100 <= sm < 110 else "triton"
    if facts.get("model.gdn") and 100 <= sm < 110:
        return None  # triton or trtllm_mha by release and strategy; both are accepted there
    if sm == 90 and topk == 1:
        return "fa3"
    if 100 <= sm < 110 and topk == 1 and _TRTLLM_DEFAULT.contains(version) and _topk_settled(facts):
        return "trtllm_mha"
    return "flashinfer"


def _topk_settled(facts: Facts) -> bool:
    return not facts.get("flag.speculative-algorithm") or facts.get("flag.speculative-eagle-topk") is not None


def _pages(facts: Facts, decode: str | None) -> dict[str, Any]:
    asked = as_number(facts.get("flag.page-size"))
    forced = _FORCED_PAGES.get(decode or "")
    accepted = _ACCEPTED_PAGES.get(decode or "", (forced,))
    size = float(forced) if forced and asked not in accepted else asked or 1.0
    found: dict[str, Any] = {"launch.page_size": int(size)}
    chunk = as_number(facts.get("flag.chunked-prefill-size"))
    if chunk is not None and size >= 1 and facts.get("flag.disaggregation-mode") != "decode":
        if facts.get("launch.dp_attention"):
            chunk //= facts.get("launch.dp_size") or 1  # every rank processes its share of the chunk
        found["launch.chunk_mod_page"] = int(chunk) % int(size) if chunk > 0 else 0
    return found


def _given(facts: Facts, flag: str) -> str | None:
    value = facts.get(f"flag.{flag}")
    return str(value) if value else None
