"""The engine's own argument resolution, on small engines that a real interpreter imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher import hostside
from launcher.hostside.dry_run import MARK, error_report, json_values

HEAD = """
import logging, sys
class Args:
    def __init__(self, argv):
        self.argv, self.tp_size, self.api_key, self._private = argv, 2, "sk-secret", 1
    def check_server_args(self):
        pass
def prepare_server_args(argv):
    return Args(argv)
"""
Resolve = Callable[..., dict[str, Any]]


@pytest.fixture
def resolve(tmp_path: Path) -> Resolve:
    """Run the program with an engine of this source: resolve(source, *argv, VARIABLE=value)."""

    def run(source: str, *argv: str, **env: str) -> dict[str, Any]:
        package = tmp_path / "sglang" / "srt"
        package.mkdir(parents=True)
        (package / "server_args.py").write_text(source)
        done = subprocess.run(
            [sys.executable, "-"],
            input=hostside.bundle("dry_run", {"argv": list(argv), "env": env}),
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            check=True,
        )
        *_, line = done.stdout.decode().splitlines()
        answer: dict[str, Any] = json.loads(line.removeprefix(MARK))
        return answer

    return run


def test_resolved_arguments_are_returned_without_secrets_and_private_names(resolve: Resolve) -> None:
    answer = resolve(HEAD, "--port", "1é")
    assert answer["ok"]
    assert answer["effective"] == {"argv": ["--port", "1é"], "tp_size": 2}


def test_what_the_engine_prints_does_not_disturb_the_answer(resolve: Resolve) -> None:
    assert resolve(HEAD + 'print("{\\"ok\\": false}", end="")\n')["ok"]


def test_the_environment_of_the_launch_applies_to_the_engine(resolve: Resolve) -> None:
    source = HEAD + 'import os\ndef prepare_server_args(argv): return Args([os.environ["MODE"], *sys.argv])\n'
    assert resolve(source, "--x", MODE="deep")["effective"]["argv"] == ["deep", "sglang", "--x"]


def test_a_release_that_resolves_late_is_asked_to_resolve(resolve: Resolve) -> None:
    late = """
class Args:
    def __init__(self): self.done = ["parsed"]
    def resolve_once(self): self.done.append("resolved")
    def check_server_args(self): self.done.append("checked")
    def resolved_dict(self): return {"done": self.done}
def prepare_server_args(argv): return Args()
"""
    assert resolve(late)["effective"] == {"done": ["parsed", "resolved", "checked"]}


def test_warnings_are_collected_even_when_parsing_replaces_the_handlers(resolve: Resolve) -> None:
    source = """
import logging
class Args:
    def check_server_args(self): logging.getLogger("sglang").warning("radix cache is off: %s", "mamba")
def prepare_server_args(argv):
    logging.warning("while parsing")
    logging.info("not a warning")
    logging.basicConfig(force=True)
    return Args()
"""
    assert resolve(source)["warnings"] == ["while parsing", "radix cache is off: mamba"]


def test_a_warning_with_wrong_arguments_refuses_nothing(resolve: Resolve) -> None:
    answer = resolve(HEAD + 'Args.check_server_args = lambda self: logging.warning("%d layers", "no")\n')
    assert (answer["ok"], answer["warnings"]) == (True, ["%d layers"])


def test_a_rejected_command_line_is_a_usage_error(resolve: Resolve) -> None:
    source = "import sys\ndef prepare_server_args(argv): sys.exit(2)\n"
    answer = resolve(source)
    assert (answer["ok"], answer["kind"], answer["message"]) == (False, "usage", "2")


def test_an_assertion_without_a_message_is_reported_with_its_condition(resolve: Resolve) -> None:
    source = """
class Args:
    tp, mode = 3, "fast"
    def check_server_args(self):
        if self.mode == "slow":
            pass
        else:
            if self.tp > 1:
                assert self.tp % 2 == 0
def prepare_server_args(argv): return Args()
"""
    answer = resolve(source)
    assert (answer["kind"], answer["exception"], answer["message"]) == ("refused", "AssertionError", "")
    assert answer["condition"] == "not (self.mode == 'slow') and self.tp > 1 and assert self.tp % 2 == 0"
    assert answer["frame"] == "srt/server_args.py:9 in check_server_args"


def test_the_conditions_of_an_outer_function_do_not_guard_an_inner_one(resolve: Resolve) -> None:
    source = """
if True:
    def prepare_server_args(argv):
        raise ValueError(f"bad {argv[0]}")
"""
    answer = resolve(source, "--x")
    assert (answer["message"], answer["condition"]) == ("bad --x", "")


def test_the_innermost_frame_inside_the_engine_is_named_not_that_of_a_library(resolve: Resolve) -> None:
    answer = resolve("import json\ndef prepare_server_args(argv): return json.loads('{')\n")
    assert answer["exception"] == "JSONDecodeError"
    assert answer["frame"] == "srt/server_args.py:2 in prepare_server_args"


@pytest.mark.parametrize("source", ["import no_such_library\n", "def broken(:\n", "raise SystemExit(3)\n"])
def test_an_engine_that_cannot_be_imported_is_broken(resolve: Resolve, source: str) -> None:
    answer = resolve(source)
    assert (answer["ok"], answer["kind"]) == (False, "broken")
    assert answer["exception"] in ("ModuleNotFoundError", "SyntaxError", "SystemExit")


def test_an_error_without_a_frame_or_a_source_is_still_reported() -> None:
    report = error_report(ValueError("x" * 5000))
    assert (report["exception"], report["frame"], report["condition"]) == ("ValueError", "", "")
    assert len(report["message"]) == 2000
    try:
        exec(compile("raise KeyError('gone')", "/no/such/sglang/file.py", "exec"))
    except KeyError as error:
        report = error_report(error)
    assert (report["frame"], report["condition"]) == ("file.py:1 in <module>", "")


def test_values_that_are_not_json_become_short_text() -> None:
    values = {"a": object, "b": [1], "_c": 2, "admin_api_key": "sk", "d": None, "e": {"x": "y" * 300}}
    shown = json_values(values)
    assert set(shown) == {"a", "b", "d", "e"}
    assert (shown["a"], shown["b"], shown["d"]) == (str(object), [1], None)
    assert len(shown["e"]) == 200
