"""Forwards a loopback port to the server under test, for external programs that need a URL.

The launcher's own requests go through `launcher.client.endpoint` instead. Every user of this machine can connect to the
port, so it is open only while the external program runs.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from launcher.errors import LauncherError
from launcher.transport.base import Transport

CHUNK = 1 << 16


@contextlib.contextmanager
def forwarded(transport: Transport, host: str, port: int) -> Iterator[int]:
    """Forward a port of 127.0.0.1 to host:port as seen from the machine; yields the number of that port."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        threading.Thread(target=_accept, args=(listener, transport, host, port), daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, transport: Transport, host: str, port: int) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_relay, args=(client, transport, host, port), daemon=True).start()


def _relay(client: socket.socket, transport: Transport, host: str, port: int) -> None:
    with client:
        try:
            server = transport.connect(host, port, 10.0)
        except (OSError, LauncherError):
            return  # the client sees a closed connection, as it would without the forward
        with server:
            server.settimeout(None)
            replies = threading.Thread(target=_pump, args=(server, client), daemon=True)
            replies.start()
            _pump(client, server)
            replies.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Copy bytes from `source` to `sink` until the source ends, then shut down the sink for writing."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
