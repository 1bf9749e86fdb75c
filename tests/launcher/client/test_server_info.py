"""What a server reports about itself, under the path of any release, behind a gateway, or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from launcher.client.endpoint import Endpoint, EndpointForbidden, EndpointRefused
from launcher.client.server_info import PATHS, identify_server, read_server_info
from launcher.errors import UsageError
from launcher.transport.local import LocalTransport
from tests.support.ports import free_port

NEW, OLD = PATHS
MODELS = "/v1/models"
REPORT = {"version": "0.5.23", "model_path": "/models/é"}
Page = tuple[int, bytes]


def page(data: object, status: int = 200) -> Page:
    return status, json.dumps(data).encode()


@contextmanager
def serving(pages: Mapping[str, Page], absent: int = 404) -> Iterator[Endpoint]:
    """A server with these pages. An empty body closes the connection without a reply."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = pages.get(self.path, (absent, b"{}"))
            if body:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    endpoint = Endpoint(LocalTransport(), "127.0.0.1", server.server_port)
    try:
        yield endpoint
    finally:
        endpoint.close()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    "first", [(404, b"{}"), (200, b"<html>"), (200, b"[]"), (200, b"null"), (500, b"{}"), (200, b"")]
)
def test_the_older_path_is_read_where_the_newer_one_has_no_report(first: Page) -> None:
    with serving({NEW: first, OLD: page(REPORT)}) as endpoint:
        assert read_server_info(endpoint) == REPORT
        if first != (200, b""):  # a server that closes connections is left to the probes
            assert identify_server(endpoint) == REPORT


def test_the_newer_path_is_enough() -> None:
    with serving({NEW: page(REPORT), OLD: page({"version": "other"})}) as endpoint:
        assert read_server_info(endpoint) == identify_server(endpoint) == REPORT


def test_a_server_without_a_report_has_an_empty_one() -> None:
    with serving({}) as endpoint:
        assert read_server_info(endpoint) == {}


def test_a_closed_port_and_a_missing_key_are_no_empty_report() -> None:
    endpoint = Endpoint(LocalTransport(), "127.0.0.1", free_port())
    with pytest.raises(EndpointRefused):
        read_server_info(endpoint)
    endpoint.close()
    with serving({}, absent=401) as endpoint:
        for read in (read_server_info, identify_server):
            with pytest.raises(EndpointForbidden):
                read(endpoint)


@pytest.mark.parametrize(
    ("models", "report"),
    [
        ({"data": [{"id": "m"}, {"id": "n"}]}, {"served_model_name": "m"}),
        ({"data": []}, {}),
        ({"data": None}, {}),
        ({"data": ["m"]}, {}),
        ({"data": [{"name": "m"}]}, {}),
        ({}, {}),
    ],
)
def test_behind_a_gateway_the_listed_model_is_the_report(models: object, report: dict[str, str]) -> None:
    with serving({MODELS: page(models)}) as endpoint:
        assert identify_server(endpoint) == report


@pytest.mark.parametrize("absent", [404, 405, 501])
def test_a_server_of_another_kind_is_refused_with_what_it_answered(absent: int) -> None:
    with serving({NEW: (200, b"<html>")}, absent=absent) as endpoint, pytest.raises(UsageError) as caught:
        identify_server(endpoint)
    assert f"http://{endpoint.address} is not an SGLang server" in caught.value.message
    assert f"{NEW} did not return JSON, {OLD} returned HTTP {absent}, {MODELS}" in caught.value.message
    assert "without a path" in caught.value.hint


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_is_ill_is_left_to_the_probes(status: int) -> None:
    with serving({OLD: page({}, status)}) as endpoint:
        assert identify_server(endpoint) == {}


def test_a_closed_port_is_left_to_the_probes() -> None:
    endpoint = Endpoint(LocalTransport(), "127.0.0.1", free_port())
    assert identify_server(endpoint) == {}
    endpoint.close()
