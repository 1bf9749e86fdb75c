"""What a reply counts for: usable or not, quoted as evidence, and the verdict on requests that failed."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.exchange import Answer, error_message, error_text, failed_requests, quote, verdict
from checks.vocabulary import Evidence, Outcome

NO_GENERATE = "/generate is missing: this is not an SGLang server, or a proxy does not forward the route"


def answer(status: int = 200, **more: Any) -> Answer:
    return Answer(**{"path": "/generate", "status": status, **more})


@pytest.mark.parametrize(
    ("reply", "ok"),
    [
        (answer(), True),
        (answer(finish="length"), True),
        (answer(finish="abort"), False),
        (answer(error="bad JSON"), False),
        (answer(500), False),
        (answer(0, error="refused"), False),
        (answer(201), False),
    ],
)
def test_a_usable_reply_is_a_200_that_was_read_and_not_given_up(reply: Answer, ok: bool) -> None:
    assert reply.ok is ok
    assert (failed_requests("p", [reply]) is None) is ok


def test_everything_that_a_model_produced_counts_as_said() -> None:
    assert answer(reasoning="Hm. ", text="42").said == "Hm. 42"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (answer(text="Paris"), "'Paris'"),
        (answer(reasoning="Hm\n", text="42"), "'Hm\\n42'"),
        (answer(text="Paris", finish="stop"), "'Paris' [finish: stop]"),
        (answer(0, error="connection refused"), "connection refused"),
        (answer(500, raw='{"error":\n  "x"}'), 'HTTP 500: {"error": "x"}'),
        (answer(503), "HTTP 503: (nothing)"),
        (answer(text="x" * 200), "'" + "x" * 158 + "…"),
    ],
)
def test_a_reply_is_quoted_on_one_line(reply: Answer, text: str) -> None:
    assert quote(reply) == Evidence(text=text, source="/generate")
    assert "\n" not in quote(reply).text


def test_a_quote_is_cut_to_its_limit_and_not_before() -> None:
    assert quote(answer(text="x" * 158)).text == "'" + "x" * 158 + "'"
    assert len(quote(answer(text="x" * 50), 20).text) == 20


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "too long", "code": 400}}, "too long"),
        ({"message": "too long"}, "too long"),
        ({"error": "too long"}, "too long"),
        ({"error": {"code": 400}}, "{'code': 400}"),
        ("odd", "as it came"),
        (None, "as it came"),
    ],
)
def test_an_error_is_read_out_of_each_of_its_shapes(body: Any, text: str) -> None:
    assert error_text(answer(400, body=body, raw="as it came")) == text


def test_the_sentence_of_an_error_object_is_its_message() -> None:
    assert error_message({"message": "m", "type": "t"}) == "m"
    assert error_message("plain") == "plain"


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        ([answer(0, error="connection refused", fault="refused")], "the request failed: connection refused"),
        ([answer(finish="abort")], "the request failed: aborted by the engine"),
        ([answer(500, body={"error": {"message": "boom"}})], "the request failed: HTTP 500: boom"),
        ([answer(400, body={"error": {"message": "too long"}})], "the request failed: HTTP 400: too long"),
        ([answer(501)], f"the request failed: HTTP 501; {NO_GENERATE}"),
        ([answer(500, path="/v1/chat/completions")], "the request failed: HTTP 500"),
        ([answer(), answer(500, path="/x"), answer(502, path="/x")], "2 of 3 requests failed: HTTP 500"),
        (
            [answer(404)],
            f"the request failed: HTTP 404; {NO_GENERATE}",
        ),
        ([answer(404, path="/v1/models")], "the request failed: HTTP 404"),
    ],
)
def test_requests_that_failed_fail_the_probe_with_the_first_reason(replies: list[Answer], message: str) -> None:
    failed = failed_requests("p", replies)
    assert failed is not None
    assert (failed.id, failed.outcome, failed.message) == ("p", Outcome.FAIL, message)
    counts = {"failed_requests": sum(not reply.ok for reply in replies), "requests": len(replies)}
    missing = {"missing": replies[0].path} if all(reply.status in (404, 405, 501) for reply in replies) else {}
    assert failed.figures == {**counts, **missing}
    assert len(failed.evidence) == failed.figures["failed_requests"]


def test_a_probe_that_was_halted_gives_that_one_reason_without_a_reply() -> None:
    halted = answer(0, error="the server went away", fault="halted")
    failed = failed_requests("p", [answer(500), halted, halted])
    assert failed is not None
    assert (failed.message, failed.evidence, failed.figures["failed_requests"]) == ("the server went away", (), 3)


def test_at_most_three_replies_are_shown() -> None:
    failed = failed_requests("p", [answer(500)] * 5)
    assert failed is not None and len(failed.evidence) == 3


def test_a_verdict_carries_its_figures() -> None:
    made = verdict("p", Outcome.PASS, "fine", [Evidence(text="e")], tokens=3)
    assert (made.id, made.figures, made.evidence) == ("p", {"tokens": 3}, (Evidence(text="e"),))
