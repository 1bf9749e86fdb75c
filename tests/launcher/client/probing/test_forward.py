"""A loopback port reaches the server as its host sees it, and is closed afterwards."""

from __future__ import annotations

import socket

import pytest

from launcher.client.endpoint import Endpoint
from launcher.client.probing.forward import forwarded
from launcher.transport.base import Transport
from launcher.transport.local import LocalTransport
from tests.support.fake_server import serving
from tests.support.ports import free_port


@pytest.mark.sshd
def test_requests_through_the_port_reach_the_server(transport: Transport) -> None:
    with serving() as (port, state), forwarded(transport, "127.0.0.1", port) as local_port:
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", local_port)
        payload = {"text": "2, 4, 6,", "sampling_params": {"max_new_tokens": 4}}
        assert endpoint.get("/health").status == 200
        assert endpoint.post("/generate", payload).status == 200
        endpoint.close()
    assert state.paths == ["/health", "/generate"]


def test_a_missing_server_closes_the_connection() -> None:
    with (
        forwarded(LocalTransport(), "127.0.0.1", free_port()) as local_port,
        socket.create_connection(("127.0.0.1", local_port), 10) as stream,
    ):
        assert stream.recv(1) == b""


def test_the_port_is_closed_afterwards() -> None:
    with serving() as (port, _), forwarded(LocalTransport(), "127.0.0.1", port) as local_port:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", local_port), 10)
