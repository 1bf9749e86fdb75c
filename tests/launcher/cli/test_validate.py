"""`launch validate` as it is typed, against the stand-in server."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from launcher.plan.launch_plan import LaunchPlan
from launcher.run.state import State
from launcher.run.store import Run, RunStore
from tests.support.command_line import Cli
from tests.support.fake_server import serving
from tests.support.ports import free_port


def test_a_server_at_any_address_is_validated_with_report_and_soak(cli: Cli) -> None:
    with serving() as (port, _):
        code, out, err = cli("validate", f"http://127.0.0.1:{port}", "--soak", "0.2s", "--html", "report.html")
    assert code == 0, err
    assert "correct" in out
    assert "soak" in err
    assert f"http://127.0.0.1:{port}" in (cli.folder / "report.html").read_text()


def test_a_failing_server_is_exit_1_and_the_report_says_why(cli: Cli) -> None:
    with serving("bangs") as (port, _):
        code, out, _ = cli("validate", f"http://127.0.0.1:{port}", "--json", "--html", "report.html")
    assert code == 1
    assert json.loads(out)["outcome"] == "fail"
    assert 'class="fail"' in (cli.folder / "report.html").read_text()


def test_a_deeper_stage_that_is_not_installed_is_skipped(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with serving() as (port, _):
        _, out, _ = cli("validate", f"http://127.0.0.1:{port}", "--json", "--deeper", "no-such-task-of-anybody")
    verdict = next(item for item in json.loads(out)["verdicts"] if item["id"].startswith("deeper:"))
    assert (verdict["outcome"], "pip install" in verdict["message"]) == ("skip", True)


@pytest.mark.parametrize(
    "words",
    [
        ("--suite", "smok"),
        ("--soak", "soon"),
        ("--baseline", "nothing"),
        ("--html", "no/such/folder/r.html"),
        ("--against", "gpu-box:30000"),
    ],
)
def test_invalid_options_are_refused_before_any_request(cli: Cli, words: tuple[str, ...]) -> None:
    with serving() as (port, state):
        code, _, err = cli("validate", f"http://127.0.0.1:{port}", *words)
        requests = [path for path in state.paths if path != "/server_info"]
    assert code == 2, err
    assert words[1] in err and "`expect`" not in err
    assert requests == []


def test_a_server_is_compared_with_a_saved_baseline(cli: Cli) -> None:
    cli("baseline", "save", cli.run().id, "prod")
    words = ("--suite", "standard", "--baseline", "prod", "--json")
    with serving("greedy-moved") as (port, _):
        code, out, _ = cli("validate", f"http://127.0.0.1:{port}", *words)
    assert code == 1
    assert {item["id"]: item["outcome"] for item in json.loads(out)["verdicts"]}["greedy-baseline"] == "fail"


KEY = "sk-only-for-this-test"


def test_a_server_with_a_key_is_validated_and_the_key_is_written_nowhere(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)
    words = ("--api-key-env", "SERVER_KEY", "--html", "report.html", "--json")
    with serving(api_key=KEY) as (port, _):
        code, out, err = cli("validate", f"http://127.0.0.1:{port}", *words)
    assert code == 0, err
    stored = [path.read_text() for path in cli.folder.rglob("*") if path.is_file()]
    assert stored
    assert not any(KEY in text for text in [*stored, out, err])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the server requires an API key (HTTP 401)"),
        (("--api-key-env", "WRONG_KEY"), "the server rejected this API key (HTTP 401)"),
        (("--api-key-env", "NO_SUCH_KEY"), "the secret `NO_SUCH_KEY` is not set in this environment"),
        (("--api-key-env", "BROKEN_KEY"), "the key in `BROKEN_KEY` begins or ends with a blank"),
    ],
)
def test_a_key_that_is_missing_or_wrong_is_named_as_such(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.setenv("WRONG_KEY", "sk-other")
    monkeypatch.setenv("BROKEN_KEY", "sk-ümlaut")
    with serving(api_key=KEY) as (port, state):
        code, _, err = cli("validate", f"http://127.0.0.1:{port}", *words)
    assert (code, message in err) == (2, True), err
    assert "sk-" not in err
    assert state.number == 0


def test_the_second_server_needs_a_separate_key(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)
    with serving(api_key=KEY) as (port, _), serving(api_key="sk-other") as (other, state):
        words = ("--api-key-env", "SERVER_KEY", "--against", f"http://127.0.0.1:{other}")
        code, _, err = cli("validate", f"http://127.0.0.1:{port}", *words)
    assert (code, "requires an API key" in err, f":{other}" in err) == (2, True, True), err
    assert state.number == 0


def test_a_run_is_validated_with_the_key_of_its_profile(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(api_key=KEY) as (port, _):
        run = planned_run(port, cli.folder, secret_flags={"api-key": "SERVER_KEY"})
        code, _, err = cli("validate", run.id)
        assert (code, "`SERVER_KEY` is not set in this environment" in err) == (2, True), err
        monkeypatch.setenv("SERVER_KEY", KEY)
        code, out, err = cli("validate", run.id)
    assert (code, "correct" in out) == (0, True), err


def test_a_run_that_ended_is_not_alive_again_because_it_was_asked(cli: Cli) -> None:
    run = planned_run(free_port(), cli.folder)
    run.update(state="stopped")
    assert cli("validate", run.id)[0] == 1
    assert (run.state, run.info["level"]) == (State.STOPPED, "not alive")


def planned_run(port: int, folder: Path, **more: Any) -> Run:
    """Store a run on this machine whose server is the stand-in, and return it."""
    run = RunStore().create("p", datetime.now(UTC))
    run.update(state="ready", profile="p", host="local")
    plan = LaunchPlan(profile="p", digest="d", host="local", engine="0.5.23", python=sys.executable,
                      work_dir=str(folder / "work"), flags={}, env={}, server_port=port, **more)  # fmt: skip
    run.write("plan", plan.to_json())
    return run


class Stranger(BaseHTTPRequestHandler):
    """A web server that is not SGLang: it serves `pages`, and 404 for every other path."""

    pages: ClassVar[dict[str, bytes]] = {}

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path in self.pages else 404)
        self.end_headers()
        self.wfile.write(self.pages.get(self.path, b"<html>no</html>"))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))  # an earlier answer would break the sender's pipe
        self.do_GET()


@contextmanager
def stranger(**pages: bytes) -> Iterator[int]:
    responses = {f"/{name.replace('__', '/')}": page for name, page in pages.items()}
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Some", (Stranger,), {"pages": responses})) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("pages", [{}, {"server_info": b"<html>hello</html>", "v1__models": b"<html>hello</html>"}])
def test_a_web_server_is_named_as_such_instead_of_failing_probe_by_probe(cli: Cli, pages: dict[str, bytes]) -> None:
    with stranger(**pages) as port:
        code, out, err = cli("validate", f"http://127.0.0.1:{port}")
    assert (code, out, "is not an SGLang server: /server_info " in err) == (2, "", True), err


def test_a_server_of_another_kind_is_identified_by_the_paths_it_lacks(cli: Cli) -> None:
    with stranger(v1__models=b'{"data": [{"id": "some-model"}]}', health=b"{}") as port:
        code, out, err = cli("validate", f"http://127.0.0.1:{port}")
    assert (code, "/generate is missing: this is not an SGLang server" in out) == (1, True), err
    assert "serves some-model" in err
    assert "<html>no</html>" in err  # the body is shown, on one line


def test_a_proxy_that_hides_server_info_does_not_prevent_validation(cli: Cli) -> None:
    with serving("no-server-info") as (port, _):
        code, out, _ = cli("validate", f"http://127.0.0.1:{port}", "--json")
    assert (code, json.loads(out)["model"]) == (0, "smol")


def test_the_server_s_own_reason_for_a_refusal_is_in_the_verdict(cli: Cli) -> None:
    with serving(max_req_input_len=2) as (port, _):
        code, out, _ = cli("validate", f"http://127.0.0.1:{port}")
    assert (code, re.search(r"HTTP 400: The input \(\d+ tokens\) is longer", out) is not None) == (1, True), out


def test_an_address_without_a_server_is_exit_1(cli: Cli) -> None:
    code, out, _ = cli("validate", f"http://127.0.0.1:{free_port()}", "--json")
    assert code == 1
    assert json.loads(out)["level"] == "not alive"


def test_expectations_are_given_for_an_address(cli: Cli) -> None:
    with serving("wrong-answer") as (port, _):
        url = f"http://127.0.0.1:{port}"
        assert cli("validate", url)[0] == 1
        code, out, err = cli("validate", url, "--expect", "known-answer=false", "--expect", "speed.floor=0.01")
        assert (code, "too weak" in err) == (0, True), out
        (cli.folder / "p.yaml").write_text("model: {path: /m}\nexpect: {known-answer: false}\n")
        assert cli("validate", url, "--profile", "p.yaml")[0] == 0


@pytest.mark.parametrize(
    ("word", "said"), [("nonsense", "expected KEY=VALUE"), ("suite=smoky", "smoky"), ("odd=1", "odd")]
)
def test_a_faulty_expectation_is_refused(cli: Cli, word: str, said: str) -> None:
    code, _, err = cli("validate", "http://127.0.0.1:1", "--expect", word)
    assert (code, said in err) == (2, True), err


def test_a_key_is_not_both_a_value_and_a_mapping(cli: Cli) -> None:
    words = ("--expect", "speed=1", "--expect", "speed.floor=2")
    code, _, err = cli("validate", "http://127.0.0.1:1", *words)
    assert (code, "`speed` was given a value of its own before" in err) == (2, True)
