"""Slow paths are named from the log and from /server_info, and hold back a speed that nobody compared."""

from __future__ import annotations

from typing import Any

import pytest

from checks.after.probes.context import parse_server
from checks.after.slow_paths import add_slow_paths, decode_lines, slow_paths
from checks.vocabulary import Evidence, Match, Outcome, Role, Verdict
from tests.support.paths import CORPUS

GRAPHS: dict[str, Any] = {"device": "cuda", "cuda_graph_bs": [1, 2, 4, 8]}
LINE = "[2026-11-29 16:46:19 TP0] Decode batch, #running-req: {}, #token: 5, token usage: 0.00, cuda graph: {}, gen\n"
OLD = "[2025-08-02 10:00:00] Decode batch. #running-req: 3, #token: 9, token usage: 0.01, cuda graph: True, gen\n"
MEASURED = Verdict(id="speed", outcome=Outcome.SKIP, message="decode 90.0 tok/s", figures={"decode": 90.0})


def log(*steps: tuple[int, bool]) -> list[bytes]:
    return ["".join(LINE.format(running, graph) for running, graph in steps).encode()]


def named(steps: list[tuple[int, bool]], **info: Any) -> list[str]:
    return [path.id for path in slow_paths(parse_server({**GRAPHS, **info}), (), decode_lines(log(*steps)))]


def test_decode_lines_of_every_wording_are_read_across_chunks() -> None:
    text = (OLD + LINE.format(2, False) + LINE.replace("batch,", "batch [123],").format(1, True)).encode()
    for cut in range(0, len(text), 7):
        found = decode_lines([text[:cut], text[cut:]])
        assert [(line.running, line.graph) for line in found] == [(3, True), (2, False), (1, True)]


def test_prefill_lines_and_cpu_graphs_say_nothing() -> None:
    prefill = b"Prefill batch, #new-seq: 1, #running-req: 0, cuda graph: False\n"
    assert decode_lines([prefill, b"Decode batch, #running-req: 1, cpu graph: False"]) == ()


@pytest.mark.parametrize("name", ["nextn-buf.log", "fp8kv.log"])
def test_real_logs_of_healthy_runs_show_no_slow_decode(name: str) -> None:
    lines = decode_lines([(CORPUS / "0.5.11-h200" / name).read_bytes()])
    assert lines
    assert slow_paths(parse_server(GRAPHS), (), lines) == ()


def test_decoding_without_the_captured_graph_is_named() -> None:
    assert named([(1, False)] * 5 + [(1, True)] * 2) == ["decode-without-graph"]


@pytest.mark.parametrize(
    ("steps", "info"),
    [
        ([(1, False)] * 2, {}),  # two lines are chance
        ([(1, False)] * 4 + [(1, True)] * 5, {}),  # most use it
        ([(64, False)] * 9, {}),  # larger than what is captured
        ([(1, False)] * 9, {"cuda_graph_bs": None}),  # none was captured
    ],
)
def test_decoding_without_graph_is_no_fault_where_none_was_to_be_used(
    steps: list[tuple[int, bool]], info: dict[str, Any]
) -> None:
    assert named(steps, **info) == []


def test_what_the_server_admits_is_named_and_decides_nothing() -> None:
    [path] = slow_paths(parse_server({**GRAPHS, "disable_overlap_schedule": True}))
    assert (path.id, path.silent) == ("overlap-scheduling-off", False)
    verdict = add_slow_paths(MEASURED, [path])
    assert verdict.outcome is Outcome.SKIP
    assert "overlap scheduling is off" in verdict.message
    assert verdict.figures["slow_paths"] == "overlap-scheduling-off"


def test_a_warning_that_the_speed_clears_is_named_once_with_its_line() -> None:
    shown = Evidence(text="Cuda graph is disabled because of X", line=40)
    warning = Match(id="graphs-off", role=Role.LEDGER, title="CUDA graphs disabled by the engine", evidence=(shown,))
    other = Match(id="deepgemm-scale-format-warning", role=Role.LEDGER, title="Scales", evidence=())
    [path] = slow_paths(parse_server({**GRAPHS, "disable_cuda_graph": True}), [warning, warning, other])
    assert (path.id, path.silent) == ("graphs-off", True)
    verdict = add_slow_paths(MEASURED, [path])
    assert verdict.outcome is Outcome.INCONCLUSIVE  # nobody asked for it, and nobody compared
    assert shown in verdict.evidence


def test_a_measured_comparison_stands_whatever_the_path() -> None:
    path = slow_paths(parse_server(GRAPHS), (), decode_lines(log(*[(1, False)] * 5)))
    for outcome in (Outcome.PASS, Outcome.FAIL):
        verdict = add_slow_paths(Verdict(id="speed", outcome=outcome, message="x"), path)
        assert verdict.outcome is outcome
        assert "cuda graph: False" in verdict.message


def test_without_slow_paths_the_verdict_is_untouched() -> None:
    assert add_slow_paths(MEASURED, ()) is MEASURED
