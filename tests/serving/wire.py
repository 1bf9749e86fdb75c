"""HTTP: requests from sockets, replies and streams onto them, in whatever framing a server uses."""

from __future__ import annotations

import json
import select
import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.serving import routes
from tests.serving.calls import Call, Refusal, Reply, Streamed, refused
from tests.serving.state import State


class Server(ThreadingHTTPServer):
    """Accepts connections for one stand-in."""

    daemon_threads = True
    request_queue_size = 512
    allow_reuse_address = True

    def __init__(self, state: State, port: int = 0) -> None:
        self.state = state
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that leave."""


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a POST."""
        self._answer()

    def do_PUT(self) -> None:
        """Answer a PUT, which some routes allow."""
        self._answer()

    def _answer(self) -> None:
        state = self.server.state
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        raw = self._body(headers)
        call = Call(self.command, path if path == "/" else path.rstrip("/"), headers, query, gone=self._gone)
        if state.options.latency:
            time.sleep(state.options.latency)
        try:
            reply: Reply | Streamed = self._routed(call, raw)
        except Refusal as refusal:
            if refusal.status in {404, 405} and "Not" in refusal.message:
                reply = Reply({"detail": refusal.message}, refusal.status)
            else:
                reply = refused(refusal, call.path, state.options.release)
        except Exception as error:
            state.errors.append(error)
            reply = refused(Refusal(f"Internal server error: {error!r}", 500), call.path, state.options.release)
        try:
            if isinstance(reply, Streamed):
                self._stream(call, reply)
            else:
                self._whole(call, reply)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _body(self, headers: dict[str, str]) -> bytes:
        if "chunked" in headers.get("transfer-encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(headers.get("content-length") or 0))

    def _routed(self, call: Call, raw: bytes) -> Reply | Streamed:
        """Check a request, give it its number, and let its route answer."""
        state = self.server.state
        locked = state.options.api_key and call.path not in routes.OPEN
        if locked and call.headers.get("authorization") != f"Bearer {state.options.api_key}":
            raise Refusal("Unauthorized", 401)
        route = routes.find(state, call)
        if raw:
            try:
                call.body = json.loads(raw)
            except ValueError as error:
                raise Refusal(
                    f"1 validation error:\n  {{'type': 'json_invalid', 'msg': 'JSON decode error: {error}'}}"
                ) from error
        if call.path in routes.GENERATING:
            state.limit()
            state.enter(call)
            arrival = state.faults("arrival", None, state.at(call))
            if isinstance(arrival, Refusal):
                raise arrival
            call.body = state.faults("body", call.body, state.at(call))
        reply = route(state, call)
        if isinstance(reply, Reply) and call.path in routes.GENERATING:
            reply = state.faults("reply", reply, state.at(call))
        return reply

    def _gone(self) -> bool:
        """Return whether the client closed its side."""
        try:
            ready, _, _ = select.select([self.connection], [], [], 0)
            return bool(ready) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def _head(self, call: Call, status: int, kind: str, extra: dict[str, str], length: int | None) -> bool:
        """Send the head of a reply, and return whether its body goes in chunks."""
        options = self.server.state.options
        headers = {"content-type": kind, "server": "uvicorn", **dict(options.headers), **extra}
        chunked = False
        if options.framing == "close":
            headers["connection"] = "close"
            self.close_connection = True
        elif length is None or options.framing == "chunked":
            headers["transfer-encoding"] = "chunked"
            chunked = True
        if length is not None and not chunked:
            headers["content-length"] = str(length)
        self.send_response_only(status)
        for name, value in self.server.state.faults("headers", headers, self.server.state.at(call)).items():
            self.send_header(name, value)
        self.end_headers()
        return chunked

    def _whole(self, call: Call, reply: Reply) -> None:
        text = (
            reply.body
            if isinstance(reply.body, str)
            else json.dumps(reply.body, ensure_ascii=False, separators=(",", ":"))
        )
        data: bytes = self.server.state.faults(
            "wire", text.encode("utf-8", "surrogateescape"), self.server.state.at(call, "whole")
        )
        if self._head(call, reply.status, reply.kind, reply.headers, len(text.encode("utf-8", "surrogateescape"))):
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data) if data else b"0\r\n\r\n")
        else:
            self.wfile.write(data)
            self.close_connection = self.close_connection or len(data) < len(text.encode("utf-8", "surrogateescape"))

    def _stream(self, call: Call, reply: Streamed) -> None:
        state, options = self.server.state, self.server.state.options
        chunked = self._head(call, 200, "text/event-stream; charset=utf-8", reply.headers, None)
        at, end, held = state.at(call), options.line_end, b""

        def send(data: bytes, flush: bool = False) -> None:
            nonlocal held
            held += data
            if held and (flush or len(held) >= options.buffer):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(held), held) if chunked else held)
                held = b""

        if options.comments:
            send(f": ping{end}{end}".encode())
        for step in reply.steps:
            for body in state.faults("events", step, at):
                head = f"event: message{end}" if options.event_lines else ""
                text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
                send(state.faults("wire", f"{head}data: {text}{end}{end}".encode("utf-8", "surrogateescape"), at))
            if options.comments and call.number % 3 == 0:
                send(f": keep-alive{end}{end}".encode())
        for text in state.faults("closing", ["data: [DONE]"], at):
            send(f"{text}{end}{end}".encode())
        send(b"", flush=True)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")
