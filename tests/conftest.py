"""Fixtures for the whole suite: a real sshd on loopback, and transports that the contract tests run over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from launcher.transport import inventory
from launcher.transport.base import Transport
from launcher.transport.local import LocalTransport
from launcher.transport.ssh import SshTransport
from launcher.transport.ssh_config import CONFIG_VARIABLE
from tests.support import sshd
from tests.support.long_files import LONG_FILES
from tests.support.paths import ROOT
from tests.support.sshd import Sshd

GPU_BOX = "gpu-box"

# The time of an example depends on the load of the machine, so it must not decide whether a property holds.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole files that take long are marked `slow` from one list."""
    for item in items:
        if item.path.relative_to(ROOT).as_posix() in LONG_FILES:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build the knowledge index once for all workers, without touching the user's own cache."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str((base.parent if base.name.startswith("popen-") else base) / "cache"))
        yield


@pytest.fixture(scope="session")
def sshd_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """$HOME of every login through `sshd_server`: empty, so that no .bashrc slows or changes the tests."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def sshd_server(tmp_path_factory: pytest.TempPathFactory, sshd_home: Path) -> Iterator[Sshd]:
    """One server for all tests that only run commands. Tests that disturb a server start another with `start_sshd`."""
    if reason := sshd.missing():
        pytest.skip(reason)
    server = sshd.start(tmp_path_factory.mktemp("sshd"), GPU_BOX, [f"SetEnv HOME={sshd_home}"])
    yield server
    server.stop()


@pytest.fixture
def start_sshd(tmp_path: Path, sshd_home: Path) -> Iterator[Callable[..., Sshd]]:
    """Start further servers: start_sshd(alias, *lines for sshd_config). They are stopped afterwards."""
    if reason := sshd.missing():
        pytest.skip(reason)
    running: list[Sshd] = []

    def start(alias: str, *settings: str, home: Path = sshd_home) -> Sshd:
        server = sshd.start(tmp_path / f"sshd-{alias}", alias, [*settings, f"SetEnv HOME={home}"])
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def gpu_box(sshd_server: Sshd, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a host name that resolves to the shared sshd through an OpenSSH configuration."""
    monkeypatch.setenv(CONFIG_VARIABLE, str(sshd_server.config))
    return sshd_server.alias


@pytest.fixture(scope="session")
def ssh_transport(sshd_server: Sshd) -> Iterator[SshTransport]:
    """One connection to the shared sshd, for tests in which connecting does not matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CONFIG_VARIABLE, str(sshd_server.config))
        target = inventory.resolve(sshd_server.alias).ssh
    assert target is not None
    transport = SshTransport(target)
    yield transport
    transport.close()


@pytest.fixture(params=["local", "ssh"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Each kind of transport: a claim that holds for one must hold for the other."""
    if request.param == "local":
        return LocalTransport()
    ssh: Transport = request.getfixturevalue("ssh_transport")
    return ssh
