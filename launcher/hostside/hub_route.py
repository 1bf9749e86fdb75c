"""Whether the model hub can be reached from here, and whether it keeps the model behind a licence.

Asked only for a model that must be downloaded, and for one second at most: what takes longer stays unknown, so that a
slow network is never called a missing one. Part of `host_facts`.
"""

from __future__ import annotations

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
    """{"endpoint", "reachable", "gated"} for a hub name such as `Qwen/Qwen3-8B`; each is None where nobody knows."""
    endpoint = (env.get("HF_ENDPOINT") or HUB).rstrip("/")
    found = {"endpoint": endpoint, "reachable": None, "gated": None}
    if must_not_ask(env):
        return found
    asking = threading.Thread(
        target=ask_hub, args=(name, endpoint, found), daemon=True
    )  # names resolve without a limit
    asking.start()
    asking.join(HUB_SECONDS)
    return dict(found)


def must_not_ask(env):
    """Offline on purpose, another hub, or a proxy that this connection would not take."""
    if any((env.get(name) or "").lower() in _YES for name in ("HF_HUB_OFFLINE", "SGLANG_USE_MODELSCOPE")):
        return True
    return any(env.get(name) for key in ("https_proxy", "http_proxy", "all_proxy") for name in (key, key.upper()))


def ask_hub(name, endpoint, found):
    parts = urllib.parse.urlsplit(endpoint)
    try:
        port = parts.port or (80 if parts.scheme == "http" else 443)
        socket.create_connection((parts.hostname or "", port), timeout=HUB_SECONDS).close()
    except socket.timeout:
        return
    except (OSError, ValueError):  # no such name, no route, refused
        found["reachable"] = False
        return
    found["reachable"] = True
    if re.match(r"^[\w.-]+/[\w.-]+$", name):
        found["gated"] = gated("%s/api/models/%s" % (endpoint, name))


def gated(url):
    """What the hub's own record of a model says; None where it does not say it, as without the right to see it."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=HUB_SECONDS) as answer:
            record = json.loads(answer.read(4 << 20).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None
    return bool(record["gated"]) if isinstance(record, dict) and "gated" in record else None
