"""The engine's real replies are read, and the server's description of itself and the profile's expectations."""

from __future__ import annotations

import json

import pytest

from checks.after.probes.context import Context, Server, parse_server
from checks.after.probes.exchange import Answer
from checks.after.probes.expectations import ExpectError, parse_expect
from checks.after.probes.replies import parse_events, parse_reply
from tests.support.paths import DATA

HTTP = DATA / "http"


def recorded(name: str, path: str, status: int = 200) -> Answer:
    return parse_reply(path, status, (HTTP / name).read_bytes(), 0.5)


def events(name: str) -> list[tuple[float, bytes]]:
    lines = (HTTP / name).read_bytes().split(b"\n")
    data = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    return [(index * 0.1, line) for index, line in enumerate(data)]


# --- replies as the engine really gives them


def test_a_recorded_chat_is_read() -> None:
    answer = recorded("chat.json", "/v1/chat/completions")
    assert (answer.text, answer.finish, answer.completion_tokens) == ("The capital of France is Paris.", "stop", 8)
    assert answer.ok


def test_a_recorded_generate_is_read_with_its_log_probabilities() -> None:
    answer = recorded("generate_logprobs.json", "/generate")
    assert answer.ids == (7042, 30, 198, 198, 504, 2988, 314, 42)
    assert answer.prompt_ids == (3575, 282, 4649, 314)  # the first token has no log-probability
    assert len(answer.logprobs) == 8
    assert answer.finish == "length"


def test_a_recorded_chat_stream_is_put_together() -> None:
    answer = parse_events("/v1/chat/completions", 200, events("chat_stream.txt"), 1.0)
    assert answer.text == "The capital of France is Paris."
    assert answer.finish == "stop"
    assert len(answer.times) == 7


def test_a_recorded_generate_stream_repeats_its_text_and_is_read_once() -> None:
    answer = parse_events("/generate", 200, events("generate_stream.txt"), 1.0)
    assert answer.text.startswith(" Paris.\n")
    assert answer.counts == tuple(range(1, len(answer.counts) + 1))
    assert len(answer.ids) == answer.completion_tokens


def test_an_incremental_stream_is_added_up() -> None:
    chunks = [
        {"text": text, "output_ids": [n], "meta_info": {"completion_tokens": n, "finish_reason": None}}
        for n, text in enumerate(("!", "!", "!"), 1)
    ]
    chunks[-1]["meta_info"] = {"completion_tokens": 3, "finish_reason": {"type": "length"}}
    answer = parse_events("/generate", 200, [(0.1, json.dumps(chunk).encode()) for chunk in chunks], 1.0)
    assert answer.text == "!!!"
    assert answer.ids == (1, 2, 3)


@pytest.mark.parametrize("name", ["error_too_long.json", "error_chat_too_long.json"])
def test_a_recorded_refusal_is_no_good_answer(name: str) -> None:
    answer = recorded(name, "/generate", status=400)
    assert not answer.ok


def test_an_answer_that_the_engine_aborted_is_no_good_answer() -> None:
    body = json.dumps({"text": "", "meta_info": {"finish_reason": {"type": "abort"}}}).encode()
    assert not parse_reply("/generate", 200, body, 0.1).ok


def test_the_recorded_server_describes_itself() -> None:
    server = parse_server(json.loads((HTTP / "server_info.json").read_text()))
    assert (server.version, server.running, server.context, server.chunk) == ("0.5.23", 8, 2042, 4096)
    assert server.graph_sizes == ()  # it runs on a CPU
    assert server.generates


def test_all_ranks_of_data_parallelism_count() -> None:
    info = {"dp_size": 4, "internal_states": [{"effective_max_running_requests_per_dp": 16}]}
    assert parse_server(info).running == 64


def test_captured_graph_sizes_are_read_in_the_old_and_the_new_place() -> None:
    assert parse_server({"cuda_graph_bs": [4, 1, 2]}).graph_sizes == (1, 2, 4)
    new = {"cuda_graph_config": {"decode": {"backend": "full", "bs": [1, 8]}}}
    assert parse_server(new).graph_sizes == (1, 8)
    assert parse_server({"cuda_graph_config": {"decode": {"backend": "disabled", "bs": [1, 8]}}}).graph_sizes == ()


# --- expectations


def test_an_unknown_expectation_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ExpectError, match="did you mean `known-answer`"):
        parse_expect({"known_answers": []})
    with pytest.raises(ExpectError, match="did you mean `margin`"):
        parse_expect({"speed": {"margins": 0.1}})
    with pytest.raises(ExpectError, match="at-least"):
        parse_expect({"accuracy": {"word-problems": {"atleast": 0.1}}})


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ({"timeout": "soon"}, "`expect.timeout: soon` is not a number, 0 or more"),
        ({"suite": "smok"}, "did you mean `smoke`"),
        (
            {"accuracy": {"word-problems": {"at-least": 90}}},
            "expect.accuracy.word-problems.at-least: 90` is not a share",
        ),
        ({"speed": 60}, "is not a mapping (decode-at-least"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_place(expect: dict[str, object], said: str) -> None:
    with pytest.raises(ExpectError) as error:
        parse_expect(expect)
    assert said in str(error.value)


def test_keys_may_be_written_with_hyphens_and_names_of_sets_stay() -> None:
    found = parse_expect({"known-answer": False, "accuracy": {"word-problems": {"at-least": 0.8}}})
    assert found.known_answer is False and found.accuracy["word-problems"].at_least == 0.8


def test_concurrency_is_never_more_than_the_server_allows() -> None:
    assert Context(server=Server(running=4), expect=parse_expect({"concurrency": 100})).concurrency == 4
    assert Context(server=Server(running=100), expect=parse_expect({"concurrency": 2})).concurrency == 2
    assert Context(server=Server(running=5000)).concurrency == 64


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [null]}',
        b'{"choices": [{"message": {"tool_calls": [null]}}]}',
        b'{"choices": [{"message": 5}]}',
        b'{"choices": [{"message": {"content": "a"}}], "usage": 7}',
        b'{"meta_info": {"output_token_logprobs": 7}}',
    ],
)
def test_json_of_another_shape_is_an_unreadable_reply(body: bytes) -> None:
    plain = parse_reply("/v1/chat/completions", 200, body, 0.1)
    assert (plain.fault, plain.ok) == ("unreadable", False)
    assert "another shape" in plain.error


@pytest.mark.parametrize("event", [b"null", b"7", b'{"choices": [null]}', b'{"choices": [{"delta": 5}]}'])
def test_an_event_of_another_shape_is_an_unreadable_reply(event: bytes) -> None:
    assert parse_events("/v1/chat/completions", 200, [(0.1, event), (0.2, b"[DONE]")], 0.2).fault == "unreadable"
