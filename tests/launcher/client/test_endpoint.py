"""HTTP through a transport: the same replies and errors, locally and through SSH."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from launcher.client.endpoint import (
    Endpoint,
    EndpointBroken,
    EndpointForbidden,
    EndpointRefused,
    EndpointTimeout,
    ReplyError,
)
from launcher.transport.base import Transport
from tests.support.ports import free_port

pytestmark = pytest.mark.sshd
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A TCP server that calls `answer` with each connection, each in its own thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(peer,), daemon=True).start()

        def handle(peer: socket.socket) -> None:
            with peer:
                answer(peer)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def request_of(peer: socket.socket) -> bytes:
    """Read one whole request: closing before its body has arrived would reset the connection of the sender."""
    data = b""
    while not whole(data):
        chunk = peer.recv(65536)
        if not chunk:
            return b""
        data += chunk
    return data


def whole(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    size = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return bool(end) and len(body) >= size


def test_a_port_without_a_listener_is_refused(transport: Transport) -> None:
    with pytest.raises(EndpointRefused):
        Endpoint(transport, "127.0.0.1", free_port()).get("/health", 5)


def test_no_answer_in_time(transport: Transport) -> None:
    released = threading.Event()

    def silent(peer: socket.socket) -> None:
        request_of(peer)
        released.wait(20)

    with server(silent) as port:
        with pytest.raises(EndpointTimeout):
            Endpoint(transport, "127.0.0.1", port).get("/health", 0.3)
        released.set()


@pytest.mark.parametrize("junk", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
def test_truncated_replies_and_other_protocols_are_broken_not_empty(transport: Transport, junk: bytes) -> None:
    def send_junk(peer: socket.socket) -> None:
        request_of(peer)
        peer.sendall(junk)

    with server(send_junk) as port, pytest.raises(EndpointBroken):
        Endpoint(transport, "127.0.0.1", port).get("/x", 5)


def test_a_connection_that_the_server_has_closed_is_not_reused(transport: Transport) -> None:
    def once(peer: socket.socket) -> None:
        request_of(peer)
        peer.sendall(OK)

    with server(once) as port:
        endpoint = Endpoint(transport, "127.0.0.1", port)
        assert [endpoint.get("/x", 10).body for _ in range(4)] == [b"ok"] * 4


def test_events_of_a_stream_arrive_one_by_one_and_leaving_closes_it(transport: Transport) -> None:
    closed = threading.Event()

    def stream(peer: socket.socket) -> None:
        request_of(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        try:
            for number in range(10**9):  # more than all buffers between server and client can hold
                peer.sendall(b'data: {"n": %d}\n\n' % number)
        except OSError:
            closed.set()

    with server(stream) as port:
        numbers = []
        with Endpoint(transport, "127.0.0.1", port).stream("/generate", {"stream": True}, 10) as reply:
            for _, data in reply:
                numbers.append(json.loads(data)["n"])
                if len(numbers) == 3:
                    break
        assert numbers == [0, 1, 2]
        assert closed.wait(10)


def test_many_threads_share_one_endpoint(transport: Transport) -> None:
    def echo(peer: socket.socket) -> None:
        while request := request_of(peer):
            body = request.split(b" ", 2)[1]
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with server(echo) as port, ThreadPoolExecutor(16) as pool:
        endpoint = Endpoint(transport, "127.0.0.1", port)
        paths = [f"/{number}" for number in range(48)]
        assert [reply.body.decode() for reply in pool.map(endpoint.get, paths)] == paths


def test_a_reply_that_is_not_json_is_reported(transport: Transport) -> None:
    def html(peer: socket.socket) -> None:
        request_of(peer)
        peer.sendall(OK)

    with server(html) as port, pytest.raises(ReplyError, match="not JSON"):
        Endpoint(transport, "127.0.0.1", port).get("/x", 5).json()


def test_a_rejected_stream_keeps_its_reason(transport: Transport) -> None:
    body = b'{"error": {"message": "The input is longer than the context."}}'

    def refuse(peer: socket.socket) -> None:
        request_of(peer)
        peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with server(refuse) as port, Endpoint(transport, "127.0.0.1", port).stream("/generate", {}, 10) as reply:
        assert (reply.status, reply.body()) == (400, body)


@pytest.mark.parametrize(("key", "message"), [(None, "requires an API key"), ("sk-1", "rejected this API key")])
def test_a_missing_or_a_wrong_key_has_its_own_error(transport: Transport, key: str | None, message: str) -> None:
    def refuse(peer: socket.socket) -> None:
        assert (b"Bearer sk-1" in request_of(peer)) is (key is not None)
        peer.sendall(b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    with server(refuse) as port:
        endpoint = Endpoint(transport, "127.0.0.1", port, api_key=key)
        with pytest.raises(EndpointForbidden, match=message):
            endpoint.get("/server_info", 5)
        with pytest.raises(EndpointForbidden, match=message), endpoint.stream("/generate", {}, 5):
            pass


def test_a_closed_endpoint_refuses_requests(transport: Transport) -> None:
    endpoint = Endpoint(transport, "127.0.0.1", free_port())
    endpoint.close()
    with pytest.raises(EndpointRefused):
        endpoint.get("/health", 5)
