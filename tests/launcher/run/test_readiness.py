"""Only the launched process counts as ready: judged by its report, and by who listens on the port."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from launcher.client.endpoint import Endpoint
from launcher.run.readiness import health, identify
from launcher.run.remote import Look
from launcher.run.store import Run
from launcher.transport.local import LocalTransport
from tests.support.fake_server import serving
from tests.support.ports import free_port

LOOK = Look(run="r", state="running", code=None, pid=7, log_bytes=1, listening=True)
INFO = {"model_path": "/models/m", "served_model_name": "m", "port": 30000, "version": "0.5.23"}


@pytest.fixture
def plan(run: Run) -> Any:
    return replace(run.plan, model_path="/models/m", served_name="m", server_port=30000)


def test_the_launched_process_with_its_own_arguments_is_the_run(plan: Any) -> None:
    identity = identify(INFO, LOOK, plan)
    assert identity.faults == ()
    assert len(identity.evidence) == 4
    assert identity.evidence[0] == "a process of this run listens on port 30000"


@pytest.mark.parametrize("key", ["model_path", "served_model_name", "port"])
def test_one_argument_of_another_server_is_a_fault(plan: Any, key: str) -> None:
    [fault] = identify({**INFO, key: "other"}, LOOK, plan).faults
    assert f"{key} `other`, expected `" in fault


def test_a_listener_of_another_process_is_a_fault_whatever_it_reports(plan: Any) -> None:
    foreign = replace(LOOK, listening=False, foreign_listeners=(8, 9))
    [fault] = identify(INFO, foreign, plan).faults
    assert "port 30000 belongs to pid 8, 9" in fault


def test_a_server_without_a_report_proves_nothing(plan: Any) -> None:
    assert identify({}, LOOK, plan).faults
    assert identify({}, replace(LOOK, listening=None), plan).faults


def test_a_report_with_fewer_arguments_is_judged_by_the_others(plan: Any) -> None:
    assert identify({"port": "30000", "model_path": None}, LOOK, plan).faults == ()
    assert identify(INFO, LOOK, replace(plan, model_path="", served_name="")).faults == ()


def test_a_listener_that_this_user_cannot_see_is_admitted(plan: Any) -> None:
    identity = identify(INFO, replace(LOOK, listening=False), plan)
    assert identity.faults == ()
    assert "not visible" in identity.evidence[-1]


@pytest.mark.parametrize(
    ("actual", "same"), [("/home/eva/m", True), ("/home/eva/other", False), ("/home/eva/xm", False), ("~/m", True)]
)
def test_a_path_below_the_home_folder_is_known_by_its_end(plan: Any, actual: str, same: bool) -> None:
    identity = identify({**INFO, "model_path": actual}, LOOK, replace(plan, model_path="~/m"))
    assert (identity.faults == ()) is same


def status(port: int, **options: Any) -> int:
    endpoint = Endpoint(LocalTransport(), "127.0.0.1", port, **options)
    try:
        return health(endpoint)
    finally:
        endpoint.close()


def test_the_status_of_health_is_returned_as_it_is() -> None:
    with serving() as (port, _):
        assert status(port) == 200
    with serving("health-503") as (port, _):
        assert status(port) == 503


def test_a_closed_port_is_0() -> None:
    assert status(free_port()) == 0


def test_a_server_that_wants_a_key_for_health_is_401() -> None:
    with replying(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n") as port:
        assert status(port) == 401


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-OpenSSH\r\n"])
def test_a_reply_that_is_not_http_is_minus_1(reply: bytes) -> None:
    with replying(reply) as port:
        assert status(port) == -1


@contextmanager
def replying(data: bytes) -> Iterator[int]:
    """A server that sends these bytes to every connection and closes it."""

    class Reply(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4096)
            self.request.sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Reply) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
