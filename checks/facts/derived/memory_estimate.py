"""Estimate before a launch whether it fits: weights, draft, caches and graphs of one rank against one GPU.

Every figure is a range with its arithmetic; a launch counts as too large only if even the low end is. Rules use the
result as facts (`checks.facts.derived.memory_fit`). The memory that a running engine uses is in its log, not here.
"""

from __future__ import annotations

import re

from msgspec import Struct

from checks.catalog.conditions import Facts, as_number

GIB_PER_GB = 1e9 / 2**30
"""Checkpoint sizes are counted in 10^9 bytes, GPU memory (`host.vram_gb`, rounded by the vendors) in 2^30."""

_VRAM_ERROR = 0.04  # names say 80, 96, 141 GB; nvidia-smi shows 79.6, 95.6, 140.4 GiB and torch a little less
_WEIGHTS_ERROR = 0.06  # replicated embeddings and norms, padding, uneven pipeline stages
_NAME_ERROR = 0.20  # parameter count read off a name times bits per weight
_CONTEXT_GIB = (0.5, 3.0)  # CUDA context, NCCL and all-reduce buffers, workspaces: 0.11.2 GiB on one GPU, 2.6 at tp 8


class Item(Struct, frozen=True, kw_only=True):
    """One use of GPU memory, in GiB, with the arithmetic in words."""

    name: str
    low: float
    high: float
    how: str


class Estimate(Struct, frozen=True, kw_only=True):
    """The memory of one rank. `vram` and `static` are in GiB; `static` is the limit for weights and caches together."""

    vram: tuple[float, float]
    static: tuple[float, float]
    items: tuple[Item, ...]
    kv_bytes_per_token: float | None
    measured: bool  # the size of the weights is known, not guessed from a name

    @property
    def needed(self) -> tuple[float, float]:
        """Low and high sum of all memory that is needed before the first token is cached, in GiB."""
        return sum(item.low for item in self.items), sum(item.high for item in self.items)

    @property
    def fits(self) -> bool | None:
        """False: too large even at the low end. True: fits even at the high end. None: within the error margin."""
        low, high = self.needed
        if low > self.vram[1]:
            return False
        return True if high < self.vram[0] else None

    @property
    def pool(self) -> tuple[float, float]:
        """Low and high GiB left for the token pool under the static fraction; below zero the engine does not start."""
        low, high = self.needed
        return self.static[0] - high, self.static[1] - low

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Low and high number of tokens that fit into the pool; None when the size of one token is unknown."""
        if not self.kv_bytes_per_token:
            return None
        low, high = (max(0.0, gib) * 2**30 / self.kv_bytes_per_token for gib in self.pool)
        return int(low), int(high)

    @property
    def lines(self) -> tuple[str, ...]:
        """The arithmetic for people, one line per figure."""
        rows = [f"{item.name}: {_span(item.low, item.high)} GiB = {item.how}" for item in self.items]
        rows.append(f"sum: {_span(*self.needed)} GiB of {_span(*self.vram)} GiB on one GPU")
        rows.append(f"left for tokens under the static limit of {_span(*self.static)} GiB: {_span(*self.pool)} GiB")
        if self.tokens and self.kv_bytes_per_token:
            rows.append(f"tokens: {self.tokens[0]} to {self.tokens[1]} at {self.kv_bytes_per_token:.0f} bytes each")
        return tuple(rows)


def estimate(facts: Facts) -> Estimate | None:
    """Estimate the memory of one rank; None when the size of the GPU or of the weights is unknown."""
    vram = as_number(facts.get("host.vram_gb"))
    size = weights_gb(facts)
    if not vram or size is None:
        return None
    ranks = _ranks(facts)
    weights = _weights_item(facts, size, ranks)
    items = [weights, *_draft_items(facts, size, ranks), Item(
        name="context", low=_CONTEXT_GIB[0], high=_CONTEXT_GIB[1], how="CUDA context, communication, workspaces"
    )]  # fmt: skip
    span = (vram * (1 - _VRAM_ERROR), vram * (1 + _VRAM_ERROR))
    share = static_fraction(facts, vram)
    return Estimate(
        vram=span,
        static=(span[0] * share[0], span[1] * share[1]),
        items=tuple(items),
        kv_bytes_per_token=kv_bytes_per_token(facts),
        measured=as_number(facts.get("model.weights_gb")) is not None,
    )


def weights_gb(facts: Facts) -> float | None:
    """Return the size of the stored weights in 10^9 bytes: measured, else parameters in the name × bits per weight."""
    measured = as_number(facts.get("model.weights_gb"))
    if measured:
        return measured
    name = str(facts.get("model.name") or "")
    bits = as_number(facts.get("model.weight_bits"))
    billions = re.search(r"(?:^|[-_])(?:(\d+)x)?(\d+(?:\.\d+)?)B(?![a-z])", name, re.IGNORECASE)
    if not billions or not bits or billions[1]:
        return None
    # Four-bit formats include scales (4.5 bits for NVFP4) and keep attention or the head in 16 bits: nvidia's
    # Qwen3.5-397B-NVFP4 weighs 233 GB, that is 4.7 bits a parameter.
    return float(billions[2]) * {4: 4.7}.get(int(bits), bits) / 8


def static_fraction(facts: Facts, vram: float) -> tuple[float, float]:
    """Return the low and high share of GPU memory for weights and caches: the flag, else the releases' own choice."""
    fraction = as_number(facts.get("flag.mem-fraction-static"))
    if fraction:
        return fraction, fraction
    low = max(0.5, 1 - reserve_gib(facts, vram) * 1.6 / vram)
    return low, max(low, 0.93)


def reserve_gib(facts: Facts, vram: float) -> float:
    """Return the GiB that the engine reserves for activations and graphs (0.5.10:srt/server_args.py:1283-1322)."""
    chunk = as_number(facts.get("flag.chunked-prefill-size")) or (2048 if vram < 35 else 4096 if vram < 60 else 8192)
    batch = as_number(facts.get("flag.cuda-graph-max-bs-decode")) or (24 if vram < 35 else 160 if vram < 60 else 256)
    if facts.get("flag.disable-cuda-graph") is True:
        batch = 0
    if chunk < 0:
        chunk = as_number(facts.get("flag.max-prefill-tokens")) or 16384
    speculation = 4096 if facts.get("flag.speculative-algorithm") else 0
    return (512 + max(chunk, 2048) * 1.5 + batch * 2 + _ranks(facts) / 8 * 1024 + speculation) / 1024


def kv_bytes_per_token(facts: Facts) -> float | None:
    """Return the bytes of one cached token on one rank; None when the configuration does not determine them."""
    layers = as_number(facts.get("model.num_hidden_layers"))
    if not layers:
        return None
    if facts.get("model.hybrid") is True:
        every = as_number(facts.get("model.full_attention_interval"))
        if not every:
            return None
        layers = layers // every
    width = 1.0 if str(facts.get("flag.kv-cache-dtype") or "").startswith(("fp8", "mxfp8")) else 2.0
    layers /= as_number(facts.get("flag.pp-size")) or 1
    if facts.get("model.mla") is True:
        rank = as_number(facts.get("model.kv_lora_rank")) or 512
        rope = as_number(facts.get("model.qk_rope_head_dim")) or 64
        return layers * (rank + rope) * width
    return _heads_bytes(facts, layers * width)


def _heads_bytes(facts: Facts, layer_bytes: float) -> float | None:
    heads = as_number(facts.get("model.num_key_value_heads")) or as_number(facts.get("model.num_attention_heads"))
    head_dim = as_number(facts.get("model.head_dim"))
    hidden, query_heads = as_number(facts.get("model.hidden_size")), as_number(facts.get("model.num_attention_heads"))
    if not head_dim and hidden and query_heads:
        head_dim = hidden / query_heads
    if not heads or not head_dim:
        return None
    tp = as_number(facts.get("launch.attention_tp")) or as_number(facts.get("flag.tp-size")) or 1
    return 2 * max(1.0, heads / tp) * head_dim * layer_bytes


def _ranks(facts: Facts) -> float:
    tp = as_number(facts.get("flag.tp-size")) or 1
    return tp * (as_number(facts.get("flag.pp-size")) or 1)


def _weights_item(facts: Facts, size: float, ranks: float) -> Item:
    measured = as_number(facts.get("model.weights_gb")) is not None
    error = _WEIGHTS_ERROR if measured else _NAME_ERROR
    share = size * GIB_PER_GB / ranks
    low = share * (1 - error)
    if (
        facts.get("model.quantized") is False
        and as_number(facts.get("model.weight_bits")) not in (None, 16.0)
        and measured
    ):
        low *= (as_number(facts.get("model.weight_bits")) or 16) / 16  # converted while loading
    low -= as_number(facts.get("flag.cpu-offload-gb")) or 0
    # Attention is replicated on every rank of a data-parallel attention group: at most a fifth of a large MoE.
    high = share * (1 + error) + (0.05 * size * GIB_PER_GB if facts.get("flag.enable-dp-attention") else 0)
    origin = "measured" if measured else "from the name"
    return Item(name="weights", low=max(0.0, low), high=high, how=f"{size:.3g} GB ({origin}) over {ranks:.0f} ranks")


def _draft_items(facts: Facts, size: float, ranks: float) -> list[Item]:
    if not facts.get("flag.speculative-algorithm") or facts.get("flag.speculative-algorithm") == "NGRAM":
        return []
    draft = as_number(facts.get("draft.weights_gb"))
    if draft:
        share = draft * GIB_PER_GB / ranks
        return [Item(name="draft", low=share * 0.9, high=share * 1.5, how=f"{draft:.3g} GB over {ranks:.0f} ranks")]
    # A built-in draft layer is one layer of many; some releases load the target a second time for it.
    return [Item(name="draft", low=0.0, high=0.06 * size * GIB_PER_GB / ranks + 1, how="draft layer and its buffers")]


def _span(low: float, high: float) -> str:
    return f"{low:.1f}" if abs(high - low) < 0.05 else f"{low:.1f} to {high:.1f}"
