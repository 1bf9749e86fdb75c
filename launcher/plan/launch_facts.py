"""Turns raw host facts into the Launch that rules judge. The host is measured by `hostside/host_facts.py`.

Facts have the names of docs/facts.md, as in a case file, so that a live host, a captured facts file and a bug report
are judged by the same rules. The sources of the facts are in `fact_sources`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from checks.before.variables import OWN_PREFIX
from checks.facts.derived import feature_packages
from checks.facts.derived.tables import requirements
from checks.facts.launch_evidence import Launch
from checks.vocabulary import FlagValue
from launcher.errors import UsageError
from launcher.plan.named_paths import named_paths

GIB = 1 << 30
_TOOLS = ("nvcc", "cuda_home", "gcc", "ninja", "cuobjdump")
WRITER = "`launch facts --host HOST --out FILE` writes a facts file"
_FORMS = {"host": dict, "engine": dict, "toolchain": dict, "model": dict, "draft_model": dict, "gpus": list}
# Values of a model's config.json that rules and derived facts read, under their names in config.json.
CONFIG_VALUES = (
    "architectures", "dtype", "full_attention_interval", "head_dim", "hidden_size", "index_topk", "intermediate_size",
    "kv_lora_rank", "max_position_embeddings", "moe_intermediate_size", "n_routed_experts", "num_attention_heads",
    "num_experts", "num_hidden_layers", "num_key_value_heads", "num_local_experts", "qk_rope_head_dim", "rope_scaling",
    "torch_dtype", "vocab_size",
)  # fmt: skip
DRAFT_VALUES = (
    "architectures", "hidden_size", "max_position_embeddings", "name", "path_exists", "vocab_size", "weight_files",
    "weights_gb",
)  # fmt: skip
_WIDE = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}


def read_recorded(path: Path) -> dict[str, Any]:
    """Return the facts that `launch facts` wrote into a file. Raises UsageError that names the first invalid value."""
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the recorded facts: {error}", where=str(path), hint=WRITER) from error
    if not isinstance(raw, dict) or "host" not in raw:
        raise UsageError("not a facts file: the key `host` is missing", where=str(path), hint=WRITER)
    if fault := _fault_of(raw):
        raise UsageError(f"not a facts file: {fault}", where=str(path), hint=WRITER)
    return raw


def _fault_of(raw: Mapping[str, Any]) -> str:
    for name, kind in _FORMS.items():
        value = raw.get(name)
        if value is not None and not isinstance(value, kind):
            return f"`{name}` is {type(value).__name__}, expected {kind.__name__}"
    if not isinstance((raw.get("engine") or {}).get("packages") or {}, dict):
        return "`engine.packages` is not a mapping"
    all_mappings = all(isinstance(gpu, dict) for gpu in raw.get("gpus") or ())
    return "" if all_mappings else "`gpus` contains an item that is not a mapping"


def to_launch(
    raw: Mapping[str, Any], flags: Mapping[str, FlagValue], env: Mapping[str, str], asked_packages: Iterable[str] = ()
) -> Launch:
    """Return the launch of these flags on the measured host.

    `asked_packages`, and the packages that settings import or the release requires, are known to be absent if they are
    not installed.
    """
    installed = dict((raw.get("engine") or {}).get("packages") or {})
    required = requirements(engine_version(raw))
    queried = (*asked_packages, *feature_packages.asked_packages(), *(required.requires if required else ()))
    packages: dict[str, str | None] = dict.fromkeys(queried) if installed else {}
    packages.update(installed)
    engine = raw.get("engine") or {}
    variables = {**(raw.get("host") or {}).get("env", {}), **env}
    if engine.get("torch"):
        packages["torch"] = (
            engine["torch"] if "+" in engine["torch"] else _with_cuda(engine["torch"], engine.get("torch_cuda"))
        )
    return Launch(
        engine=engine_version(raw),
        flags=flags,
        env={n: v for n, v in variables.items() if not n.startswith(OWN_PREFIX)},
        gpu=gpu_facts(raw, flags),
        model={**model_facts(raw.get("model")), **_of_hub(raw, "gated")},
        draft_model={k: v for k, v in model_facts(raw.get("draft_model")).items() if k in DRAFT_VALUES},
        packages=packages,
        host={
            **host_facts(raw),
            **_kernel_cache(raw, variables),
            **_of_hub(raw, "reachable", "hub_reachable"),
            **_of_paths(raw, named_paths(flags, variables)),
        },
    )


def engine_version(raw: Mapping[str, Any]) -> str | None:
    """Return the version of SGLang on the host, or None if it is not installed."""
    packages = (raw.get("engine") or {}).get("packages") or {}
    version = packages.get("sglang")
    return str(version) if version else None


def gpu_facts(raw: Mapping[str, Any], flags: Mapping[str, FlagValue]) -> dict[str, Any]:
    """Return facts on the GPUs of a host, taken to be of one kind: name, count, platform, vram_gb, sm, nvlink.

    `vram_gb` is in GiB and rounded; `sm` is 120 for compute capability 12.0. Without GPUs only a CPU launch has facts.
    """
    gpus = raw.get("gpus") or []
    if not gpus:
        return {"count": 0, "platform": "cpu"} if flags.get("device") == "cpu" else {}
    first = gpus[0]
    capability = str(first.get("compute_cap", "")).split(".")
    facts: dict[str, Any] = {
        "name": str(first["name"]).removeprefix("NVIDIA "),
        "count": len(gpus),
        "platform": "cpu" if flags.get("device") == "cpu" else "cuda",
        "vram_gb": round(_mib(first.get("memory.total")) / 1024),
    }
    if len(capability) == 2 and all(part.isdecimal() for part in capability):
        facts["sm"] = int(capability[0]) * 10 + int(capability[1])
    if len(gpus) > 1 and raw.get("topology"):
        facts["nvlink"] = bool(re.search(r"\bNV\d+\b", raw["topology"]))
    return facts


def host_facts(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts `host.*` other than `gpu_facts`. A fact that could not be measured is left out."""
    host, tools, gpus = raw.get("host") or {}, raw.get("toolchain") or {}, raw.get("gpus") or []
    limits, port = host.get("limits") or {}, raw.get("port") or {}
    memlock = limits.get("memlock")
    measured = {
        "driver": gpus[0].get("driver_version") if gpus else None,
        "driver_cuda": tools.get("driver_cuda"),
        "shm_gb": _gib((host.get("shm") or {}).get("total")),
        "memlock_kb": memlock // 1024 if isinstance(memlock, int) else None,
        "memory_limit_gb": _gib(host.get("memory_limit")),
        "free_memory_gb": _gib((host.get("memory") or {}).get("available")),
        "gpu_free_gb": [round(_mib(gpu.get("memory.free")) / 1024, 1) for gpu in gpus] or None,
        "gpus_visible": len(gpus) if gpus else None,
        "gpu_ids": [str(gpu["uuid"]) for gpu in gpus if gpu.get("uuid")] or None,
        "gpu_processes": len(raw.get("gpu_processes") or []) if gpus else None,
        "peer_access": peer_access(raw.get("peer_read")) if len(gpus) > 1 else None,
        "rdma_devices": host.get("rdma_devices"),
        "peermem": host.get("peermem"),
        "hf_token": host.get("hf_token"),
        "in_container": host.get("in_container"),
        "numa_nodes": host.get("numa_nodes"),
        "operating_system": host.get("system"),
        "glibc": str(host.get("libc", "")).rpartition(" ")[2] or None,
        "process_limit": limits.get("nproc"),
        "python_headers": (raw.get("engine") or {}).get("headers"),
        "platform_plugins": (raw.get("engine") or {}).get("plugins"),
        "fabric_manager": raw.get("fabric_manager"),
        "missing_libraries": (raw.get("libraries") or {}).get("missing"),
        "cuda_libraries": (raw.get("libraries") or {}).get("cuda") or None,
        "ports_in_use": [raw["asked"]["port"]] if port and not port.get("free") and "asked" in raw else [],
        "proxies": sorted(host.get("proxies") or {}),
    }
    known = {name: value for name, value in measured.items() if value is not None}
    if "memlock" in limits and memlock is None:
        known["memlock_kb"] = 1 << 40  # unlimited
    # a tool that was searched for and not found is null for rules, unlike one that was never searched for
    return {**known, **{name: tools.get(name) for name in _TOOLS if name in tools}}


def peer_access(matrix: str | None) -> bool | None:
    """Return whether every GPU can read every other GPU, from `nvidia-smi topo -p2p r`; None if it does not show it."""
    cells = re.findall(r"\b(OK|CNS|GNS|TNS|NS|DR|U)\b", (matrix or "").split("Legend")[0])
    return all(cell == "OK" for cell in cells) if cells else None


def model_facts(content: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the facts `model.*` from the content of a checkpoint folder, as `hostside/read_checkpoint.py` reports it.

    A hub id that is not on the host yields only name, path_exists and in_local_cache. `weights_gb` is in 10^9 bytes.
    """
    if not content:
        return {}
    if not content.get("path_exists"):
        return {
            "name": content["path"],
            "path_exists": None if content.get("hub_id") else False,
            "in_local_cache": content.get("in_local_cache"),
        }
    config = _mapping(content.get("config"))
    text = _mapping(config.get("text_config"))
    merged = {**config, **text, "architectures": config.get("architectures") or text.get("architectures")}
    values = {name: merged[name] for name in CONFIG_VALUES if merged.get(name) is not None}
    vision = _mapping(config.get("vision_config")).get("num_heads")
    quantization = config.get("quantization_config") or (content.get("quant_config") or {}).get("quantization")
    parts = {"mtp_dtype": "mtp_dtypes", "routed_experts": "expert_dtypes", "shared_experts": "shared_expert_dtypes"}
    kinds = {name: _format(content.get(key) or [], quantization) for name, key in parts.items()}
    optional = ("embedding_shape", "generation_config", "has_mtp_weights", "has_kv_scales", "chat_template_has_think")
    return {
        **values,
        "name": config.get("_name_or_path") or content["path"],
        "path_exists": True,
        "config_readable": bool(config) and "error" not in config,
        "quantization": _quantization(quantization, content.get("quant_config")),
        "scale_fmt": (quantization or {}).get("scale_fmt"),
        **({"weights_gb": round(content["weight_bytes"] / 1e9, 3)} if content["weight_bytes"] else {}),
        "files": content["files"],
        "weight_files": content["weight_files"],
        "has_tokenizer": content["has_tokenizer"],
        "has_chat_template": content["has_chat_template"],
        **{name: content[name] for name in optional if content.get(name) is not None},
        **{name: kind for name, kind in kinds.items() if kind},
        **({"vision_num_heads": vision} if vision is not None else {}),
    }


def _format(dtypes: Sequence[str], quantization: Mapping[str, Any] | None) -> str:
    """Return the storage format of a part of a model, from its narrowest dtypes: `bfloat16`, `fp8`, `nvfp4`, ...

    Empty if it is unknown.
    """
    narrow = [kind for kind in dtypes if kind not in _WIDE]
    if not narrow:
        return _WIDE[dtypes[0]] if dtypes else ""
    if any(kind.startswith("F8") for kind in narrow) and "U8" not in narrow:
        return "fp8"
    stated = " ".join(str(value) for value in (quantization or {}).values() if isinstance(value, str)).lower()
    packed = next((kind for kind in ("nvfp4", "mxfp4", "fp4") if kind in stated), "")
    return packed if "U8" in narrow and packed else "int8" if narrow == ["I8"] else "packed"


def _kernel_cache(raw: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return `host.triton_cache_*` as measured, if the launch keeps its kernels in the folder that was measured."""
    cache = raw.get("triton_cache") or {}
    folder = env.get("TRITON_CACHE_DIR", cache.get("dir"))
    if not cache or folder != cache["dir"]:
        return {}
    facts = {"triton_cache_dir": folder, "triton_cache_writable": cache["writable"]}
    return {**facts, "triton_cache_filesystem": cache["filesystem"]} if cache["filesystem"] else facts


def _of_paths(raw: Mapping[str, Any], wanted: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return what was measured of the paths that this launch names; the recorded launch may have named others."""
    asked, looked = (raw.get("asked") or {}).get("paths") or {}, raw.get("paths") or {}
    facts = {}
    for fact, kind in (("paths_read", "read"), ("paths_written", "written"), ("adapters", "adapters")):
        same = {name: path for name, path in wanted[kind].items() if (asked.get(kind) or {}).get(name) == path}
        label = "{}" if kind == "adapters" else "{} {}"
        known = looked.get(kind) or {}
        facts[fact] = {label.format(name, path): known[name] for name, path in same.items() if name in known}
    return {name: value for name, value in facts.items() if value}


def _of_hub(raw: Mapping[str, Any], key: str, name: str = "") -> dict[str, Any]:
    value = (raw.get("hub") or {}).get(key)
    return {} if value is None else {name or key: value}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _quantization(config: Mapping[str, Any] | None, modelopt: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not config:
        return None
    return {**({"quant_method": "modelopt"} if modelopt and "quant_method" not in config else {}), **config}


def _with_cuda(version: str, cuda: str | None) -> str:
    return f"{version}+cu{cuda.replace('.', '')}" if cuda else version


def _gib(size: object) -> float | None:
    return round(size / GIB, 1) if isinstance(size, int) else None


def _mib(text: object) -> float:
    try:
        return float(str(text))
    except ValueError:
        return 0.0
