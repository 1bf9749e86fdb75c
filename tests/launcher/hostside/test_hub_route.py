"""Is the hub in reach? Real sockets on loopback; what is slow stays unknown."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from launcher.hostside.hub_route import hub


class Hub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        records = {"/api/models/meta/closed": {"gated": "manual"}, "/api/models/meta/open": {"gated": False}}
        record = records.get(self.path)
        self.send_response(200 if record else 401)
        self.end_headers()
        self.wfile.write(json.dumps(record or {"error": "Invalid username or password."}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("name", "gated"), [("meta/closed", True), ("meta/open", False), ("meta/unknown", None)])
def test_a_hub_that_answers_says_which_models_are_gated(endpoint: str, name: str, gated: bool | None) -> None:
    assert hub(name, {"HF_ENDPOINT": endpoint}) == {"endpoint": endpoint, "reachable": True, "gated": gated}


def test_a_refused_connection_is_not_reachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert hub("a/b", {"HF_ENDPOINT": f"http://127.0.0.1:{port}"})["reachable"] is False


def test_a_name_that_nobody_resolves_is_not_reachable() -> None:
    assert hub("a/b", {"HF_ENDPOINT": "https://hub.invalid"})["reachable"] in (False, None)  # None: a slow resolver


def test_a_hub_that_accepts_and_is_silent_does_not_hold_the_look_up() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        found = hub("a/b", {"HF_ENDPOINT": f"http://127.0.0.1:{mute.getsockname()[1]}"})
    assert (found["reachable"], found["gated"]) == (True, None)


@pytest.mark.parametrize(
    "env",
    [{"HF_HUB_OFFLINE": "1"}, {"https_proxy": "http://p:1"}, {"ALL_PROXY": "x"}, {"SGLANG_USE_MODELSCOPE": "true"}],
)
def test_offline_another_hub_or_a_proxy_is_not_asked_past(endpoint: str, env: dict[str, str]) -> None:
    assert hub("meta/open", {"HF_ENDPOINT": endpoint, **env})["reachable"] is None
