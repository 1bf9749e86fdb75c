"""Raw host facts → what rules see. The asking is done by `hostside/host_facts.py`, recorded answers test this.

Names are those of docs/facts.md, which are also those of a case file, so that a live host, a captured facts file
and a bug report are judged by the same rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from checks.facts.derived.tables import requirements
from checks.facts.launch_evidence import Launch
from checks.vocabulary import FlagValue
from launcher.errors import UsageError

GIB = 1 << 30
OURS = "SGLANG_LAUNCHER_"  # variables of this program, which the engine's tables do not know
_TOOLS = ("nvcc", "cuda_home", "gcc", "ninja", "cuobjdump")
WRITER = "`launch facts --host HOST --out FILE` writes them"
_FORMS = {"host": dict, "engine": dict, "toolchain": dict, "model": dict, "draft_model": dict, "gpus": list}
# What rules and derived facts read of a model's configuration, under the names it has there.
CONFIG_VALUES = (
    "architectures", "dtype", "full_attention_interval", "head_dim", "hidden_size", "index_topk", "intermediate_size",
    "kv_lora_rank", "max_position_embeddings", "moe_intermediate_size", "n_routed_experts", "num_attention_heads",
    "num_experts", "num_hidden_layers", "num_key_value_heads", "num_local_experts", "qk_rope_head_dim", "rope_scaling",
    "torch_dtype", "vocab_size",
)  # fmt: skip
DRAFT_VALUES = (
    "architectures", "hidden_size", "max_position_embeddings", "name", "path_exists", "vocab_size", "weights_gb",
)  # fmt: skip
_WIDE = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}


def read_recorded(path: Path) -> dict[str, Any]:
    """Facts that `launch facts` wrote into a file. Raises UsageError naming what has another form."""
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"recorded facts cannot be read: {error}", where=str(path)) from error
    if not isinstance(raw, dict) or "host" not in raw:
        raise UsageError("this file holds no facts of a host", where=str(path), hint=WRITER)
    if fault := _fault_of(raw):
        raise UsageError(f"facts of another form: {fault}", where=str(path), hint=WRITER)
    return raw


def _fault_of(raw: Mapping[str, Any]) -> str:
    for name, kind in _FORMS.items():
        value = raw.get(name)
        if value is not None and not isinstance(value, kind):
            return f"`{name}` is {type(value).__name__}, not {kind.__name__}"
    if not isinstance((raw.get("engine") or {}).get("packages") or {}, dict):
        return "`engine.packages` is no mapping"
    return "" if all(isinstance(gpu, dict) for gpu in raw.get("gpus") or ()) else "`gpus` holds what is no mapping"


def to_launch(
    raw: Mapping[str, Any], flags: Mapping[str, FlagValue], env: Mapping[str, str], asked_packages: Iterable[str] = ()
) -> Launch:
    """The launch of these flags there. What is not installed of `asked_packages`, and of what the release requires,
    becomes known-absent."""
    installed = dict((raw.get("engine") or {}).get("packages") or {})
    required = requirements(engine_version(raw))
    asked = (*asked_packages, *(required.requires if required else ()))
    packages: dict[str, str | None] = dict.fromkeys(asked) if installed else {}
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
        env={n: v for n, v in variables.items() if not n.startswith(OURS)},
        gpu=gpu_facts(raw, flags),
        model={**model_facts(raw.get("model")), **_of_hub(raw, "gated")},
        draft_model={k: v for k, v in model_facts(raw.get("draft_model")).items() if k in DRAFT_VALUES},
        packages=packages,
        host={**host_facts(raw), **_kernel_cache(raw, variables), **_of_hub(raw, "reachable", "hub_reachable")},
    )


def engine_version(raw: Mapping[str, Any]) -> str | None:
    """Version of the engine on the host; None when there is none."""
    packages = (raw.get("engine") or {}).get("packages") or {}
    version = packages.get("sglang")
    return str(version) if version else None


def gpu_facts(raw: Mapping[str, Any], flags: Mapping[str, FlagValue]) -> dict[str, Any]:
    """The GPUs as one kind: name, sm (120 for compute capability 12.0), count, vram_gb, nvlink, platform."""
    gpus = raw.get("gpus") or []
    if not gpus:
        return {"count": 0, "platform": "cpu"} if flags.get("device") == "cpu" else {}
    first = gpus[0]
    capability = str(first.get("compute_cap", "")).split(".")
    found: dict[str, Any] = {
        "name": str(first["name"]).removeprefix("NVIDIA "),
        "count": len(gpus),
        "platform": "cpu" if flags.get("device") == "cpu" else "cuda",
        "vram_gb": round(_mib(first.get("memory.total")) / 1024),
    }
    if len(capability) == 2 and all(part.isdigit() for part in capability):
        found["sm"] = int(capability[0]) * 10 + int(capability[1])
    if len(gpus) > 1 and raw.get("topology"):
        found["nvlink"] = bool(re.search(r"\bNV\d+\b", raw["topology"]))
    return found


def host_facts(raw: Mapping[str, Any]) -> dict[str, Any]:
    """`host.*` beside the GPUs; only what was really found out."""
    host, tools, gpus = raw.get("host") or {}, raw.get("toolchain") or {}, raw.get("gpus") or []
    limits, port = host.get("limits") or {}, raw.get("port") or {}
    memlock = limits.get("memlock")
    found = {
        "driver": gpus[0].get("driver_version") if gpus else None,
        "driver_cuda": tools.get("driver_cuda"),
        "shm_gb": _gib((host.get("shm") or {}).get("total")),
        "memlock_kb": memlock // 1024 if isinstance(memlock, int) else None,
        "memory_limit_gb": _gib(host.get("memory_limit")),
        "free_memory_gb": _gib((host.get("memory") or {}).get("available")),
        "gpu_free_gb": [round(_mib(gpu.get("memory.free")) / 1024, 1) for gpu in gpus] or None,
        "gpus_visible": len(gpus) if gpus else None,
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
    known = {name: value for name, value in found.items() if value is not None}
    if "memlock" in limits and memlock is None:
        known["memlock_kb"] = 1 << 40  # unlimited
    # looked for and absent is something else than not looked for: rules see null
    return {**known, **{name: tools.get(name) for name in _TOOLS if name in tools}}


def peer_access(matrix: str | None) -> bool | None:
    """Whether every GPU can read every other one, out of `nvidia-smi topo -p2p r`; None when it did not say."""
    cells = re.findall(r"\b(OK|CNS|GNS|TNS|NS|DR|U)\b", (matrix or "").split("Legend")[0])
    return all(cell == "OK" for cell in cells) if cells else None


def model_facts(seen: Mapping[str, Any] | None) -> dict[str, Any]:
    """`model.*` from what the checkpoint folder holds; a hub id that is not here yields almost nothing."""
    if not seen:
        return {}
    if not seen.get("path_exists"):
        return {
            "name": seen["path"],
            "path_exists": None if seen.get("hub_id") else False,
            "in_local_cache": seen.get("in_local_cache"),
        }
    config = _mapping(seen.get("config"))
    text = _mapping(config.get("text_config"))
    both = {**config, **text, "architectures": config.get("architectures") or text.get("architectures")}
    values = {name: both[name] for name in CONFIG_VALUES if both.get(name) is not None}
    vision = _mapping(config.get("vision_config")).get("num_heads")
    quantization = config.get("quantization_config") or (seen.get("quant_config") or {}).get("quantization")
    parts = {"mtp_dtype": "mtp_dtypes", "routed_experts": "expert_dtypes", "shared_experts": "shared_expert_dtypes"}
    kinds = {name: _format(seen.get(key) or [], quantization) for name, key in parts.items()}
    looked = ("has_mtp_weights", "has_kv_scales", "chat_template_has_think")
    return {
        **values,
        "name": config.get("_name_or_path") or seen["path"],
        "path_exists": True,
        "config_readable": bool(config) and "error" not in config,
        "quantization": _quantization(quantization, seen.get("quant_config")),
        "scale_fmt": (quantization or {}).get("scale_fmt"),
        **({"weights_gb": round(seen["weight_bytes"] / 1e9, 3)} if seen["weight_bytes"] else {}),
        "files": seen["files"],
        "weight_files": seen["weight_files"],
        "has_tokenizer": seen["has_tokenizer"],
        "has_chat_template": seen["has_chat_template"],
        **{name: seen[name] for name in looked if seen.get(name) is not None},
        **{name: kind for name, kind in kinds.items() if kind},
        **({"vision_num_heads": vision} if vision is not None else {}),
    }


def _format(dtypes: Sequence[str], quantization: Mapping[str, Any] | None) -> str:
    """How part of a model is stored, by the narrowest of its types: `bfloat16`, `fp8`, `nvfp4`, ..; empty: unknown."""
    narrow = [kind for kind in dtypes if kind not in _WIDE]
    if not narrow:
        return _WIDE[dtypes[0]] if dtypes else ""
    if any(kind.startswith("F8") for kind in narrow) and "U8" not in narrow:
        return "fp8"
    stated = " ".join(str(value) for value in (quantization or {}).values() if isinstance(value, str)).lower()
    packed = next((kind for kind in ("nvfp4", "mxfp4", "fp4") if kind in stated), "")
    return packed if "U8" in narrow and packed else "int8" if narrow == ["I8"] else "packed"


def _kernel_cache(raw: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """`host.triton_cache_*`: as measured, where this launch keeps its kernels in the folder that was looked at."""
    cache = raw.get("triton_cache") or {}
    folder = env.get("TRITON_CACHE_DIR", cache.get("dir"))
    if not cache or folder != cache["dir"]:
        return {}
    kept = {"triton_cache_dir": folder, "triton_cache_writable": cache["writable"]}
    return {**kept, "triton_cache_filesystem": cache["filesystem"]} if cache["filesystem"] else kept


def _of_hub(raw: Mapping[str, Any], key: str, name: str = "") -> dict[str, Any]:
    value = (raw.get("hub") or {}).get(key)
    return {} if value is None else {name or key: value}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _quantization(found: Mapping[str, Any] | None, modelopt: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not found:
        return None
    return {**({"quant_method": "modelopt"} if modelopt and "quant_method" not in found else {}), **found}


def _with_cuda(version: str, cuda: str | None) -> str:
    return f"{version}+cu{cuda.replace('.', '')}" if cuda else version


def _gib(size: object) -> float | None:
    return round(size / GIB, 1) if isinstance(size, int) else None


def _mib(text: object) -> float:
    try:
        return float(str(text))
    except ValueError:
        return 0.0
