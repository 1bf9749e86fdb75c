"""httpx over sockets of a transport: every failure is an httpx error, and connections are reused with care."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from launcher.client.tunnel import Tunnel
from launcher.errors import HostUnreachable
from launcher.transport.local import LocalTransport
from tests.support.ports import free_port

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Answer = Callable[[socket.socket, int], None]


class Counting(LocalTransport):
    """Counts the connections that are opened."""

    opened = 0

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        self.opened += 1
        return super().connect(host, port, timeout)


@contextmanager
def server(answer: Answer) -> Iterator[int]:
    """A server that calls `answer` with each request of each connection and its number on that connection."""

    def serve(peer: socket.socket) -> None:
        with peer:
            number = 0
            while peer.recv(65536):
                number += 1
                try:
                    answer(peer, number)
                except OSError:
                    return

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(peer,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener,), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def client(port: int, transport: LocalTransport | None = None) -> Iterator[httpx.Client]:
    tunnel = Tunnel(transport or LocalTransport())
    with httpx.Client(transport=tunnel, base_url=f"http://127.0.0.1:{port}", timeout=10) as opened:
        yield opened


def always(peer: socket.socket, number: int) -> None:
    peer.sendall(OK)


def test_one_connection_serves_requests_that_follow_each_other() -> None:
    transport = Counting()
    with server(always) as port, client(port, transport) as http:
        assert [http.get("/x").text for _ in range(3)] == ["ok"] * 3
    assert transport.opened == 1


def test_a_connection_that_the_server_has_closed_is_replaced() -> None:
    def once(peer: socket.socket, number: int) -> None:
        peer.sendall(OK)
        peer.shutdown(socket.SHUT_RDWR)

    transport = Counting()
    with server(once) as port, client(port, transport) as http:
        assert [http.get("/x").text for _ in range(3)] == ["ok"] * 3
    assert transport.opened == 3


def refuse_second(peer: socket.socket, number: int) -> None:
    """Close an idle connection only when the next request has arrived on it."""
    if number > 1:
        peer.close()
        raise OSError
    peer.sendall(OK)


def test_a_get_that_lost_the_race_with_a_closing_server_is_repeated() -> None:
    transport = Counting()
    with server(refuse_second) as port, client(port, transport) as http:
        assert [http.get("/x").text for _ in range(2)] == ["ok"] * 2
    assert transport.opened == 2


def test_a_post_is_never_repeated() -> None:
    """It may have been carried out."""
    with server(refuse_second) as port, client(port) as http:
        assert http.post("/x").text == "ok"
        with pytest.raises(httpx.ReadError):
            http.post("/x")


def test_a_get_is_repeated_once_and_not_forever() -> None:
    def never(peer: socket.socket, number: int) -> None:
        peer.close()
        raise OSError

    transport = Counting()
    with server(never) as port, client(port, transport) as http, pytest.raises(httpx.ReadError):
        http.get("/x")
    assert transport.opened == 2


def test_a_closed_port_is_a_connect_error() -> None:
    with client(free_port()) as http, pytest.raises(httpx.ConnectError):
        http.get("/x")


def test_an_error_of_the_transport_keeps_its_kind() -> None:
    class Lost(LocalTransport):
        def connect(self, host: str, port: int, timeout: float) -> socket.socket:
            raise HostUnreachable("the connection was lost")

    with client(1, Lost()) as http, pytest.raises(HostUnreachable):
        http.get("/x")


def test_a_silent_server_is_a_read_timeout() -> None:
    def silent(peer: socket.socket, number: int) -> None:
        pass

    with server(silent) as port, client(port) as http, pytest.raises(httpx.ReadTimeout):
        http.get("/x", timeout=0.1)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", httpx.ReadError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nha", httpx.ReadError),
        (b"220 smtp ready\r\n", httpx.ReadError),
    ],
)
def test_a_reply_that_is_cut_off_or_not_http_is_a_read_error(sent: bytes, error: type[Exception]) -> None:
    def part(peer: socket.socket, number: int) -> None:
        peer.sendall(sent)
        peer.shutdown(socket.SHUT_RDWR)

    with server(part) as port, client(port) as http, pytest.raises(error):
        http.get("/x")


def test_a_body_that_stops_is_a_read_timeout() -> None:
    def stops(peer: socket.socket, number: int) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")

    with server(stops) as port, client(port) as http, pytest.raises(httpx.ReadTimeout):
        http.get("/x", timeout=0.2)


def test_closing_ends_a_request_of_another_thread() -> None:
    arrived, raised = threading.Event(), list[BaseException]()

    def silent(peer: socket.socket, number: int) -> None:
        arrived.set()

    def request(http: httpx.Client) -> None:
        try:
            http.post("/x", timeout=60)
        except httpx.HTTPError as error:
            raised.append(error)

    with server(silent) as port, client(port) as http:
        thread = threading.Thread(target=request, args=(http,))
        thread.start()
        assert arrived.wait(20)
        http.close()
        thread.join(20)
        assert not thread.is_alive()
    assert [type(error) for error in raised] == [httpx.ReadError]
