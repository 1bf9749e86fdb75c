"""Derive facts about a model folder: missing or broken files, and whether the release supports the architecture.

Based on measured facts (`model.files`, `model.weight_files`, ..); no file is opened here. `model_config` and
`model_families` derive facts from the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from packaging.version import Version

from checks.catalog.conditions import Facts
from checks.facts.derived.tables import first_releases, releases
from checks.vocabulary import parse_version

_CONFIGS = ("config.json", "params.json")  # params.json: Mistral's own format
_TOKENIZERS = re.compile(
    r"^(tokenizer\.(json|model)|tekken\.json|vocab\.(json|txt)|.*\.tiktoken|spiece\.model|sentencepiece.*\.model)$"
)
_WEIGHTS = re.compile(r"\.(safetensors|bin|pt|pth|gguf|ckpt)$")
_LOAD_FORMATS = {"safetensors": {"safetensors"}, "pt": {"bin", "pt", "pth"}, "npcache": {"bin", "pt"}, "gguf": {"gguf"}}
# Architectures that the engine treats as multimodal (0.5.9:srt/configs/model_config.py, multimodal_model_archs).
_MULTIMODAL = re.compile(
    r"ForConditionalGeneration$|VL|Llava|Vision|^CLIP|^InternVLChat|^MiniCPM[OV]|MultiModality|^Phi4MM|OCR|^Grok1[AV]F"
    r"|^POINTS|^MiDashengLM"
)
_POINTER_BYTES = 1024  # a git-lfs pointer is about 130 bytes; no weight file of a real model is this small


def derive(facts: Facts) -> dict[str, Any]:
    """Return `model.` local_path must_download config_missing weights_missing bad_shard architecture_* ...."""
    found = {**_path(facts), **_folder(facts), **_shards(facts), **_architecture(facts), **_embedding(facts)}
    found |= {f"draft.{name}": value for name, value in _weights(facts.get("draft.weight_files")).items()}
    kinds = found.get("model.weight_kinds")
    wanted = _LOAD_FORMATS.get(str(facts.get("flag.load-format") or "auto"))
    if kinds and wanted:
        found["model.load_format_without_files"] = not wanted & set(kinds)
    return {name: value for name, value in found.items() if facts.get(name) is None}


def _path(facts: Facts) -> dict[str, Any]:
    path = str(facts.get("flag.model-path") or facts.get("model.name") or "")
    if not path:
        return {}
    local = path.startswith(("/", "./", "../", "~")) or path.count("/") > 1
    on_host = facts.get("model.path_exists") is True or facts.get("model.in_local_cache") is True
    return {"model.local_path": local, "model.must_download": not local and not on_host}


def _folder(facts: Facts) -> dict[str, Any]:
    files = facts.get("model.files")
    if not isinstance(files, list | tuple):
        return {}
    names = [_name(item) for item in files]
    found: dict[str, Any] = {"model.config_missing": not any(name in _CONFIGS for name in names)}
    gguf = any(name.endswith(".gguf") for name in names)
    found["model.config_missing"] = found["model.config_missing"] and not gguf
    if names and facts.get("model.weight_files") is None:
        found["model.weight_kinds"] = _kinds(names)
        found["model.weights_missing"] = not found["model.weight_kinds"]
    if names and not gguf and facts.get("model.has_tokenizer") is None:
        found["model.tokenizer_missing"] = not any(_TOKENIZERS.match(name) for name in names)
    return found


def _shards(facts: Facts) -> dict[str, Any]:
    shards = facts.get("model.weight_files")
    found: dict[str, Any] = {}
    if facts.get("model.has_tokenizer") is not None:
        found["model.tokenizer_missing"] = facts["model.has_tokenizer"] is False
    found |= {f"model.{name}": value for name, value in _weights(shards).items()}
    if isinstance(shards, list | tuple) and shards:
        found["model.weight_kinds"] = _kinds([_name(item) for item in shards])
    return found


def _weights(shards: Any) -> dict[str, Any]:
    """Return weights_missing, bad_shards and bad_shard of a folder's weight files; empty if they are not known."""
    if not isinstance(shards, list | tuple):
        return {}
    if not shards:
        return {"weights_missing": True}
    broken = [_name(item) for item in shards if isinstance(item, dict) and _is_broken(item)]
    first = {"bad_shard": broken[0]} if broken else {}
    return {"weights_missing": False, "bad_shards": len(broken), **first}


def _embedding(facts: Facts) -> dict[str, Any]:
    """Compare the stored token embedding with the sizes in config.json, by which the engine allocates it."""
    stored = facts.get("model.embedding_shape")
    sizes = [facts.get(f"model.{name}") for name in ("vocab_size", "hidden_size")]
    if not isinstance(stored, list | tuple) or len(stored) != 2 or facts.get("model.quantized") is not False:
        return {}
    known = [(have, want) for have, want in zip(stored, sizes, strict=True) if isinstance(want, int)]
    return {"model.embedding_differs": any(have != want for have, want in known)} if known else {}


def _kinds(names: Sequence[str]) -> list[str]:
    return sorted({kind[1] for name in names if (kind := _WEIGHTS.search(name))})


def _is_broken(shard: dict[str, Any]) -> bool:
    size, expected = shard.get("bytes"), shard.get("expected_bytes")
    if shard.get("missing") or shard.get("pointer") or shard.get("lfs_pointer"):
        return True
    if not isinstance(size, int | float):
        return False
    if isinstance(expected, int | float):
        return size < expected
    return size < _POINTER_BYTES


def _name(item: object) -> str:
    text = str(item.get("name", "") if isinstance(item, dict) else item)
    return text.rsplit("/", 1)[-1]


def _architecture(facts: Facts) -> dict[str, Any]:
    """Return `model.architecture_first` (release) and `architecture_known`; no fact where a build may have added it."""
    architectures = facts.get("model.architectures")
    engine = parse_version(str(facts.get("engine.version") or ""))
    if not isinstance(architectures, list | tuple) or not architectures:
        return {}
    multimodal = any(_MULTIMODAL.search(str(name)) for name in architectures)
    return {"model.multimodal": multimodal, **(_registered(architectures, engine) if engine else {})}


def _registered(architectures: Sequence[object], engine: Version) -> dict[str, Any]:
    firsts = [Version(first_releases()[name]) for name in map(str, architectures) if name in first_releases()]
    if not firsts:
        return {"model.architecture_listed": False}
    first = min(firsts)
    found: dict[str, Any] = {"model.architecture_listed": True, "model.architecture_first": str(first)}
    following = next((release for release in releases() if release > engine), None)
    if engine < first == following and engine not in releases():
        return found  # a development build towards that release may have it
    return {**found, "model.architecture_known": engine >= first}
