"""A failure that no pattern explains: its phase, its fingerprint, and where the engine itself raised it."""

from __future__ import annotations

import re

import pytest

from checks.during.log.incidents import Frame, Incident, Raised
from checks.during.log.lines import Line
from checks.during.log.phases import Milestone
from checks.during.unexplained import engine_frame, engine_path, fingerprint, phase_of, raise_site
from checks.engine import raise_sites

ENGINE = "/usr/lib/python3/site-packages/sglang/srt/"


def raised(kind: str, *frames: tuple[str, str], message: str = "bad", line: int = 1) -> Raised:
    made = tuple(Frame(file=file, function=function, line=line) for file, function in frames)
    return Raised(type=kind, message=message, frames=made, first=0, last=0)


def incident(*chain: Raised, kind: str = "traceback", text: str = "Traceback", number: int = 50) -> Incident:
    return Incident(kind=kind, lines=(Line(number=number, text=text),), chain=chain)


def milestones(**lines: int) -> tuple[Milestone, ...]:
    return tuple(Milestone(phase=name.replace("_", "-"), line=line, time="") for name, line in lines.items())


# --- phase


@pytest.mark.parametrize(
    ("reached", "phase"),
    [
        (milestones(args=1, weights=10), "weights"),
        (milestones(args=1, weights=50), "weights"),
        (milestones(args=1, weights=51), "args"),
        (milestones(args=1, weights=10, graph_capture=40, serving=60), "graph-capture"),
    ],
)
def test_the_phase_is_the_one_that_ran_when_the_incident_was_printed(
    reached: tuple[Milestone, ...], phase: str
) -> None:
    assert phase_of(incident(raised("E", (ENGINE + "x.py", "load_model"))), reached) == phase


@pytest.mark.parametrize(
    ("functions", "phase"),
    [
        (["main", "load_model"], "weights"),
        (["main", "_initialize_model"], "weights"),
        (["init_memory_pool"], "memory"),
        (["profile_max_num_token", "forward"], "memory"),
        (["init_torch_distributed"], "distributed"),
        (["capture_one_batch_size", "run_batch"], "graph-capture"),
        (["event_loop_overlap", "load_model"], "serving"),
        (["process_batch_result"], "serving"),
        (["from_cli_args", "load_model"], "args"),
        (["__post_init__"], "args"),
        (["preload_model"], ""),
        ([], ""),
    ],
)
def test_in_a_log_that_begins_late_the_phase_shows_in_the_frames(functions: list[str], phase: str) -> None:
    late = incident(raised("E", *[(ENGINE + "x.py", function) for function in functions]))
    assert phase_of(late, ()) == phase


def test_after_the_import_the_frames_decide() -> None:
    imported = milestones(**{"import": 1})
    assert phase_of(incident(raised("E", ("x.py", "load_model"))), imported) == "weights"
    assert phase_of(incident(raised("E", ("x.py", "prepare_server_args"))), imported) == "args"
    assert phase_of(incident(raised("E", ("x.py", "f"))), imported) == "import"


def test_frames_of_the_event_loop_prove_that_the_engine_served() -> None:
    captured = milestones(**{"graph-capture": 1})
    assert phase_of(incident(raised("E", ("x.py", "event_loop_normal"))), captured) == "serving"
    assert phase_of(incident(raised("E", ("x.py", "load_model"))), captured) == "graph-capture"


def test_a_usage_text_is_about_arguments() -> None:
    assert phase_of(incident(kind="usage"), ()) == "args"


# --- fingerprint and frames


@pytest.mark.parametrize(
    ("file", "path"),
    [
        (ENGINE + "managers/scheduler.py", "srt/managers/scheduler.py"),
        ("/sgl-workspace/sglang/python/sglang/srt/utils.py", "srt/utils.py"),
        ("/sgl-workspace/sglang/python/sglang/launch_server.py", "launch_server.py"),
        ("/x/sglang/multimodal_gen/runtime/x.py", "multimodal_gen/runtime/x.py"),
        ("sglang/srt/x.py", "srt/x.py"),
        ("/x/sgl_kernel/load_utils.py", "sgl_kernel/load_utils.py"),
        ("/x/torch/nn/modules/module.py", ""),
        ("/home/sglang/project.txt", ""),
        ("<string>", ""),
    ],
)
def test_a_file_of_the_engine_is_named_inside_its_package(file: str, path: str) -> None:
    assert engine_path(Frame(file=file, function="f", line=1)) == path


def test_the_innermost_engine_frame_of_the_root_exception_is_taken() -> None:
    root = raised("KeyError", (ENGINE + "a.py", "a"), (ENGINE + "b.py", "b"), ("/x/torch/t.py", "t"))
    wrapper = raised("ValueError", (ENGINE + "w.py", "w"))
    frame = engine_frame(incident(root, wrapper))
    assert frame is not None and frame.function == "b"
    foreign_root = engine_frame(incident(raised("KeyError", ("/x/torch/t.py", "t")), wrapper))
    assert foreign_root is not None and foreign_root.function == "w"
    assert engine_frame(incident(raised("E", ("/x/torch/t.py", "t")))) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (incident(raised("KeyError", (ENGINE + "a.py", "f")), raised("W")), "KeyError@srt/a.py:f/serving"),
        (incident(raised("torch.cuda.OutOfMemoryError", ("/x/t.py", "t"))), "OutOfMemoryError@?/serving"),
        (incident(raised("", (ENGINE + "a.py", "f")), raised("E", (ENGINE + "b.py", "g"))), "E@srt/a.py:f/serving"),
        (incident(kind="fatal", text="Fatal error 0x7f3a at 12:30"), "fatal:Fatal error #x#f#a at #/serving"),
        (incident(kind="usage", text="x" * 80), f"usage:{'x' * 60}/serving"),
    ],
)
def test_a_fingerprint_contains_only_what_is_equal_in_every_run(found: Incident, expected: str) -> None:
    assert fingerprint(found, "serving") == expected


def test_addresses_and_counts_do_not_change_a_fingerprint() -> None:
    one, other = (incident(kind="fatal", text=f"Segfault at 0x{number}, pid {number}") for number in (11, 99887))
    assert fingerprint(one, "serving") == fingerprint(other, "serving")


# --- raise sites


NOT_ENOUGH = "Not enough memory. Please try to increase --mem-fraction-static. Current value: self.server_args=0.1"


def test_a_message_of_the_engine_is_found_in_its_source() -> None:
    found = incident(raised("RuntimeError", (ENGINE + "model_executor/model_runner.py", "f"), message=NOT_ENOUGH))
    site = raise_site(found, "0.5.10")
    assert site is not None and site.release == "0.5.10"
    assert "Not enough memory" in site.message


@pytest.mark.parametrize(
    ("file", "message", "found"),
    [
        ("connector/__init__.py", "Invalid connector type: s3://bucket", True),
        ("managers/scheduler.py", "Invalid connector type: s3://bucket", False),  # few letters, any file may write them
        ("managers/scheduler.py", NOT_ENOUGH, True),
        ("managers/scheduler.py", NOT_ENOUGH + " and more" * 30, False),
    ],
)
def test_a_template_of_another_file_counts_only_where_it_makes_up_most_of_the_message(
    file: str, message: str, found: bool
) -> None:
    kind = "RuntimeError" if message.startswith("Not") else "builtins.ValueError"
    site = raise_site(incident(raised(kind, (ENGINE + file, "f"), message=message)), "0.5.10")
    assert (site is not None) is found


@pytest.mark.parametrize(
    "found",
    [
        incident(kind="line"),
        incident(raised("", (ENGINE + "a.py", "f"))),
        incident(raised("ValueError")),
        incident(raised("RuntimeError", (ENGINE + "a.py", "f"), ("/x/torch/t.py", "t"), message=NOT_ENOUGH)),
        incident(raised("ValueError", (ENGINE + "a.py", "f"), message="words that no release has ever written")),
        incident(raised("AssertionError", (ENGINE + "no_such_file.py", "f"), message="")),
    ],
)
def test_what_the_engine_did_not_raise_is_not_looked_up_there(found: Incident) -> None:
    assert raise_site(found, "0.5.10") is None


def test_an_assert_without_a_message_is_found_by_its_frame_where_the_release_is_known() -> None:
    place = re.compile(r"^.{7}(srt/[^\t]+)\t(\d+)\t\d+\t(\w+)\tassert\t\t")  # see `schema_source.sites.row`
    file, line, function = next(row for text in raise_sites.table("0.5.10").rows if (row := place.match(text))).groups()
    frame = (ENGINE.removesuffix("srt/") + file, function)
    found = incident(raised("AssertionError", frame, message="", line=int(line)))
    site = raise_site(found, "0.5.10")
    assert site is not None and site.where == f"{file}:{line}"
    assert raise_site(found, None) is None
