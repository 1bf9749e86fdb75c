"""Tell which paths a launch reads and writes, from its flags and variables, for the one look at the host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from checks.vocabulary import FlagValue

# Options whose value is always a path; any other value that begins like a path counts too.
_READ = frozenset({
    "config", "ssl-certfile", "ssl-keyfile", "ssl-ca-certs", "quantization-param-path", "speculative-token-map",
    "tokenizer-path", "ds-channel-config-path", "pdmux-config-path", "kt-weight-path", "kt-amx-weight-path",
    "decrypted-config-file", "decrypted-draft-config-file", "lmcache-config-file", "flexkv-config-file",
    "speculative-ngram-external-corpus-path", "speculative-adaptive-config", "speculative-dspark-sps-table-path",
    "speculative-dspark-confidence-sts-path", "modelopt-checkpoint-restore-path", "debug-tensor-dump-input-file",
})  # fmt: skip
_WRITTEN = frozenset({
    "download-dir", "crash-dump-folder", "file-storage-path", "debug-tensor-dump-output-folder", "spec-trace-dir",
    "modelopt-checkpoint-save-path", "modelopt-export-path", "export-metrics-to-file-dir", "ple-offload-dir",
})  # fmt: skip
# The model and the draft have looks of their own; these name routes, sockets and hosts.
_OTHER = frozenset({
    "model-path", "model", "speculative-draft-model-path", "lora-paths", "log-requests-target", "fastapi-root-path",
    "uvicorn-access-log-exclude-prefixes", "weight-cache-socket", "host", "dist-init-addr", "served-model-name",
})  # fmt: skip
_READ_VARIABLES = ("CUDA_HOME", "SSL_CERT_FILE", "NCCL_TOPO_FILE", "NCCL_CONF_FILE", "NCCL_GRAPH_FILE")
_WRITTEN_VARIABLES = (
    "TRITON_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "TORCHINDUCTOR_CACHE_DIR", "HF_HOME", "HF_HUB_CACHE", "TMPDIR",
    "XDG_CACHE_HOME", "SGLANG_DG_CACHE_DIR", "DG_JIT_CACHE_DIR", "TVM_FFI_CACHE_DIR", "SGLANG_TORCH_PROFILER_DIR",
    "PROMETHEUS_MULTIPROC_DIR", "CUDA_CACHE_PATH",
)  # fmt: skip
_STARTS = ("/", "~/", "./", "../")


def named_paths(flags: Mapping[str, FlagValue], env: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return `read`, `written` and `adapters`: name of a flag (with dashes), variable or adapter → path."""
    read, written = dict[str, str](), dict[str, str]()
    for name, value in flags.items():
        if not isinstance(value, str) or not value or name in _OTHER:
            continue
        if name in _WRITTEN:
            written[f"--{name}"] = value
        elif value.startswith(_STARTS) or (name in _READ and ("/" in value or "." in value)):
            read[f"--{name}"] = value
    read |= {name: env[name] for name in _READ_VARIABLES if env.get(name, "").startswith("/")}
    written |= {name: env[name] for name in _WRITTEN_VARIABLES if env.get(name, "").startswith("/")}
    return {"read": read, "written": written, "adapters": dict(_adapters(flags.get("lora-paths")))}


def _adapters(value: FlagValue | None) -> Iterator[tuple[str, str]]:
    """Yield name and path of each adapter: `name=path`, a path, or a JSON object, as --lora-paths takes them."""
    for word in value if isinstance(value, list) else [value] if isinstance(value, str) else []:
        name, path = _named(word)
        if path.startswith(_STARTS):
            yield name, path


def _named(word: str) -> tuple[str, str]:
    try:
        document = json.loads(word)
        return str(document["lora_name"]), str(document["lora_path"])
    except (ValueError, KeyError, TypeError):
        name, equals, path = word.partition("=")
        return (name, path) if equals else (word, word)
