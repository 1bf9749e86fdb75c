"""Servers that are healthy but unlike the usual one: none of them may be called broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_STATE = (
    "/server_info",
    "/get_server_info",
    "/v1/loads",
    "/get_load",
    "/model_info",
    "/get_model_info",
    "/metrics",
    "/flush_cache",
)


class Oddity(Struct, frozen=True):
    """A healthy server that differs from the usual one."""

    name: str
    summary: str
    options: Mapping[str, Any]


def _odd(name: str, summary: str, /, **options: Any) -> Oddity:
    return Oddity(name, summary, options)


_ALL = (
    _odd("thinks-parsed", "A model that always thinks; its thoughts come in a field of their own.", thinking="parsed"),
    _odd("thinks-raw", "A model that always thinks; its thoughts stand in the text, tags and all.", thinking="raw"),
    _odd(
        "thinks-opened",
        "A model whose template opens the thoughts, so that only the closing tag is written.",
        thinking="parsed",
        opened=True,
    ),
    _odd(
        "thinks-opened-raw",
        "The same without a parser: the text holds a closing tag only.",
        thinking="raw",
        opened=True,
    ),
    _odd("thinks-long", "A model that thinks for some 600 tokens.", thinking="parsed", thoughts=28),
    _odd("thinks-very-long", "A model that thinks for some 2,000 tokens.", thinking="parsed", thoughts=90),
    _odd("thinks-long-raw", "Long thoughts in the text.", thinking="raw", thoughts=28),
    _odd("thinks-on-request", "A model whose thoughts a request can switch off.", thinking="parsed", switchable=True),
    _odd(
        "thinks-always-terse",
        "A model that thinks and answers in a word, as gpt-oss does at low effort.",
        thinking="parsed",
        thoughts=1,
        style="terse",
    ),
    _odd("base-model", "A base model without a chat template.", template=False, tool_parser=False, ability=0.85),
    _odd(
        "base-model-weak",
        "A small base model that knows little.",
        template=False,
        tool_parser=False,
        skilled=False,
        ability=0.3,
    ),
    _odd(
        "weak-model",
        "A model of 135M parameters: fluent, and hardly ever right.",
        skilled=False,
        ability=0.3,
        tool_parser=False,
    ),
    _odd("middling-model", "A model that gets two questions of three right.", ability=0.65),
    _odd("no-logprobs", "A configuration that cannot give log-probabilities.", logprobs=False),
    _odd("no-loads", "A server without /v1/loads.", missing=frozenset({"/v1/loads", "/get_load"})),
    _odd("no-server-info", "A server without /server_info.", missing=frozenset({"/server_info", "/get_server_info"})),
    _odd("no-metrics", "A server without /metrics.", missing=frozenset({"/metrics"})),
    _odd("no-state-routes", "A server that tells nothing of itself but its models.", missing=frozenset(_STATE)),
    _odd(
        "gateway-openai",
        "A gateway that passes on OpenAI routes only.",
        missing=frozenset((*_STATE, "/generate", "/health_generate", "/abort_request")),
    ),
    _odd(
        "gateway-chat-only",
        "A gateway that passes on chats only.",
        missing=frozenset(
            (*_STATE, "/generate", "/health_generate", "/abort_request", "/v1/completions", "/v1/embeddings")
        ),
    ),
    _odd("rate-limit", "At most 25 requests a second, then 429 with Retry-After.", rate_limit=25.0),
    _odd("german", "A model that answers in German.", language="de"),
    _odd("french", "A model that answers in French.", language="fr"),
    _odd("spanish", "A model that answers in Spanish.", language="es"),
    _odd("chinese", "A model that answers in Chinese.", language="zh"),
    _odd("polite", "A model that says 30 polite words first.", style="polite"),
    _odd("verbose", "A model that explains before and after.", style="verbose"),
    _odd("terse", "A model that leaves the full stop out.", style="terse"),
    _odd("markdown", "A model that writes Markdown.", style="markdown"),
    _odd("headings", "A model that puts a heading over each answer.", style="heading"),
    _odd("bold", "A model that writes its answers in bold.", style="bold"),
    _odd("latex", "A model that boxes its results in LaTeX.", style="latex"),
    _odd("emoji", "A model that likes emoji.", style="emoji"),
    _odd("blank-lines", "A model that puts empty lines around its answers.", style="blank"),
    _odd("context-512", "A context of 512 tokens.", context=512, capacity=4096),
    _odd("context-2048", "A context of 2,048 tokens.", context=2048, capacity=16_384),
    _odd("context-131k", "A context of 131,072 tokens.", context=131_072, capacity=600_000),
    _odd("one-at-once", "One request at once.", running=1),
    _odd("two-at-once", "Two requests at once, and a queue.", running=2),
    _odd("slow", "Two tokens a second.", speed=2.0, first_token=0.5),
    _odd("latency-300", "A network that takes 300 ms.", latency=0.3),
    _odd("first-token-slow", "A first token that takes 700 ms.", first_token=0.7, prefill=4000.0),
    _odd("jittery", "Speed and first token that vary by a half from request to request.", jitter=1.0, first_token=0.05),
    _odd("api-key", "A server that asks for a key.", api_key="toy-key"),
    _odd("name-with-slashes", "A served name that is a path.", name="/models/org/Toy-8B-Instruct/snapshots/0a1b2c"),
    _odd("name-odd", "A served name with blanks and capitals.", name="My Model (v2) ß"),
    _odd(
        "five-models", "Five names of models are listed.", also_listed=("toy-small", "toy-large", "toy-code", "toy-old")
    ),
    _odd("near-ties-flip", "Kernels whose last digits depend on the batch.", flips=0.01),
    _odd("radix-off", "No prefix cache, and pages of 64 tokens.", radix=False, page=64),
    _odd("pages-of-64", "A prefix cache in pages of 64 tokens.", page=64),
    _odd("comments-in-streams", "Streams with comments between the events.", comments=True),
    _odd("event-lines", "Streams whose events have a name.", event_lines=True),
    _odd("crlf", "Streams with CRLF at the end of lines.", line_end="\r\n"),
    _odd("chunked", "All replies in chunks, without a length.", framing="chunked"),
    _odd("connection-close", "The connection is closed after each reply.", framing="close"),
    _odd("release-0.4.10", "The replies of release 0.4.10.", release="0.4.10", missing=frozenset({"/v1/loads"})),
    _odd("release-0.5.9", "The replies of release 0.5.9.", release="0.5.9"),
    _odd("embedding", "A model that makes embeddings only.", kind="embedding", name="toy/Toy-Embedding"),
    _odd("reranker", "A model that ranks documents only.", kind="reranker", name="toy/Toy-Reranker"),
    _odd("classifier", "A model that classifies texts only.", kind="classifier", name="toy/Toy-Classifier"),
    _odd("vision", "A model that sees pictures.", vision=True, name="toy/Toy-8B-VL"),
    _odd("adapters", "A server with two adapters.", adapters=("pirate", "formal")),
    _odd("speculation", "Three tokens in each event.", together=3),
    _odd("speculation-five", "Five tokens in each event.", together=5, speed=900.0),
    _odd(
        "router",
        "A router of its own kind in front: other headers, no state routes.",
        missing=frozenset(_STATE),
        headers=(("server", "sgl-router"), ("x-request-id", "r-1")),
    ),
    _odd("buffering-proxy", "A proxy that gathers 2 kB before it passes a stream on.", buffer=2048),
    _odd("ranks-4", "Four data-parallel ranks.", ranks=4, running=8),
    _odd("ranks-2-latency", "Two ranks behind a slow network, with CRLF.", ranks=2, latency=0.1, line_end="\r\n"),
    _odd("no-tool-parser", "No parser of tool calls: they stand in the text.", tool_parser=False),
    _odd("short-queue", "Eight requests at once and a queue of 64.", running=8, queued=64),
)
ODDITIES: dict[str, Oddity] = {oddity.name: oddity for oddity in _ALL}
"""All odd but healthy servers by name."""
