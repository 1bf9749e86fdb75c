"""The setting that leads to the code that failed is the first suspect, and harmless settings are none."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine import feature_map
from checks.engine.flag_schema import load
from checks.suspects.clues import clues_of
from checks.suspects.ranking import Weighed, rank, stem
from checks.suspects.settings import settings_of
from checks.vocabulary import Finding, Severity
from tests.checks.suspects.failures import ENGINE, HEAD, STARTED, frame, judged

HARMLESS = {"trust-remote-code": True, "host": "0.0.0.0", "port": "30000", "schedule-policy": "lpm"}


def ranked(log: str, findings: tuple[Finding, ...] = (), **launch: Any) -> list[Weighed]:
    item = judged(log, flags={**HARMLESS, **launch.get("flags", {})}, env=launch.get("env", {}))
    settings = settings_of(item.reading.facts, load(ENGINE))
    return rank(settings, clues_of(item), feature_map.load(ENGINE), findings)


def failed(message: str, *frames: str) -> str:
    return STARTED + HEAD + "".join(frames) + message + "\n"


@pytest.mark.parametrize(
    ("log", "flags", "first"),
    [
        (
            failed("AssertionError", frame("srt/layers/attention/flashmla_backend.py", "init_forward_metadata")),
            {"attention-backend": "flashmla", "tp-size": "4"},
            "flag.attention-backend",
        ),
        (
            failed("KeyError: 'x'", frame("srt/layers/attention/flashattention_backend.py", "forward_extend")),
            {"attention-backend": "fa3", "sampling-backend": "pytorch"},
            "flag.attention-backend",
        ),
        (
            failed("NotImplementedError", frame("srt/constrained/outlines_backend.py", "rollback")),
            {"grammar-backend": "outlines", "page-size": "16"},
            "flag.grammar-backend",
        ),
        (
            failed("ValueError: kv pool refuses", frame("srt/x.py", "f", "check(self.server_args.page_size)")),
            {"page-size": "16", "max-running-requests": "8"},
            "flag.page-size",
        ),
        (failed("OSError: /data/t.jinja"), {"chat-template": "/data/t.jinja", "page-size": "16"}, "flag.chat-template"),
        (failed("ValueError: --page-size is odd"), {"page-size": "16", "dtype": "half"}, "flag.page-size"),
        (failed("KeyError: num_hidden_layers"),
         {"json-model-override-args": '{"num_hidden_layers": 2}', "page-size": "16"}, "flag.json-model-override-args"),
    ],
)  # fmt: skip
def test_the_first_suspect_is_the_setting_behind_the_code(log: str, flags: dict[str, Any], first: str) -> None:
    assert ranked(log, flags=flags)[0].setting.fact == first


def test_a_variable_is_a_suspect_by_what_its_library_calls_it() -> None:
    log = failed("RuntimeError: CUDA error: invalid device ordinal")
    assert ranked(log, env={"CUDA_VISIBLE_DEVICES": "9"})[0].setting.fact == "env.CUDA_VISIBLE_DEVICES"


def test_nothing_is_suspected_without_evidence() -> None:
    assert ranked(failed("ValueError: frob", frame("srt/absent.py", "f")), flags={"page-size": "16"}) == []


def test_a_finding_makes_its_subject_a_suspect() -> None:
    finding = Finding(id="odd-page", severity=Severity.ERROR, message="odd", subject="flag.page-size")
    first = ranked(failed("ValueError: frob"), (finding,), flags={"page-size": "16"})[0]
    assert (first.setting.fact, first.reasons[0].kind) == ("flag.page-size", "foreseen")


def test_an_information_finding_is_no_evidence() -> None:
    finding = Finding(id="odd-page", severity=Severity.INFO, message="odd", subject="flag.page-size")
    assert ranked(failed("ValueError: frob"), (finding,), flags={"page-size": "16"}) == []


def test_a_near_frame_outweighs_a_far_one() -> None:
    far = frame("srt/layers/attention/flashmla_backend.py", "f")
    near = frame("srt/constrained/outlines_backend.py", "g")
    flags = {"attention-backend": "flashmla", "grammar-backend": "outlines"}
    middle = "".join(frame("srt/absent.py", f"h{number}") for number in range(6))
    assert ranked(failed("E: x", far, middle, near), flags=flags)[0].setting.fact == "flag.grammar-backend"
    assert ranked(failed("E: x", near, middle, far), flags=flags)[0].setting.fact == "flag.attention-backend"


@pytest.mark.parametrize(
    ("word", "root"),
    [("graphs", "graph"), ("parallelism", "parallel"), ("caching", "cach"), ("bus", "bus")],
)
def test_common_endings_do_not_matter(word: str, root: str) -> None:
    assert stem(word) == root


def test_shapes_in_a_weight_loader_point_to_what_decides_them() -> None:
    message = "RuntimeError: start (0) + length (2) exceeds dimension size (1)."
    log = failed(message, frame("srt/layers/linear.py", "weight_loader"))
    override = {"json-model-override-args": '{"num_attention_heads": 2}', "model-path": "/data/m", "page-size": "16"}
    assert ranked(log, flags=override)[0].setting.fact == "flag.json-model-override-args"
    assert ranked(log, flags={"model-path": "/data/m", "tp-size": "2"})[0].setting.fact == "flag.tp-size"
    assert ranked(log, flags={"model-path": "/data/m", "tp-size": "1"})[0].setting.fact == "flag.model-path"


def test_a_part_of_a_path_is_not_a_value() -> None:
    log = failed("RuntimeError: fail at /build/flashinfer/x.cc:1", frame("srt/absent.py", "f"))
    suspects = ranked(log, flags={"attention-backend": "flashinfer"})
    assert "value-quoted" not in [reason.kind for item in suspects for reason in item.reasons]


def test_what_the_engine_chose_itself_is_less_suspicious() -> None:
    log = failed("ValueError: page and chunked sizes differ")
    item = judged(log, flags={"page-size": "16", "chunked-prefill-size": "8"})
    settings = list(settings_of(item.reading.facts, load(ENGINE)))
    both = rank(settings, clues_of(item), feature_map.load(ENGINE))
    one = rank(settings, clues_of(item), feature_map.load(ENGINE), stated=frozenset({"flag.page-size"}))
    score = {weighed.setting.fact: weighed.score for weighed in both}
    lower = {weighed.setting.fact: weighed.score for weighed in one}
    assert lower["flag.page-size"] == score["flag.page-size"]
    assert lower.get("flag.chunked-prefill-size", 0.0) < score["flag.chunked-prefill-size"]


def test_an_error_that_was_overridden_is_the_first_suspect() -> None:
    finding = Finding(id="odd-page", severity=Severity.ERROR, message="odd", subject="flag.page-size")
    item = judged(failed("E: x", frame("srt/layers/attention/flashmla_backend.py", "f")),
                  flags={"page-size": "16", "attention-backend": "flashmla"})  # fmt: skip
    settings = list(settings_of(item.reading.facts, load(ENGINE)))
    maps = feature_map.load(ENGINE)
    assert rank(settings, clues_of(item), maps, (finding,))[0].setting.fact == "flag.attention-backend"
    assert rank(settings, clues_of(item), maps, (finding,), overridden=True)[0].setting.fact == "flag.page-size"
