"""Ports for the transport tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that stays bound and does not listen: nobody else can take it meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
