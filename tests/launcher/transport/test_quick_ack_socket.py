"""The socket of an SSH connection acknowledges immediately, whatever the kernel would choose."""

from __future__ import annotations

import socket
import threading

import pytest

from launcher.transport.ssh_dial import _QuickAckSocket

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="Linux only")


def quick_ack_after_an_exchange(wrap: type[socket.socket] | None) -> int:
    """Return TCP_QUICKACK after a few exchanges, which make the kernel fall back to delayed acknowledgements."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def echo() -> None:
            peer, _ = listener.accept()
            with peer:
                while data := peer.recv(100):
                    peer.sendall(data)

        thread = threading.Thread(target=echo)
        thread.start()
        plain = socket.create_connection(listener.getsockname(), 10)
        with _QuickAckSocket(plain) if wrap is _QuickAckSocket else plain as stream:
            for _ in range(20):
                stream.sendall(b"question")
                assert stream.recv(100)
            quick_ack = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
        thread.join()
    return quick_ack


def test_acknowledgements_stay_immediate() -> None:
    # the kernel's own choice; if it were 1, the second assertion would prove nothing
    assert quick_ack_after_an_exchange(None) == 0
    assert quick_ack_after_an_exchange(_QuickAckSocket) == 1
