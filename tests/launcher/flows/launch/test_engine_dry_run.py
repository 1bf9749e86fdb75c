"""The engine resolves its own arguments on the host: its refusals and its silent changes become findings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from checks.vocabulary import Severity
from launcher.errors import HostCommandFailed
from launcher.flows.launch.engine_dry_run import DryRun, differences, dry_run, refusal_text, same
from launcher.flows.launch.prepare import Prepared, prepare
from launcher.transport.local import LocalTransport
from tests.support.bench import bench

ENGINE = """\
import argparse, logging, os


class ServerArgs:
    def __init__(self, values):
        vars(self).update(values)

    def check_server_args(self):
{rules}
        pass


def prepare_server_args(argv):
    parser = argparse.ArgumentParser(prog="sglang serve")
    for name in ("model-path", "served-model-name", "host", "port", "page-size"):
        parser.add_argument("--" + name)
    return ServerArgs(vars(parser.parse_args(argv)))
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A prepared launch of the stand-in engine; the engine whose arguments are resolved is replaced in each test."""
    made = bench(tmp_path_factory.mktemp("bench"), LocalTransport())
    return prepare(made.transport, made.profile(), made.host, datetime.now(UTC))


def asked(prepared: Prepared, folder: Path, rules: str = "", source: str = ENGINE, **flags: str) -> DryRun:
    """Ask an engine with these argument rules about the launch, with these further flags."""
    package = folder / "sglang/srt"
    package.mkdir(parents=True)
    for name in ("sglang/__init__.py", "sglang/srt/__init__.py"):
        (folder / name).write_text("")
    (package / "server_args.py").write_text(source.replace("{rules}", rules))
    plan = replace(
        prepared.plan,
        env={**prepared.plan.env, "PYTHONPATH": str(folder)},
        flags={**prepared.plan.flags, **{name.replace("_", "-"): value for name, value in flags.items()}},
    )
    return dry_run(LocalTransport("gpu-box"), replace(prepared, plan=plan))


def test_arguments_that_the_engine_accepts_unchanged_have_no_finding(prepared: Prepared, tmp_path: Path) -> None:
    dry = asked(prepared, tmp_path, page_size="16")
    assert (dry.ok, dry.findings) == (True, ())
    assert dry.effective["page_size"] == "16"


def test_a_value_that_the_engine_replaces_is_shown_old_and_new(prepared: Prepared, tmp_path: Path) -> None:
    rule = "        self.page_size = 64; logging.getLogger().warning('page size is set to 64')"
    dry = asked(prepared, tmp_path, rule, page_size="16")
    [finding] = dry.findings
    assert finding.message == "the engine changes `--page-size 16` to `64`"
    assert (dry.ok, finding.severity, finding.subject) == (True, Severity.INFO, "flag.page-size")
    assert dry.warnings == ("page size is set to 64",)


def test_a_refusal_is_an_error_with_its_place_and_its_condition(prepared: Prepared, tmp_path: Path) -> None:
    rule = "        if self.page_size == '3':\n            raise ValueError('page size\\n must be a power of two')"
    dry = asked(prepared, tmp_path, rule, page_size="3")
    [finding] = dry.findings
    assert (dry.ok, finding.id, finding.severity) == (False, "engine-refuses-arguments", Severity.ERROR)
    assert finding.message == "the engine refuses these arguments: page size must be a power of two"
    assert "srt/server_args.py" in finding.why
    assert "when self.page_size == '3'" in finding.why


def test_an_assertion_without_a_message_is_reported_with_its_condition(prepared: Prepared, tmp_path: Path) -> None:
    [finding] = asked(prepared, tmp_path, "        assert self.page_size is None", page_size="3").findings
    assert "AssertionError without a message" in finding.message
    assert "assert self.page_size is None" in finding.why


def test_an_unknown_flag_is_the_known_cause_with_the_engine_s_own_words(prepared: Prepared, tmp_path: Path) -> None:
    dry = asked(prepared, tmp_path, no_such_flag="1")
    [finding] = dry.findings
    assert (dry.ok, finding.id) == (False, "flag-unknown-to-engine")
    assert "unrecognized arguments: --no-such-flag 1" in finding.message


def test_an_engine_that_cannot_be_imported_is_a_refusal(prepared: Prepared, tmp_path: Path) -> None:
    dry = asked(prepared, tmp_path, source="import no_such_package\n")
    assert not dry.ok
    assert "No module named 'no_such_package'" in dry.findings[0].message


@pytest.mark.parametrize("source", ["import os; os._exit(3)\n", "import os, sys; os.kill(os.getpid(), 9)\n"])
def test_an_engine_that_dies_without_an_answer_is_an_error_of_the_host(
    prepared: Prepared, tmp_path: Path, source: str
) -> None:
    with pytest.raises(HostCommandFailed, match="dry run on gpu-box failed") as caught:
        asked(prepared, tmp_path, source=source)
    assert "--fast" in caught.value.hint


def test_what_the_engine_prints_is_not_taken_for_the_answer(prepared: Prepared, tmp_path: Path) -> None:
    fake = """print('sglang-launcher-dry-run:{"ok": false}')\n"""
    assert asked(prepared, tmp_path, source=fake + ENGINE).ok


def test_an_interpreter_that_does_not_exist_is_an_error_of_the_host(prepared: Prepared) -> None:
    plan = replace(prepared.plan, python="/no/such/python")
    with pytest.raises(HostCommandFailed, match="failed"):
        dry_run(LocalTransport(), replace(prepared, plan=plan))


def test_the_variables_of_the_launch_are_set_before_the_interpreter_starts(prepared: Prepared, tmp_path: Path) -> None:
    rule = "        self.page_size = os.environ['FAKE_ENGINE']"
    assert asked(prepared, tmp_path, rule).effective["page_size"] == prepared.plan.env["FAKE_ENGINE"]


@pytest.mark.parametrize(
    ("typed", "resolved", "equal"),
    [
        ("16", 16, True),
        ("0.90", 0.9, True),
        ("1e3", 1000, True),
        ("auto", 16, False),
        ("nan", 16, False),
        (True, True, True),
        ("True", True, True),
        (True, False, False),
        ("1", True, False),
        (["1", "2"], [1, 2], True),
        (["2", "1"], [1, 2], False),
        (["1"], "1", False),
        ("1", [1], True),
        ("1 2", [1, 2], False),
        ("~/models/m", "/home/me/models/m", True),
        ("~/models/m", "/home/me/models/other", False),
        ("fa3", "triton", False),
        ("x", None, False),
        ("", "", True),
    ],
)
def test_a_value_as_typed_means_the_same_as_the_resolved_one(typed: Any, resolved: object, equal: bool) -> None:
    assert same(typed, resolved) is equal


def test_a_costly_switch_that_nobody_asked_for_is_a_warning() -> None:
    effective = {"disable_radix_cache": True, "disable_cuda_graph": True, "disable_overlap_schedule": False}
    [finding] = differences({"disable-cuda-graph": True}, effective)
    assert (finding.id, finding.severity) == ("feature-silently-disabled", Severity.WARNING)
    assert finding.subject == "flag.disable-radix-cache"


def test_a_flag_that_the_engine_does_not_report_is_not_a_difference() -> None:
    assert differences({"page-size": "16"}, {}) == ()


def test_a_refusal_reads_like_a_traceback_in_a_log() -> None:
    answer = {
        "kind": "refused", "exception": "ValueError", "message": "no", "frame": "srt/a.py:7 in check",
        "condition": "x > 1",
    }  # fmt: skip
    text = refusal_text(answer, b"")
    assert text == (
        'Traceback (most recent call last):\n  File "/sglang/srt/a.py", line 7, in check\n    x > 1\nValueError: no\n'
    )


def test_of_a_usage_error_only_the_line_with_the_error_is_quoted() -> None:
    stderr = b"usage: sglang serve [-h]\nsglang serve: error: bad \xff\nbye\n"
    assert refusal_text({"kind": "usage"}, stderr) == ("sglang serve: error: bad \ufffd\n")


def test_a_usage_error_without_an_error_line_is_still_a_refusal(prepared: Prepared, tmp_path: Path) -> None:
    [finding] = asked(prepared, tmp_path, "        raise SystemExit('see the manual')").findings
    assert "see the manual" in finding.message
