"""Ports for servers that a test starts later, or never: free now, and not handed out by the kernel meanwhile."""

from __future__ import annotations

import random
import socket

RANGE = range(20_000, 32_000)
"""Below the ephemeral ports of Linux (32768 and up), which other tests get for connections at any moment."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    while True:
        port = random.SystemRandom().choice(RANGE)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
