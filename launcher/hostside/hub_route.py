"""Reports whether the host can reach the model hub, and whether the model is gated behind a licence.

Only measured for a model that must be downloaded, and for one second at most: after that the result is unknown, so that
a slow network is never reported as a missing one. Part of `host_facts`.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import urllib.parse
import urllib.request

HUB = "https://huggingface.co"
HUB_SECONDS = 1.0
_YES = ("1", "on", "yes", "true")


def hub(name, env):
    """Return {"endpoint", "reachable", "gated"} for a hub name such as `Qwen/Qwen3-8B`; None for an unknown value."""
    endpoint = (env.get("HF_ENDPOINT") or HUB).rstrip("/")
    report = {"endpoint": endpoint, "reachable": None, "gated": None}
    if must_not_ask(env):
        return report
    query = threading.Thread(  # a thread, because resolving the name has no timeout
        target=ask_hub, args=(name, endpoint, report), daemon=True
    )
    query.start()
    query.join(HUB_SECONDS)
    return dict(report)


def must_not_ask(env):
    """Return whether the hub must not be contacted: offline mode, another hub, or a proxy that this code does not use."""
    if any((env.get(name) or "").lower() in _YES for name in ("HF_HUB_OFFLINE", "SGLANG_USE_MODELSCOPE")):
        return True
    return any(env.get(name) for key in ("https_proxy", "http_proxy", "all_proxy") for name in (key, key.upper()))


def ask_hub(name, endpoint, report):
    parts = urllib.parse.urlsplit(endpoint)
    try:
        port = parts.port or (80 if parts.scheme == "http" else 443)
        socket.create_connection((parts.hostname or "", port), timeout=HUB_SECONDS).close()
    except socket.timeout:
        return
    except (OSError, ValueError):  # no such name, no route, refused
        report["reachable"] = False
        return
    report["reachable"] = True
    if re.match(r"^[\w.-]+/[\w.-]+$", name):
        report["gated"] = gated("%s/api/models/%s" % (endpoint, name))


def gated(url):
    """Return `gated` of the hub's record of a model; None if the record lacks it or this user may not read it."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=HUB_SECONDS) as answer:
            record = json.loads(answer.read(4 << 20).decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    return bool(record["gated"]) if isinstance(record, dict) and "gated" in record else None
