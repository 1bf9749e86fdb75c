"""What a server reports about itself: the one reader of /server_info, whatever its release calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launcher.client.endpoint import Endpoint, EndpointBroken, EndpointForbidden, EndpointTimeout, ReplyError
from launcher.errors import LauncherError, UsageError

PATHS = ("/server_info", "/get_server_info")
"""/server_info exists from 0.5.6 on; /get_server_info in every release, deprecated since."""
_MODELS = "/v1/models"  # all that a gateway in front of a server may show
_ABSENT = (404, 405, 501)  # statuses of a path that a server does not have


def read_server_info(endpoint: Endpoint, timeout: float = 10.0) -> dict[str, Any]:
    """The server's own report; empty where neither path answers with one.

    Raises EndpointRefused, EndpointForbidden, HostUnreachable.
    """
    for path in PATHS:
        try:
            reply = endpoint.get(path, timeout)
            report = reply.json() if reply.status == 200 else None
        except (ReplyError, EndpointBroken, EndpointTimeout):
            continue
        if isinstance(report, dict):
            return report
    return {}


def identify_server(endpoint: Endpoint, timeout: float = 10.0) -> Mapping[str, Any]:
    """The same for a server that somebody names by its address; behind a gateway, the model that /v1/models lists.

    Empty when nobody answers in time (the probes will report why). Raises EndpointForbidden for a key that is missing
    or wrong, UsageError where something else than SGLang answers: no further question makes sense then.
    """
    strange = []
    for path in (*PATHS, _MODELS):
        try:
            reply = endpoint.get(path, timeout)
            report = reply.json() if reply.status == 200 else None
        except ReplyError:
            strange.append(f"{path} does not answer with JSON")
            continue
        except EndpointForbidden:
            raise
        except LauncherError:
            return {}
        if reply.status in _ABSENT:
            strange.append(f"{path} answers {reply.status}")
        if isinstance(report, Mapping):
            return _listed(report) if path == _MODELS else report
    if len(strange) == len(PATHS) + 1:
        hint = "expected http://host:port of an SGLang server, without a path"
        raise UsageError(f"http://{endpoint.address} is not an SGLang server: {', '.join(strange)}", hint=hint)
    return {}


def _listed(models: Mapping[str, Any]) -> Mapping[str, Any]:
    items = models.get("data")
    first = items[0] if isinstance(items, list) and items else None
    return {"served_model_name": first["id"]} if isinstance(first, Mapping) and "id" in first else {}
