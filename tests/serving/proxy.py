"""A proxy that plants faults before a real server: `with proxying(upstream, ["no-done"]) as url: ...`."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct, field

from tests.serving.calls import Call, Refusal, Reply, refused
from tests.serving.options import Options
from tests.serving.planting import At, Fault, Planted
from tests.serving.proxy_rules import RULES
from tests.serving.routes import GENERATING

_DROPPED = {"content-length", "transfer-encoding", "connection", "host", "accept-encoding"}


class Rewriting(Struct):
    """What the proxy knows: where it passes requests on to, and what its faults remember."""

    upstream: str
    faults: Planted
    options: Options = field(default_factory=Options)
    memory: dict[Any, Any] = field(default_factory=dict)
    served: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, call: Call) -> At:
        """Return where a hook is run."""
        return At(cast(Any, self), call)


class Proxy(ThreadingHTTPServer):
    """Accepts connections for a proxy."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, state: Rewriting, port: int = 0) -> None:
        self.state = state
        super().__init__(("127.0.0.1", port), Passing)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that leave."""


class Passing(BaseHTTPRequestHandler):
    """Passes the requests of one connection on."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Proxy

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Pass a GET on."""
        self._pass()

    def do_POST(self) -> None:
        """Pass a POST on."""
        self._pass()

    def do_PUT(self) -> None:
        """Pass a PUT on."""
        self._pass()

    def _pass(self) -> None:
        state = self.server.state
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path, _, query = self.path.partition("?")
        call = Call(self.command, path, {name.lower(): value for name, value in self.headers.items()}, query)
        generating = path in GENERATING and self.command != "GET"
        if generating:
            with state.lock:
                state.served += 1
                call.number = state.served
            try:
                call.body = json.loads(raw)
                raw = json.dumps(state.faults("body", call.body, state.at(call))).encode()
            except ValueError:
                generating = False
            if isinstance(refusal := state.faults("arrival", None, state.at(call)), Refusal):
                self._send(call, refused(refusal, path, state.options.release))
                return
        try:
            self._forward(call, raw, generating)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _forward(self, call: Call, raw: bytes, generating: bool) -> None:
        state = self.server.state
        target = urlsplit(state.upstream)
        link = http.client.HTTPConnection(target.hostname or "127.0.0.1", target.port or 80, timeout=600)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
            link.request(self.command, self.path, raw or None, headers)
            answer = link.getresponse()
            kind = answer.getheader("content-type", "application/json")
            if "event-stream" in kind:
                self._stream(call, answer, kind)
                return
            body: Any = answer.read().decode("utf-8", "surrogateescape")
            more = {
                name: value for name, value in answer.getheaders() if name.lower() in {"retry-after", "x-request-id"}
            }
            reply = Reply(body, answer.status, more, kind)
            if generating and answer.status == 200 and "json" in kind:
                reply = state.faults("reply", Reply(json.loads(body), answer.status, more, kind), state.at(call))
            self._send(call, reply)
        finally:
            link.close()

    def _send(self, call: Call, reply: Reply) -> None:
        text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body, ensure_ascii=False)
        whole = text.encode("utf-8", "surrogateescape")
        data = self.server.state.faults("wire", whole, self.server.state.at(call)) if call.number else whole
        self.send_response_only(reply.status)
        for name, value in {"content-type": reply.kind, "content-length": str(len(whole)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = self.close_connection or len(data) < len(whole)

    def _stream(self, call: Call, answer: http.client.HTTPResponse, kind: str) -> None:
        state = self.server.state
        at = state.at(call)
        self.send_response_only(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for data in _frames(answer):
            if data == "[DONE]":
                lines = state.faults("closing", ["data: [DONE]"], at)
                frames = [f"{line}\n\n".encode() for line in lines]
            else:
                bodies = state.faults("events", [json.loads(data)], at)
                frames = [
                    state.faults("wire", f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode(), at)
                    for body in bodies
                ]
            for frame in filter(None, frames):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        self.wfile.write(b"0\r\n\r\n")


def _frames(answer: http.client.HTTPResponse) -> Iterator[str]:
    """Yield the data of each event of a stream."""
    lines: list[str] = []
    while raw := answer.readline():
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("data:"):
            lines.append(line[5:].strip())
        elif not line and lines:
            yield "\n".join(lines)
            lines = []


@contextmanager
def proxying(upstream: str, faults: Sequence[str | Fault] = (), port: int = 0) -> Iterator[str]:
    """Run a proxy with faults before a server; yield its URL."""
    planted = tuple(RULES[fault] if isinstance(fault, str) else fault for fault in faults)
    server = Proxy(Rewriting(upstream, Planted(planted)), port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="proxy", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
