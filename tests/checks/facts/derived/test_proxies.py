"""The engine's request to itself against the proxy variables, by the rules of `requests`."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.proxies import warmup_goes_through_proxy, warmup_host

PROXY = {"env.http_proxy": "http://p:1"}


@pytest.mark.parametrize(
    ("env", "host", "engine", "through"),
    [
        ({"http_proxy": "http://p:1"}, "127.0.0.1", "0.5.9", True),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "127.0.0.1"}, "127.0.0.1", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": "127.0.0.0/8"}, "127.0.0.1", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": "127.0.0.1/8"}, "127.0.0.2", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "127.0.0.1", "0.5.9", True),
        ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.1, 127.0.0.1"}, "127.0.0.1", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": "*"}, "127.0.0.1", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": ","}, "127.0.0.1", "0.5.9", True),
        ({"http_proxy": "http://p:1", "no_proxy": "localhost"}, "127.0.0.1", "0.5.9", True),
        ({"http_proxy": "http://p:1", "no_proxy": "127.0.0.1"}, "0.0.0.0", "0.5.9", True),
        ({"http_proxy": "http://p:1", "no_proxy": "127.0.0.1"}, "0.0.0.0", "0.5.10", False),
        ({"https_proxy": "http://p:1"}, "127.0.0.1", "0.5.9", False),
        ({"all_proxy": "socks5://p:1"}, "127.0.0.1", "0.5.9", True),
        ({"ALL_PROXY": "socks5://p:1"}, "127.0.0.1", "0.5.9", True),
        ({"http_proxy": "http://p:1", "no_proxy": ".example.org"}, "gpu1.example.org", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": "example.org"}, "gpu1.example.org", "0.5.9", False),
        ({"http_proxy": "http://p:1", "no_proxy": "example.org"}, "myexample.org", "0.5.9", True),
        ({"http_proxy": ""}, "127.0.0.1", "0.5.9", False),
        ({}, "127.0.0.1", "0.5.9", False),
    ],
)
def test_warm_up_request_follows_the_proxy_rules(env: dict[str, str], host: str, engine: str, through: bool) -> None:
    facts = {"engine.version": engine, "flag.host": host, **{f"env.{name}": value for name, value in env.items()}}
    assert warmup_goes_through_proxy(facts) is through


def test_a_certificate_makes_the_request_https() -> None:
    assert not warmup_goes_through_proxy({**PROXY, "flag.ssl-certfile": "/c.pem"})
    assert warmup_goes_through_proxy({"env.https_proxy": "http://p:1", "flag.ssl-certfile": "/c.pem"})


def test_without_a_warm_up_no_request_is_sent() -> None:
    assert not warmup_goes_through_proxy({**PROXY, "flag.skip-server-warmup": True})


@pytest.mark.parametrize(
    ("facts", "host"),
    [
        ({}, "127.0.0.1"),
        ({"flag.host": "10.0.0.1", "engine.version": "0.5.10"}, "10.0.0.1"),
        ({"flag.host": "0.0.0.0", "engine.version": "0.5.9"}, "0.0.0.0"),
        ({"flag.host": "0.0.0.0", "engine.version": "0.5.10"}, "127.0.0.1"),
        ({"flag.host": "::", "engine.version": "0.5.10"}, "::1"),
        ({"flag.host": "0.0.0.0"}, "0.0.0.0"),
    ],
)
def test_the_engine_asks_the_address_it_is_bound_to_until_0_5_9_and_then_the_loopback(
    facts: dict[str, Any], host: str
) -> None:
    assert warmup_host(facts) == host
