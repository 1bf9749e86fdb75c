"""A real HTTP server that answers like SGLang 0.5.x: threads, sockets, server-sent events, and faults on request.

Replies have the form of the engine's own; the text comes from `fake_model`, the damage from `faults`. The server counts
its concurrent requests, so that a test can prove that the limit was respected.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct, field

from tests.support.fake_answers import Reply, answer
from tests.support.fake_reports import metrics, models, server_info
from tests.support.faults import OUTPUT_FAULTS, Request

BATCHED = frozenset({"batch-garbage", "batch-of-5-garbage", "state-leaks"})
QUIET = 0.06  # seconds
WAIT = 30.0  # seconds until a hanging request returns


class State(Struct, kw_only=True):
    """The state of one stand-in: its configuration, its faults and the requests that it has received."""

    faults: frozenset[str] = frozenset()
    info: Mapping[str, Any] = field(default_factory=dict)
    delay: float = 0.0  # seconds per generated token
    lock: threading.Lock = field(default_factory=threading.Lock)
    released: threading.Event = field(default_factory=threading.Event)
    number: int = 0
    running: int = 0
    most_running: int = 0
    leaked: int = 0
    prompts: dict[str, int] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)


@contextmanager
def serving(*faults: str, delay: float = 0.0, at: int = 0, **info: Any) -> Iterator[tuple[int, State]]:
    """Run a stand-in on port `at` (0: any free one); yields its (port, state). `info` overrides /server_info."""
    state = State(faults=frozenset(faults), info=server_info(info), delay=delay)
    server = _Server(("127.0.0.1", at), _handler(state))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], state
    finally:
        state.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


def _handler(state: State) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        served = state

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    served: State

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        state, faults = self.served, self.served.faults
        with state.lock:
            state.paths.append(self.path)
        if self._unauthorized():
            return
        match self.path.partition("?")[0]:
            case "/health":
                self._send(503 if "health-503" in faults else 200, b"")
            case "/v1/models":
                self._json(200, models(state.info, faults))
            case "/server_info" | "/get_server_info" if "no-server-info" not in faults:
                self._json(200, state.info)
            case "/model_info" | "/get_model_info":  # the first request of the engine's own evaluation harness
                self._json(200, {"model_path": state.info["model_path"], "is_generation": True})
            case "/metrics" if state.info["enable_metrics"]:
                self._send(200, metrics(state.info).encode())
            case "/v1/loads":
                running = state.running + state.leaked
                self._json(200, {"loads": [{"dp_rank": 0, "num_running_reqs": running, "num_waiting_reqs": 0}]})
            case _:
                self._json(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        state = self.served
        payload = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self._unauthorized():
            return
        with state.lock:
            state.paths.append(self.path)
            state.number += 1
            number = state.number
            state.running += 1
            state.most_running = max(state.most_running, state.running)
        try:
            self._generate(payload, number)
        finally:
            with state.lock:
                state.running -= 1

    def _unauthorized(self) -> bool:
        """Reject requests without the API key, as the engine does; /health and /metrics need no key."""
        key = self.served.info.get("api_key")
        if not key or self.path.startswith(("/health", "/metrics")):
            return False
        if self.headers.get("Authorization") == f"Bearer {key}":
            return False
        self._json(401, {"error": "Unauthorized"})
        return True

    def _generate(self, payload: Mapping[str, Any], number: int) -> None:
        state, faults = self.served, self.served.faults
        if self._transport_fault(number):
            return
        if faults & BATCHED:
            self._wait_for_the_batch()
        reply = answer(self.path, payload, state.info, faults, lambda prompt, tokens: Request(
            prompt=prompt, payload=payload, number=number, running=state.running, seen=self._seen(prompt),
            stream=bool(payload.get("stream")), tokens=tokens))  # fmt: skip
        if reply.status != 200:
            self._json(reply.status, reply.body)
        elif payload.get("stream"):
            self._stream(reply)
        else:
            self._pause(reply.tokens)
            if faults & BATCHED:
                time.sleep(QUIET)  # no request returns before the last one has measured the batch
            self._body(reply)

    def _transport_fault(self, number: int) -> bool:
        faults = self.served.faults
        if "http-500" in faults or ("http-500-burst" in faults and number % 3 == 0):
            self._json(500, {"error": {"message": "Internal Server Error"}})
        elif "http-503" in faults:
            self._json(503, {"error": {"message": "The request queue is full."}})
        elif "hangs" in faults or ("frozen-rank" in faults and number % int(self.served.info["dp_size"]) == 0):
            self.served.released.wait(WAIT)
        elif "half-closed" in faults:
            self.send_response(200)
            self.send_header("Content-Length", "4000")
            self.end_headers()
            self.wfile.write(b'{"text": "The cap')
        else:
            return False
        self.close_connection = True
        return True

    def _wait_for_the_batch(self) -> None:
        """Wait until no further request arrives, so that the batch size is the number of concurrent requests."""
        state, before = self.served, -1
        while state.running != before:
            before = state.running
            time.sleep(QUIET)

    def _seen(self, prompt: str) -> bool:
        with self.served.lock:
            self.served.prompts[prompt] = self.served.prompts.get(prompt, 0) + 1
            return self.served.prompts[prompt] > 1

    def _body(self, reply: Reply) -> None:
        faults = self.served.faults
        if "not-json" in faults:
            self._send(200, b"<html><body>502 Bad Gateway</body></html>")
            return
        text = json.dumps(reply.body, ensure_ascii=False)
        self._send(200, text.encode("utf-8", "surrogatepass"))

    def _stream(self, reply: Reply) -> None:
        faults = self.served.faults
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for index, event in enumerate(reply.events):
                if not self._event(event, index):
                    return
            if "stream-cut" not in faults:
                self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            if "abort-leaks" in faults:
                self.served.leaked += 1

    def _event(self, event: Mapping[str, Any], index: int) -> bool:
        faults = self.served.faults
        if "stuck-stream" in faults and index == 3:
            self.served.released.wait(WAIT)
            return False
        if "stream-cut" in faults and index == 3:
            return False
        if "stream-error" in faults and index == 3:
            event = {"error": {"message": "CUDA error: an illegal memory access was encountered"}}
        if "slow-drip" in faults:
            time.sleep(0.2)
        self._pause(1)
        self.wfile.write(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n")
        return True

    def _pause(self, tokens: int) -> None:
        if self.served.delay:
            time.sleep(self.served.delay * tokens)

    def _json(self, status: int, data: object) -> None:
        self._send(status, json.dumps(data).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status >= 500:
            self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until interrupted. The arguments are names of faults."""
    if unknown := set(sys.argv[1:]) - OUTPUT_FAULTS.keys() - BATCHED:
        sys.exit(f"unknown fault: {', '.join(sorted(unknown))}; choose from {', '.join(sorted(OUTPUT_FAULTS))}")
    with serving(*sys.argv[1:]) as (port, _), contextlib.suppress(KeyboardInterrupt):
        print(f"launch validate http://127.0.0.1:{port} --suite standard    (Ctrl-C here ends the server)", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
