"""A loopback port leads to the server as its host sees it, and to nothing afterwards."""

from __future__ import annotations

import socket

import pytest

from launcher.client.endpoint import Endpoint
from launcher.client.probing.forward import forwarded
from launcher.transport.base import Transport
from launcher.transport.local import LocalTransport
from tests.support.bench import free_port
from tests.support.fake_server import serving


@pytest.mark.sshd
def test_requests_through_the_port_reach_the_server(transport: Transport) -> None:
    with serving() as (port, state), forwarded(transport, "127.0.0.1", port) as here:
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", here)
        asked = {"text": "2, 4, 6,", "sampling_params": {"max_new_tokens": 4}}
        assert endpoint.get("/health").status == 200
        assert endpoint.post("/generate", asked).status == 200
        endpoint.close()
    assert state.paths == ["/health", "/generate"]


def test_a_server_that_is_not_there_closes_the_connection() -> None:
    with (
        forwarded(LocalTransport(), "127.0.0.1", free_port()) as here,
        socket.create_connection(("127.0.0.1", here), 10) as stream,
    ):
        assert stream.recv(1) == b""


def test_the_port_is_gone_afterwards() -> None:
    with serving() as (port, _), forwarded(LocalTransport(), "127.0.0.1", port) as here:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", here), 10)
