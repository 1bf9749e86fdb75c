"""Log lines that are newer than the local copy are read, and the copy does not change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.flows.diagnose.run_diagnosis import log_view
from launcher.run import remote
from launcher.run.fresh_log import fresh_log
from launcher.transport.base import Transport
from tests.support.bench import Bench, bench

pytestmark = pytest.mark.sshd
LATE = "[2026-11-29 16:46:19] Decode batch, #running-req: 1, #token: 5, cuda graph: False, gen throughput\n"


@pytest.fixture
def host(tmp_path: Path, transport: Transport) -> Iterator[Bench]:
    launcher = bench(tmp_path, transport)
    yield launcher
    for run in launcher.context.store.all():
        remote.stop(transport, run, drain=0.2)


def test_newer_lines_are_read_and_the_copy_is_unchanged(host: Bench) -> None:
    run = host.launch().run
    assert run is not None
    copied = run.log.read_bytes()
    with (host.folder / "work" / "runs" / run.id / "server.log").open("a") as log:
        log.write(LATE * 3)
    fresh = fresh_log(host.transport, run, host.context.clock)
    assert fresh.decode().endswith(LATE * 3)
    assert run.log.read_bytes() == copied
    assert [line.graph for line in log_view(run, fresh).decode] == [False] * 3
    assert log_view(run).decode == ()
