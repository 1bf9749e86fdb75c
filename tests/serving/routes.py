"""Which route answers which request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.serving import about, vectors, vocabulary
from tests.serving.calls import Call, Refusal, Reply, Streamed
from tests.serving.chats import chat
from tests.serving.completions import complete
from tests.serving.native import generate

if TYPE_CHECKING:
    from tests.serving.state import State

Route = Callable[["State", Call], Reply | Streamed]
GENERATING = frozenset(
    (
        "/generate",
        "/v1/completions",
        "/v1/chat/completions",
        "/v1/embeddings",
        "/encode",
        "/v1/rerank",
        "/rerank",
        "/classify",
        "/v1/classify",
        "/v1/score",
    )
)
OPEN = frozenset(("/health", "/health_generate", "/metrics"))
"""Routes that no key is asked for."""


def health(state: State, call: Call) -> Reply:
    """Answer /health."""
    return Reply("", kind="text/plain")


def flush_cache(state: State, call: Call) -> Reply:
    """Empty the prefix cache."""
    done = state.scheduler.flush()
    text = (
        "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the "
        "operation will not be performed.)\n"
    )
    return Reply(text, 200 if done else 400, kind="text/plain")


def abort_request(state: State, call: Call) -> Reply:
    """Abort a request by its id, or all."""
    state.scheduler.abort(
        state.faults("abort", str(call.body.get("rid", "")), state.at(call)), bool(call.body.get("abort_all"))
    )
    return Reply("", kind="text/plain")


def tokenize(state: State, call: Call) -> Reply:
    """Return the tokens of a text."""
    tokens = vocabulary.encode(str(call.body.get("prompt", "")))
    return Reply({"tokens": tokens, "count": len(tokens), "max_model_len": state.options.context})


def detokenize(state: State, call: Call) -> Reply:
    """Return the text of tokens."""
    return Reply(
        {"text": vocabulary.decode(call.body.get("tokens", []), bool(call.body.get("skip_special_tokens", True)))}
    )


ROUTES: dict[str, Route] = {
    "/health": health,
    "/health_generate": health,
    "/ping": health,
    "/v1/models": about.models,
    "/model_info": about.model_info,
    "/get_model_info": about.model_info,
    "/server_info": about.server_info,
    "/get_server_info": about.server_info,
    "/v1/loads": about.loads,
    "/get_load": about.get_load,
    "/metrics": about.metrics,
    "/flush_cache": flush_cache,
    "/abort_request": abort_request,
    "/tokenize": tokenize,
    "/v1/tokenize": tokenize,
    "/detokenize": detokenize,
    "/v1/detokenize": detokenize,
    "/generate": generate,
    "/v1/completions": complete,
    "/v1/chat/completions": chat,
    "/v1/embeddings": vectors.embeddings,
    "/encode": vectors.encode,
    "/v1/rerank": vectors.rerank,
    "/rerank": vectors.rerank,
    "/classify": vectors.classify,
    "/v1/classify": vectors.classify,
    "/v1/score": vectors.score,
}
_SINCE = {
    "/model_info": "0.5.06",
    "/server_info": "0.5.06",
    "/v1/loads": "0.5.08",
    "/v1/tokenize": "0.5.04",
    "/tokenize": "0.5.04",
}


def _padded(release: str) -> str:
    first, second, third = release.split(".")
    return f"{first}.{second}.{int(third):02d}"


def find(state: State, call: Call) -> Route:
    """Return the route of a request; a refusal where this server has none."""
    path = "/v1/models" if call.path.startswith("/v1/models/") else call.path
    route = ROUTES.get(path)
    if route is None or path in state.options.missing or _padded(state.options.release) < _SINCE.get(path, ""):
        raise Refusal("Not Found", 404)
    if path in GENERATING and call.method == "GET":
        raise Refusal("Method Not Allowed", 405)
    if path in {"/generate", "/v1/completions", "/v1/chat/completions"} and state.options.kind != "generate":
        raise Refusal("This model does not appear to be a generation model.")
    return route
