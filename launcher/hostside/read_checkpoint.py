"""Reads what a checkpoint folder contains: configuration, tokenizer, and shards checked against index and headers.

Tensors are never read: only the headers of safetensors files. Judging the result is left to `checks.before`.
"""

from __future__ import annotations

import json
import os
import struct

HEADER_BUDGET = 32 << 20  # bytes of safetensors headers to parse; after that only file sizes are compared
TEMPLATE_BYTES = 1 << 20
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tiktoken.model", "vocab.json", "spiece.model", "tekken.json")


def checkpoint(path):
    """Return facts about a model path. A path that is not a folder is reported as such: it may be a hub id."""
    if not os.path.isdir(path):
        looks_local = path.startswith(("/", ".", "~"))
        return {"path": path, "path_exists": False, "hub_id": not looks_local, "in_local_cache": in_hub_cache(path)}
    sizes = {}
    for name in sorted(os.listdir(path))[:5000]:
        try:
            sizes[name] = os.path.getsize(os.path.join(path, name))
        except OSError:
            sizes[name] = None  # a dangling link
    weights = [n for n in sizes if n.endswith((".safetensors", ".bin", ".gguf", ".pt")) and "training_args" not in n]
    dtypes, shard_facts, embedding = headers(path, [n for n in weights if n.endswith(".safetensors")], sizes)
    shards = [{"name": n, "bytes": sizes[n], **shard_facts.get(n, {})} for n in weights]
    shards += [{"name": n, "missing": True} for n in missing_shards(path, sizes)]
    return {
        "path": path,
        "path_exists": True,
        "config": load(path, "config.json"),
        "quant_config": load(path, "hf_quant_config.json"),
        "generation_config": load(path, "generation_config.json"),
        "files": list(sizes),
        "weight_files": shards[:400],
        "embedding_shape": embedding,
        "weight_bytes": sum(sizes[n] or 0 for n in weights),
        "has_tokenizer": any(n in sizes for n in TOKENIZERS),
        "has_chat_template": has_chat_template(path, sizes),
        "chat_template_has_think": template_has_think(path, sizes),
        "has_kv_scales": any(n.endswith((".k_scale", ".v_scale", "kv_scale")) for n in dtypes) if dtypes else None,
        "mtp_dtypes": sorted({kind for n, kind in dtypes.items() if is_mtp(n) and n.endswith("weight")}),
        "has_mtp_weights": any(is_mtp(n) for n in dtypes) if dtypes else None,
        "expert_dtypes": stored(dtypes, ".experts."),
        "shared_expert_dtypes": stored(dtypes, ".shared_expert"),
    }


def headers(path, shards, sizes, shapes=None):
    """Return tensor name → dtype of all shards whose header fits the budget, shard name → facts, the embedding's shape.

    The facts of a shard are {"expected_bytes"} from its header, {"pointer"} for a git-lfs pointer, or {"missing"} for a
    dangling link. `shapes`, a mapping, is filled with tensor name → shape.
    """
    tensors: dict = {}
    facts: dict = {}
    embedding = None
    left = HEADER_BUDGET
    for name in shards:
        if sizes[name] is None:
            facts[name] = {"missing": True}
            continue
        try:
            with open(os.path.join(path, name), "rb") as handle:
                start = handle.read(8)
                if start.startswith(b"version "):
                    facts[name] = {"pointer": True}
                    continue
                length = struct.unpack("<Q", start)[0] if len(start) == 8 else 1 << 62
                if length > sizes[name] - 8:
                    facts[name] = {"expected_bytes": 8 + length}
                    continue
                if length > left:
                    continue
                left -= length
                table = json.loads(handle.read(length))
        except (OSError, ValueError):
            continue
        end = max((v["data_offsets"][1] for k, v in table.items() if k != "__metadata__"), default=0)
        facts[name] = {"expected_bytes": 8 + length + end}
        for name in table:
            if name.endswith("model.embed_tokens.weight") and not is_mtp(name):
                embedding = table[name]["shape"]
        if shapes is not None:
            shapes.update({k: v["shape"] for k, v in table.items() if k != "__metadata__"})
        tensors.update({k: v["dtype"] for k, v in table.items() if k != "__metadata__"})
    return tensors, facts, embedding


def missing_shards(path, sizes):
    index = load(path, "model.safetensors.index.json")
    listed = set((index or {}).get("weight_map", {}).values())
    return sorted(name for name in listed if sizes.get(name) is None)[:50]


def has_chat_template(path, sizes):
    if any(n.startswith("chat_template") for n in sizes):
        return True
    return bool((load(path, "tokenizer_config.json") or {}).get("chat_template"))


def template_has_think(path, sizes):
    """Return whether the chat template contains a `<think>` block; None without a readable template."""
    texts = []
    for name in [n for n in sizes if n.startswith("chat_template") and n.endswith((".jinja", ".json"))]:
        try:
            with open(os.path.join(path, name), encoding="utf-8", errors="replace") as handle:
                texts.append(handle.read(TEMPLATE_BYTES))
        except OSError:
            continue
    settings = load(path, "tokenizer_config.json")
    template = settings.get("chat_template") if isinstance(settings, dict) else None
    texts += [template] if isinstance(template, str) else []
    texts += (
        [str(part.get("template")) for part in template if isinstance(part, dict)] if isinstance(template, list) else []
    )
    return any("<think>" in text or "</think>" in text for text in texts) if texts else None


def stored(names, part):
    """Return the dtypes of the expert matrices whose name contains `part`, without scales, biases and draft layers."""
    kinds = {kind for n, kind in names.items() if part in n and not is_mtp(n) and "scale" not in n and "bias" not in n}
    return sorted(kinds)


def is_mtp(name):
    return name.startswith("mtp.") or ".mtp" in name or "nextn" in name or ".eh_proj" in name


def in_hub_cache(name):
    root = os.environ.get("HF_HUB_CACHE") or os.path.join(
        os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface")), "hub"
    )
    return os.path.isdir(os.path.join(root, "models--" + name.replace("/", "--"), "snapshots"))


def load(path, name):
    """Return a JSON file of the folder; None when it is missing, {"error": ...} when it is not JSON."""
    try:
        with open(os.path.join(path, name)) as handle:
            return json.load(handle)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return {"error": str(error)[:200]}
