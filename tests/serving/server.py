"""Starts stand-ins: `with serving(faults=["salad-each-20"]) as (url, state): ...`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from tests.serving.options import Options
from tests.serving.planting import Fault
from tests.serving.state import State
from tests.serving.wire import Server

FEATURES: dict[str, dict[str, Any]] = {
    "adapters": {"adapters": ("pirate", "formal")},
    "vision": {"vision": True},
    "embedding": {"kind": "embedding"},
    "reranker": {"kind": "reranker"},
    "thinking": {"thinking": "parsed"},
    "switchable": {"thinking": "parsed", "switchable": True},
    "ranks": {"ranks": 4},
    "speculation": {"together": 3},
    "slow": {"speed": 400.0},
    "wide": {"running": 128},
    "narrow": {"running": 4},
}
"""What a fault may need of the server it is planted in."""


def configured(faults: Sequence[Fault], odd: str | None, options: dict[str, Any]) -> Options:
    """Return the options of a server that has what the faults need."""
    from tests.serving.oddities import ODDITIES

    settings: dict[str, Any] = dict(ODDITIES[odd].options) if odd else {}
    for fault in faults:
        for need in sorted(fault.needs):
            settings |= FEATURES[need]
    return msgspec.structs.replace(Options(), **{**settings, **options})


@contextmanager
def serving(
    faults: Sequence[str | Fault] = (), odd: str | None = None, port: int = 0, **options: Any
) -> Iterator[tuple[str, State]]:
    """Run a stand-in with faults, or one that is odd but healthy; yield its URL and its state.

    Options are those of `Options`; `speed=0` does not sleep between tokens.
    """
    from tests.serving.table import FAULTS

    planted = [FAULTS[fault] if isinstance(fault, str) else fault for fault in faults]
    state = State(configured(planted, odd, options), planted)
    server = Server(state, port)
    # threads that write streams must not keep the scheduler from its turn for long
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0003)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="http", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", state
    finally:
        server.shutdown()
        server.server_close()
        state.close()
        thread.join(timeout=5)
        sys.setswitchinterval(interval)
