"""Decide whether the engine's request to itself would go through an HTTP proxy, by the rules of `requests`.

The engine warms up with `requests.get(url)` (`0.5.9:srt/entrypoints/http_server.py`, `_wait_and_warmup`), which honours
the proxy variables in either case; loopback is exempt only where `no_proxy` names it.
"""

from __future__ import annotations

import ipaddress

from checks.catalog.conditions import Facts
from checks.vocabulary import EngineRange

# Until 0.5.9 the warm-up uses the bind address, later the loopback address (0.5.16:srt/server_args.py:7355).
_ASKS_BIND_ADDRESS = EngineRange("<0.5.10")


def warmup_goes_through_proxy(facts: Facts) -> bool:
    """Return whether a proxy variable applies to the address of the warm-up request."""
    if facts.get("flag.skip-server-warmup"):
        return False
    scheme = "https" if facts.get("flag.ssl-certfile") else "http"
    if not any(_variable(facts, name) for name in (f"{scheme}_proxy", "all_proxy")):
        return False
    return not _exempt(warmup_host(facts), _variable(facts, "no_proxy"))


def warmup_host(facts: Facts) -> str:
    """Return the host part of the URL of the warm-up request."""
    host = str(facts.get("flag.host") or "127.0.0.1")
    if host in ("0.0.0.0", "::") and not _ASKS_BIND_ADDRESS.contains(facts.get("engine.version")):
        return "127.0.0.1" if host == "0.0.0.0" else "::1"
    return host


def _variable(facts: Facts, name: str) -> str:
    return str(facts.get(f"env.{name}") or facts.get(f"env.{name.upper()}") or "")


def _exempt(host: str, no_proxy: str) -> bool:
    entries = [entry.strip() for entry in no_proxy.split(",") if entry.strip()]
    return any(_covers(entry, host) for entry in entries)


def _covers(entry: str, host: str) -> bool:
    if entry in ("*", host):
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return host.endswith("." + entry.lstrip("."))
