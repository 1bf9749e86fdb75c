"""List the settings of a launch that may be behind a failure: its options, variables, and properties of its model.

Each setting has the names under which the engine's source and messages refer to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from checks.catalog.conditions import Facts
from checks.engine.feature_map import plain, words_of
from checks.engine.flag_schema import Flag, FlagSchema, own_name

# Words that many settings share, or that say nothing about a feature.
COMMON = frozenset({
    "enable", "disable", "backend", "size", "path", "max", "min", "num", "number", "use", "default", "mode", "type",
    "the", "of", "model", "torch", "cuda", "gpu", "load", "format", "total", "strategy", "true", "false", "none",
    "auto", "server", "args", "sglang", "sgl", "version", "config", "settings", "value", "list", "set", "by", "for",
    "and", "or", "to", "in", "is", "a", "an", "if", "per", "with", "on", "not", "when", "from", "name", "names",
    "only", "also", "used", "using", "be", "will", "that", "this", "it", "its", "are", "can", "as", "at", "error",
    "errors", "info", "srt", "python", "warmup", "warmups", "pytorch", "py", "self", "cls", "init", "main", "run",
})  # fmt: skip
# Fields of config.json that the engine and transformers compute with; the checkpoint decides them.
_CONFIG_KEYS = (
    "architectures", "hidden_act", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
    "num_hidden_layers", "head_dim", "vocab_size", "rope_scaling", "rope_theta", "torch_dtype",
    "max_position_embeddings", "num_experts", "num_experts_per_tok", "tie_word_embeddings", "num_heads", "num_kv_heads",
)  # fmt: skip
NOT_SET = "(not set)"
_OPTION = re.compile(r"--([a-z][a-z0-9]+(?:-[a-z0-9]+)+)")
_ATTRIBUTE = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
_SHORT = frozenset({"tp", "dp", "ep", "pp", "cp", "kv", "pd", "mm"})  # short words that name a feature
_EXPANSIONS = {
    "tp": "tensor parallel ordinal", "dp": "data parallel ordinal", "ep": "expert parallel", "attn": "attention",
    "pp": "pipeline parallel ordinal", "cp": "context parallel", "mem": "memory", "spec": "speculative draft",
    "kv": "cache", "moe": "experts expert", "lora": "adapter adapters", "nextn": "eagle mtp draft",
    "eagle3": "eagle draft", "speculative": "draft verify spec",
    "quantization": "quant scale scales", "hicache": "hierarchical host",
    "hierarchical": "hicache host", "radix": "prefix tree", "disaggregation": "bootstrap transfer",
    "nnodes": "node nodes rendezvous", "dist": "distributed rendezvous", "ssl": "certificate certfile keyfile tls",
    "grammar": "constrained regex", "chat": "template jinja", "length": "len tokens", "tokens": "token", "ssm": "mamba",
    "a2a": "dispatcher", "base": "ordinal",
}  # fmt: skip
# What the libraries that read a variable call the thing; the engine's own variables carry it in their names.
_LIBRARY_WORDS = {
    "CUDA_VISIBLE_DEVICES": "device ordinal visible gpu",
    "HIP_VISIBLE_DEVICES": "device ordinal visible gpu",
    "PYTORCH_CUDA_ALLOC_CONF": "allocator allocation expandable segment segments cudamallocasync memory",
    "PYTORCH_ALLOC_CONF": "allocator allocation expandable segment segments cudamallocasync memory",
    "CUDA_LAUNCH_BLOCKING": "capture capturing stream blocking",
    "HF_HUB_OFFLINE": "hub offline huggingface cached connection",
    "TRANSFORMERS_OFFLINE": "hub offline huggingface cached connection",
    "HF_ENDPOINT": "hub huggingface connection resolve",
    "HF_HOME": "hub huggingface cache permission",
    "HF_TOKEN": "hub gated unauthorized token",
    "TRITON_CACHE_DIR": "triton cache permission directory",
    "XDG_CACHE_HOME": "cache permission directory",
    "TMPDIR": "tmp temporary permission directory space",
    "LD_LIBRARY_PATH": "shared object library symbol",
    "LD_PRELOAD": "shared object library symbol preloaded",
    "PYTHONPATH": "module import importerror attributeerror cannot",
    "OMP_NUM_THREADS": "openmp libgomp",
    "PYTHONHOME": "encodings encoding filesystem prefix stdlib",
    "GLOO_SOCKET_IFNAME": "gloo interface connect address network",
    "NCCL_SOCKET_IFNAME": "nccl bootstrap interface socket network",
    "NCCL_IB_HCA": "nccl ib ibv device",
    "TORCH_CUDA_ARCH_LIST": "arch compute nvcc",
    "CUDA_HOME": "nvcc toolkit headers",
    "CC": "compiler gcc", "CXX": "compiler",
    "http_proxy": "proxy connection warmup 403 502 503", "https_proxy": "proxy connection",
    "all_proxy": "proxy connection socks",
}  # fmt: skip


class Setting(Struct, frozen=True, kw_only=True):
    """One setting that may be behind a failure."""

    fact: str  # `flag.tp-size`, `env.NAME`, `model.architectures`
    value: str
    attributes: tuple[str, ...]  # its names in the rows of a feature map: `tp_size`, `$NAME`; none for a model property
    names: frozenset[str] = frozenset()  # spellings that identify it in a message
    words: frozenset[str] = frozenset()  # rare words of its names
    spellings: tuple[frozenset[str], ...] = ()  # the rare words of each name, if it has several
    value_words: frozenset[str] = frozenset()  # rare words of its value, and keys inside a JSON value
    related: frozenset[str] = frozenset()  # words of its help text, or of the library that reads it
    chooses: bool = False  # whether its value is one of the choices that the release lists
    given: bool = True  # whether the launch has it; False for an option that a message names and the launch lacks

    @property
    def plain_value(self) -> str:
        """The value as feature maps write it."""
        return plain(self.value)

    @property
    def path(self) -> str:
        """The path, URL or name with slashes in its value, which a message repeats literally; empty without one."""
        words = (word.partition("=")[2] or word for word in self.value.split())
        return next((word.rstrip("/") for word in words if "/" in word), "")


def settings_of(facts: Facts, schema: FlagSchema) -> Iterator[Setting]:
    """Yield the settings that the facts of a launch contain."""
    for fact, value in sorted(facts.items()):
        if value is None or value is False or value == "":
            continue
        if fact.startswith("flag."):
            yield of_flag(fact.removeprefix("flag."), value, schema)
        elif fact.startswith("env."):
            yield _of_variable(fact.removeprefix("env."), str(value))
    yield from _of_model(facts)


def implied(text: str, facts: Facts, schema: FlagSchema, subjects: Iterable[str] = ()) -> Iterator[Setting]:
    """Yield the options that a message or an error finding names and the launch does not set: it may lack them.

    `subjects` are the facts that error findings are about.
    """
    by_attribute = {flag.dest: flag for flag in schema.flags if "_" in flag.dest}
    named = [schema.find(name).flag for name in _OPTION.findall(text)]
    named += [by_attribute.get(word) for word in _ATTRIBUTE.findall(text)]
    options = (subject.removeprefix("flag.") for subject in subjects if subject.startswith("flag."))
    named += [schema.by_name.get(schema.spell(option) or "") for option in options]
    for flag in {flag.dest: flag for flag in named if flag is not None}.values():
        canonical = schema.canonical(own_name(flag)) or own_name(flag)
        if facts.get(f"flag.{canonical}") in (None, False):
            yield replace(of_flag(canonical, "", schema), value=NOT_SET, given=False, value_words=frozenset())


def of_flag(canonical: str, value: Any, schema: FlagSchema) -> Setting:
    """Return the setting of an option; an option that the release does not have is known by its name alone."""
    flag = schema.find(schema.spell(canonical) or canonical).flag
    spelled = flag.names if flag else (canonical,)
    stored = (name.replace("-", "_") for name in (*spelled, canonical))
    attributes = tuple(dict.fromkeys([flag.dest, *stored] if flag else stored))
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else "true" if value is True else str(value)
    names = {*(f"--{name}" for name in (*spelled, canonical)), *(name for name in attributes if "_" in name)}
    if canonical == "model-path":
        names |= {"config.json", "model_type", "model.safetensors.index.json", *_CONFIG_KEYS}
    spellings = tuple(dict.fromkeys(_rare(words_of(name)) for name in attributes))
    name_words = frozenset().union(*spellings)
    value_words = _rare(_value_words(text))
    return Setting(
        fact=f"flag.{canonical}",
        value=text,
        attributes=attributes + (_CONFIG_KEYS if canonical == "model-path" else ()),
        names=frozenset(names),
        words=name_words,
        spellings=spellings,
        value_words=value_words,
        related=(_expanded(name_words | _rare(_value_words(text))) | _rare(words_of(flag.help if flag else "")))
        - name_words,
        chooses=_chooses(flag, text),
    )


def _of_variable(name: str, value: str) -> Setting:
    return Setting(
        fact=f"env.{name}",
        value=value,
        attributes=(f"${name}",),
        names=frozenset({name}),
        words=_rare(words_of(name)),
        value_words=_rare(_value_words(value)),
        related=frozenset(_LIBRARY_WORDS.get(name, "").split()),
    )


def _of_model(facts: Facts) -> Iterator[Setting]:
    architectures = facts.get("model.architectures")
    if architectures:
        text = ", ".join(map(str, architectures)) if isinstance(architectures, list | tuple) else str(architectures)
        yield Setting(
            fact="model.architectures",
            value=text,
            attributes=(),
            value_words=_rare(words_of(text)) - {"for", "causal", "lm", "conditional", "generation"},
        )
    method = facts.get("model.quant_method")
    if method:
        yield Setting(
            fact="model.quant_method",
            value=str(method),
            attributes=("quantization",),
            words=frozenset({"quantization", "quantized"}),
            value_words=_rare(words_of(str(method))),
            related=frozenset({"scale", "scales", "quant", "weight"}),
            chooses=True,
        )


def _value_words(text: str) -> Iterator[str]:
    try:
        document = json.loads(text) if text[:1] in "[{" else None
    except ValueError:
        document = None
    yield from words_of(text)
    if isinstance(document, Mapping):
        yield from map(str, document)  # keys of an override are names in the engine: num_hidden_layers


def _rare(words: Iterator[str]) -> frozenset[str]:
    distinct = (word for word in words if (len(word) > 2 or word in _SHORT) and not word.isdigit())
    return frozenset(distinct) - COMMON


def _expanded(words: frozenset[str]) -> frozenset[str]:
    return frozenset(long for word in words for long in _EXPANSIONS.get(word, "").split())


def _chooses(flag: Flag | None, value: str) -> bool:
    return flag is not None and flag.choices is not None and value in map(str, flag.choices)
