"""How a stand-in is configured: all that may differ between healthy servers."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct, frozen=True, kw_only=True):
    """The configuration of one stand-in."""

    name: str = "toy/Toy-8B-Instruct"
    also_listed: tuple[str, ...] = ()
    release: str = "0.5.23"
    context: int = 32_768
    capacity: int = 400_000
    """Tokens that fit into the cache."""
    running: int = 32
    """Requests that decode together."""
    queued: int = 4096
    speed: float = 400.0
    """Tokens a second of one stream; 0 is as fast as it goes, without sleeping."""
    first_token: float = 0.02
    prefill: float = 50_000.0
    """Tokens of a prompt read in a second."""
    jitter: float = 0.0
    latency: float = 0.0
    """Seconds that the network adds to each request."""
    ranks: int = 1
    radix: bool = True
    page: int = 1
    together: int = 1
    """Tokens that come in one event, as with speculation."""
    flips: float = 0.0
    """Noise in nats that depends on the batch, as kernels that are not deterministic have."""
    ability: float = 0.95
    skilled: bool = True
    kind: str = "generate"
    """generate, embedding, reranker or classifier."""
    template: bool = True
    vision: bool = False
    adapters: tuple[str, ...] = ()
    language: str = "en"
    style: str = "plain"
    thinking: str = ""
    """Nothing, or `parsed` into a field of its own, or `raw` inside the text."""
    thoughts: int = 3
    """Sentences that are thought before an answer."""
    switchable: bool = False
    """Whether a request can turn the thoughts off."""
    opened: bool = False
    """Whether the template itself opens the thoughts."""
    tool_parser: bool = True
    logprobs: bool = True
    missing: frozenset[str] = frozenset()
    """Routes that answer 404."""
    api_key: str = ""
    rate_limit: float = 0.0
    """Requests a second; beyond it 429 with Retry-After."""
    framing: str = "length"
    """How replies end: `length`, `chunked` or `close`."""
    line_end: str = "\n"
    comments: bool = False
    event_lines: bool = False
    buffer: int = 0
    """Bytes that a proxy gathers before it passes a stream on."""
    headers: tuple[tuple[str, str], ...] = ()
    seed: int = 7
