"""Every request becomes an Answer, even a rejected one."""

from __future__ import annotations

from checks.after.probes.exchange import error_text
from checks.after.probes.requests import generate
from launcher.client.endpoint import Endpoint
from launcher.client.probing.send import send
from launcher.clock import SystemClock
from launcher.transport.local import LocalTransport
from tests.support.fake_server import serving


def test_a_rejected_stream_reports_the_reason() -> None:
    with serving(max_req_input_len=4) as (port, _):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        answer = send(endpoint, generate("one two three four five six", 4, stream=True), 10, SystemClock())
        endpoint.close()
    assert answer.status == 400
    assert "longer than the model's context" in error_text(answer)
