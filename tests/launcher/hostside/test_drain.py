"""An engine that waits for requests it had rejected is told apart from one that drains, over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from launcher.hostside.drain import SAME_REPORTS, Drain, scheduled

HOST = "127.0.0.1"
IDLE = {"/v1/loads": b'{"aggregate": {"total_reqs": 0}}'}
BUSY = {"/v1/loads": b'{"aggregate": {"total_reqs": 2}}'}


def report(number: int = 1, rids: str = "'d5e1'") -> str:
    return f"Gracefully exiting... Remaining number of requests {number}. Remaining requests remaining_rids=[{rids}].\n"


@contextmanager
def scheduler(pages: Mapping[str, bytes], declared: int = 0, host: str = HOST) -> Iterator[int]:
    """A server with these pages. `declared` bytes are announced in addition to those that are sent."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Length", str(len(page or b"") + declared))
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = Server((host, 0), Pages)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text(report(9) * SAME_REPORTS)  # of an earlier stop: not of this one
    return path


def append(log: Path, text: str) -> None:
    with log.open("a") as out:
        out.write(text)


def test_requests_that_no_scheduler_has_are_leaked(log: Path) -> None:
    with scheduler(IDLE) as port:
        drain = Drain(str(log), HOST, port)
        assert not drain.waits_for_leaked()
        append(log, report(2, "'a', 'b'") * (SAME_REPORTS - 1))
        assert not drain.waits_for_leaked()
        append(log, "another line\n" + report(2, "'a', 'b'"))
        assert drain.waits_for_leaked()
    assert (drain.leaked, drain.requests) == (True, 2)


def test_requests_that_a_scheduler_still_runs_are_waited_for(log: Path) -> None:
    with scheduler(BUSY) as port:
        drain = Drain(str(log), HOST, port)
        append(log, report() * SAME_REPORTS)
        assert not drain.waits_for_leaked()
    assert not drain.leaked


def test_the_scheduler_is_asked_again_only_after_as_many_further_reports(log: Path) -> None:
    pages = dict(BUSY)
    with scheduler(pages) as port:
        drain = Drain(str(log), HOST, port)
        append(log, report() * SAME_REPORTS)
        assert not drain.waits_for_leaked()
        pages.update(IDLE)
        append(log, report() * (SAME_REPORTS - 1))
        assert not drain.waits_for_leaked()
        append(log, report())
        assert drain.waits_for_leaked()


def test_reports_of_changing_requests_are_a_drain_that_works(log: Path) -> None:
    with scheduler(IDLE) as port:
        drain = Drain(str(log), HOST, port)
        for number in range(9, 0, -1):
            append(log, report(number, ", ".join(f"'{rid}'" for rid in range(number))))
            assert not drain.waits_for_leaked()


def test_a_report_that_is_written_in_two_pieces_counts_once(log: Path) -> None:
    with scheduler(IDLE) as port:
        drain = Drain(str(log), HOST, port)
        text = report() * SAME_REPORTS
        for start in range(0, len(text) - 1, 7):
            append(log, text[start : min(start + 7, len(text) - 1)])
            assert not drain.waits_for_leaked()
        append(log, "\n")
        assert drain.waits_for_leaked()


def test_a_log_that_is_gone_reports_nothing(log: Path) -> None:
    drain = Drain(str(log), HOST, 1)
    log.unlink()
    assert not drain.waits_for_leaked()
    assert not Drain(str(log), HOST, 1).waits_for_leaked()


def test_older_releases_report_their_ranks_one_by_one() -> None:
    with scheduler({"/get_load": json.dumps([{"num_reqs": 1}, {"num_reqs": 2}]).encode()}) as port:
        assert scheduled(HOST, port) == 3


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_an_ipv6_address_is_put_in_brackets() -> None:
    with scheduler(BUSY, host="::1") as port:
        assert scheduled("::1", port) == scheduled("::", port) == 2


@pytest.mark.parametrize("address", ["0.0.0.0", ""])
def test_a_server_that_listens_everywhere_is_asked_on_loopback(address: str) -> None:
    with scheduler(BUSY) as port:
        assert scheduled(address, port) == 2


@pytest.mark.parametrize(
    "page", [b"", b"<html>", b"[]", b"null", b'{"aggregate": null}', b'{"aggregate": {"total_reqs": "many"}}', b"\xff"]
)
def test_a_reply_in_another_form_is_unknown_not_idle(page: bytes) -> None:
    with scheduler({"/v1/loads": page, "/get_load": b'{"num_reqs": 0}'}) as port:
        assert scheduled(HOST, port) is None


def test_a_reply_that_is_cut_off_is_unknown() -> None:
    """The engine may exit while it answers."""
    with scheduler({"/v1/loads": b'{"aggregate"'}, declared=100) as port:
        assert scheduled(HOST, port) is None


def test_a_server_that_is_gone_is_unknown() -> None:
    with scheduler({}) as port:
        pass
    assert scheduled(HOST, port) is None


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with scheduler(IDLE) as port:
        assert scheduled(HOST, port) == 0
