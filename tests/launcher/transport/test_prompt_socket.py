"""The socket of an SSH connection acknowledges at once, however the kernel would have it."""

from __future__ import annotations

import socket
import threading

import pytest

from launcher.transport.ssh_dial import _PromptSocket

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="Linux only")


def after_a_conversation(wrap: type[socket.socket] | None) -> int:
    """What TCP_QUICKACK says after a few questions and answers, with which a kernel falls back to delayed ones."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def echo() -> None:
            peer, _ = listener.accept()
            with peer:
                while data := peer.recv(100):
                    peer.sendall(data)

        thread = threading.Thread(target=echo)
        thread.start()
        plain = socket.create_connection(listener.getsockname(), 10)
        with _PromptSocket(plain) if wrap is _PromptSocket else plain as stream:
            for _ in range(20):
                stream.sendall(b"question")
                assert stream.recv(100)
            said = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
        thread.join()
    return said


def test_acknowledgements_stay_prompt() -> None:
    assert after_a_conversation(None) == 0  # the kernel's own choice: otherwise the next line shows nothing
    assert after_a_conversation(_PromptSocket) == 1
