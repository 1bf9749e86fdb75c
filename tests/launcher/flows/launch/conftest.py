"""A host with the stand-in engine, whose runs are stopped after each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.run import remote
from launcher.transport.base import Transport
from launcher.transport.local import LocalTransport
from tests.support.bench import Bench, bench


def stopped_afterwards(created: Bench) -> Iterator[Bench]:
    yield created
    for run in created.context.store.all():
        if (run.folder / "plan.json").exists():
            remote.stop(created.transport, run, drain=0.2)


@pytest.fixture
def host(tmp_path: Path, transport: Transport) -> Iterator[Bench]:
    """Each kind of transport in turn."""
    yield from stopped_afterwards(bench(tmp_path, transport))


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Bench]:
    """This machine, for claims that do not depend on the way to the host."""
    yield from stopped_afterwards(bench(tmp_path, LocalTransport()))
