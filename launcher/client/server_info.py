"""Reads what a server reports about itself: the only reader of /server_info, under the path of any release.

Whether the server is the launched one is decided in `run.readiness`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launcher.client.endpoint import Endpoint, EndpointBroken, EndpointForbidden, EndpointTimeout, ReplyError
from launcher.errors import LauncherError, UsageError

PATHS = ("/server_info", "/get_server_info")
"""/server_info exists since 0.5.6; /get_server_info exists in every release and is deprecated since 0.5.6."""
_MODELS = "/v1/models"  # a gateway in front of a server may offer nothing else
_ABSENT = (404, 405, 501)  # the status of a path that a server does not have


def read_server_info(endpoint: Endpoint, timeout: float = 10.0) -> dict[str, Any]:
    """Return the server's own report; empty when neither path returns one.

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
    """Return the report of a server given by its address; behind a gateway, only the model that /v1/models lists.

    Empty when the server does not answer in time (the probes will report why). Raises EndpointForbidden for a missing
    or wrong API key, and UsageError when the server is not SGLang and further requests are pointless.
    """
    failed_paths = []
    for path in (*PATHS, _MODELS):
        try:
            reply = endpoint.get(path, timeout)
            report = reply.json() if reply.status == 200 else None
        except ReplyError:
            failed_paths.append(f"{path} did not return JSON")
            continue
        except EndpointForbidden:
            raise
        except LauncherError:
            return {}
        if reply.status in _ABSENT:
            failed_paths.append(f"{path} returned HTTP {reply.status}")
        if isinstance(report, Mapping):
            return _model_of_list(report) if path == _MODELS else report
    if len(failed_paths) == len(PATHS) + 1:
        hint = "expected http://host:port of an SGLang server, without a path"
        raise UsageError(f"http://{endpoint.address} is not an SGLang server: {', '.join(failed_paths)}", hint=hint)
    return {}


def _model_of_list(models: Mapping[str, Any]) -> Mapping[str, Any]:
    items = models.get("data")
    first = items[0] if isinstance(items, list) and items else None
    return {"served_model_name": first["id"]} if isinstance(first, Mapping) and "id" in first else {}


def generates(endpoint: Endpoint, timeout: float = 10.0) -> bool:
    """Return whether the server generates text; true unless it says that it does not (embeddings, rerankers)."""
    for path in ("/model_info", "/get_model_info"):
        try:
            reply = endpoint.get(path, timeout)
            report = reply.json() if reply.status == 200 else None
        except LauncherError:
            continue
        if isinstance(report, Mapping):
            return report.get("is_generation") is not False
    return True
