"""A loopback port that leads to the server under test: for programs of others, which only know URLs.

Our own requests need none of this, see `launcher.client.endpoint`. The port is open to every user of this machine as
long as it is open at all: no longer than the program runs.
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
    """A port of 127.0.0.1 whose connections go to host:port as seen from the machine."""
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
            here, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_join, args=(here, transport, host, port), daemon=True).start()


def _join(here: socket.socket, transport: Transport, host: str, port: int) -> None:
    with here:
        try:
            there = transport.connect(host, port, 10.0)
        except (OSError, LauncherError):
            return  # the caller sees its connection closed, as it would without us
        with there:
            there.settimeout(None)
            back = threading.Thread(target=_pump, args=(there, here), daemon=True)
            back.start()
            _pump(here, there)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Bytes from one to the other until the source ends, then its end too."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
