import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.during import log_facts
from checks.during.log import server_args
from checks.during.log.lines import Line, parse
from tests.support.paths import CORPUS


def lines_of(name: str) -> list[Line]:
    rows = (CORPUS / name).read_bytes().split(b"\n")
    return [line for number, raw in enumerate(rows, 1) for line in parse(raw, number)]


def test_both_forms_of_the_arguments_line_are_read() -> None:
    old = dict(
        server_args.parse("model_path='/m', tp_size=8, a=None, b=[1, 2], c={'x': (1,)}, d=True, e='it\\'s, ok')")
    )
    new = dict(
        server_args.parse(
            "'model_path': '/m', 'tp_size': 8, 'a': None, 'b': [1, 2], 'c': {'x': (1,)}, 'd': True, 'e': \"it's, ok\"}"
        )
    )
    assert old == new == {
        "model_path": "/m", "tp_size": 8, "a": None, "b": [1, 2], "c": {"x": (1,)}, "d": True, "e": "it's, ok",
    }  # fmt: skip


def test_values_that_are_not_literals_stay_text() -> None:
    assert dict(server_args.parse("a=<Mode.X: 1>, b=Path(x='1'), c=2)")) == {
        "a": "<Mode.X: 1>",
        "b": "Path(x='1')",
        "c": 2,
    }


def test_a_truncated_line_gives_what_is_complete() -> None:
    assert dict(server_args.parse("a=1, b='xy', c=[1, ")) == {"a": 1, "b": "xy"}


@pytest.mark.parametrize(
    ("name", "release"), [("0.5.11-h200/base.log", "0.5.11"), ("0.5.23-cpu/a-normal.log", "0.5.23")]
)
def test_the_arguments_identify_the_release(name: str, release: str) -> None:
    assert log_facts.release_of(server_args.read(lines_of(name)).arguments) == release


def test_an_excerpt_of_the_arguments_does_not_identify_the_release() -> None:
    assert log_facts.release_of(["model_path", "tp_size"]) == ""


def test_a_real_log_gives_model_gpu_and_flags() -> None:
    found = server_args.read(lines_of("0.5.11-h200/nextn-buf.log"))
    assert found.model == {"name": "qwen3next-tiny", "architectures": ["Qwen3NextForCausalLM"], "hybrid": True}
    assert found.gpu == {"name": "H200"}
    assert found.flags["speculative-algorithm"] == "EAGLE"
    assert found.starts == 1
    assert not {"random-seed", "mem-fraction-static", "port"} & set(found.flags)


def test_ranks_give_the_number_of_gpus() -> None:
    assert server_args.read([Line(number=1, text="x", rank="DP0 TP3", headed=True)]).gpu == {"count": 4}


def test_the_callers_facts_take_precedence_over_the_log() -> None:
    own = server_args.LogFacts(
        flags={"tp-size": "2", "quantization": "fp8"},
        gpu={"name": "H200", "count": 2},
        engine="0.5.9",
        model={"name": "a"},
    )
    facts = log_facts.merge(
        own, {"flags": {"--tp": "4"}, "gpu": {"name": "B200"}, "model": "b", "observed": None}, "0.5.10", "args"
    )
    assert (facts["engine.version"], facts["flag.tp-size"], facts["flag.quantization"]) == ("0.5.10", "4", "fp8")
    assert (facts["host.gpu_name"], facts["host.gpu_count"], facts["model.name"], facts["log.phase"]) == (
        "B200",
        2,
        "b",
        "args",
    )


def test_arguments_at_their_default_are_not_flags() -> None:
    own = server_args.LogFacts(flags={"schedule-policy": "fcfs", "page-size": "64"})
    facts = log_facts.merge(own, {}, "0.5.10", "")
    assert "flag.schedule-policy" not in facts and facts["flag.page-size"] == "64"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("sglang version: 0.5.10.post1", "0.5.10.post1"), ("sglang==0.5.9", "0.5.9"), ("SGLang v0.5.12", "0.5.12"),
        ("sglang-kernel 0.3.21", ""), ("/cache/sglang-0.5.9.dist-info/METADATA", "0.5.9"),
    ],
)  # fmt: skip
def test_a_version_banner_is_read(text: str, version: str) -> None:
    assert server_args.read([Line(number=1, text=text)]).engine == version


@given(st.text(alphabet="a='\"[](){},\\:<> 1", max_size=200))
def test_any_arguments_are_read(text: str) -> None:
    assert isinstance(dict(server_args.parse(text)), dict)
