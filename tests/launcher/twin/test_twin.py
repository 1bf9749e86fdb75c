"""The twin runs a release's own code, believes what the code says, and is unsure about all that it cannot simulate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import HostCommandFailed
from launcher.transport.base import Command, Result
from launcher.transport.local import LocalTransport
from launcher.twin import twin
from launcher.twin.release_store import Release
from launcher.twin.simulation import Simulated
from launcher.twin.twin import Answer, Question, ask
from launcher.twin.twin_environment import Environment
from tests.support.small_release import small_release

H100 = {"name": "NVIDIA H100", "memory_mib": 81559, "capability": [9, 0]}
MODEL = {"/data/m": {"config.json": {"model_type": "llama"}}}
PACKAGES = {"flashinfer-python": "0.6.8", "deep-ep": None}


class Counting(LocalTransport):
    """Runs commands, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def run(self, command: Command) -> Result:
        self.runs += 1
        return super().run(command)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield


@pytest.fixture
def engine(tmp_path: Path) -> tuple[Release, Environment]:
    return small_release(tmp_path)


def question(*words: str, name: str = "q", env: dict[str, str] | None = None, **host: Any) -> Question:
    simulated = Simulated(**{"gpus": (H100,), "packages": PACKAGES, "models": MODEL, **host})
    return Question(name=name, words=("--model-path", "/data/m", *words), env=env or {}, host=simulated)


def answer(engine: tuple[Release, Environment], *words: str, **options: Any) -> Answer:
    return ask(LocalTransport(), *engine, [question(*words, **options)])["q"]


def test_accepted_arguments_come_with_what_they_resolve_to(engine: tuple[Release, Environment]) -> None:
    found = answer(engine)
    assert (found.kind, found.stage, found.effective["backend"]) == ("accepted", "model", "fa3")
    assert found.effective["model_path"] == "/data/m"


def test_a_refusal_has_its_message_place_and_condition(engine: tuple[Release, Environment]) -> None:
    found = answer(engine, "--backend", "trtllm")
    assert (found.kind, found.exception) == ("refused", "ValueError")
    assert found.message == "trtllm needs SM100, llama or not, in /data/m"
    assert found.frame.startswith("srt/server_args.py:")
    assert "self.backend == 'trtllm'" in found.condition


def test_the_gpus_and_variables_are_those_of_the_facts(engine: tuple[Release, Environment]) -> None:
    b200 = {"name": "NVIDIA B200", "memory_mib": 183359, "capability": [10, 0]}
    assert answer(engine, gpus=(b200,)).effective["backend"] == "fa4"
    assert answer(engine, "--tp-size", "2").kind == "refused"
    assert answer(engine, "--tp-size", "2", gpus=(H100, H100)).kind == "accepted"
    hidden = answer(engine, "--tp-size", "2", gpus=(H100, H100), env={"CUDA_VISIBLE_DEVICES": "1"})
    assert hidden.kind == "refused"
    assert answer(engine, "--act", "memory", gpus=(H100, H100)).effective["memory"] == [81559, 81559]
    assert answer(engine, env={"SGLANG_ODD": "yes"}).message == "odd: yes"


def test_the_processors_and_the_memory_are_those_of_the_facts(engine: tuple[Release, Environment]) -> None:
    machine = {"cpus": 4, "numa_nodes": 2, "memory_bytes": 1 << 34}
    found = answer(engine, "--act", "processors", machine=machine)
    assert found.effective["processors"] == ["0", "0", "1", "1", 1 << 34]
    unknown = answer(engine, "--act", "processors")
    assert (unknown.kind, unknown.doubts[0]) == ("unknown", "the engine runs lscpu")


def test_an_error_of_the_parser_is_the_line_that_it_prints(engine: tuple[Release, Environment]) -> None:
    found = answer(engine, "--backend", "banana")
    assert found.kind == "usage"
    assert found.message.startswith("sglang serve: error: argument --backend: invalid choice: 'banana'")


def test_what_the_main_process_does_next_counts_too(engine: tuple[Release, Environment]) -> None:
    found = answer(engine, "--act", "model")
    assert (found.kind, found.stage) == ("refused", "model")


@pytest.mark.parametrize(
    ("words", "doubt"),
    [
        (("--act", "kernel"), "a kernel package"),
        (("--act", "equal"), "a kernel package"),
        (("--act", "stand-in-type"), "may come from a kernel package"),
        (("--act", "connect"), "opens a connection"),
        (("--act", "write"), "writes /var/tmp/sglang-twin-test"),
        (("--act", "run"), "runs true"),
        (("--act", "die"), "did not end within"),
        (("--template", "/data/t.jinja", "--act", "template"), "whether /data/t.jinja exists"),
    ],
)
def test_what_cannot_be_simulated_is_unknown(engine: tuple[Release, Environment], words: Any, doubt: str) -> None:
    found = answer(engine, *words)
    assert found.kind == "unknown", found
    assert any(doubt in text for text in found.doubts), found.doubts
    assert not Path("/var/tmp/sglang-twin-test").exists()


def test_a_missing_file_of_the_model_is_unknown(engine: tuple[Release, Environment]) -> None:
    assert answer(engine, models={}).kind == "unknown"
    assert answer(engine, models={"/data/m": {}}).kind == "unknown"


def test_an_error_of_the_code_itself_is_a_refusal(engine: tuple[Release, Environment]) -> None:
    assert (answer(engine, "--act", "type").kind, answer(engine, "--act", "type").exception) == ("refused", "TypeError")


def test_a_path_on_the_host_is_assumed_to_exist(engine: tuple[Release, Environment]) -> None:
    found = answer(engine, "--template", "/data/t.jinja")
    assert found.kind == "accepted"
    assert "whether /data/t.jinja exists" in found.doubts[0]


def test_a_launch_that_does_not_end_is_cut_off_and_asked_again_the_next_time(
    engine: tuple[Release, Environment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twin, "SECONDS", 1)
    transport = Counting()
    for runs in (1, 2):
        assert ask(transport, *engine, [question("--act", "sleep")])["q"].kind == "unknown"
        assert transport.runs == runs


def test_nothing_is_left_behind(
    engine: tuple[Release, Environment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr(twin.tempfile, "tempdir", str(place))
    answer(engine)
    answer(engine, "--act", "die")
    assert list(place.iterdir()) == []


def test_a_package_that_the_host_lacks_cannot_be_imported(engine: tuple[Release, Environment]) -> None:
    found = answer(engine, packages={"flashinfer-python": None, "numpy": None})
    assert (found.kind, found.stage) == ("unknown", "import")


def test_one_process_answers_many_launches_and_answers_are_kept(engine: tuple[Release, Environment]) -> None:
    transport = Counting()
    questions = [question("--tp-size", str(size), name=str(size)) for size in range(1, 6)]
    first = ask(transport, *engine, questions)
    assert [first[item.name].kind for item in questions] == ["accepted", *["refused"] * 4]
    assert transport.runs == 1
    assert ask(transport, *engine, questions) == first
    assert transport.runs == 1
    ask(transport, *engine, [question("--tp-size", "1", env={"A_B": "1"})])
    assert transport.runs == 2


def test_a_twin_that_does_not_start_says_how_to_go_on(engine: tuple[Release, Environment], tmp_path: Path) -> None:
    release, _ = engine
    nothing = Environment(python="/nonexistent/python", packages=tmp_path, transformers="5.6.0")
    with pytest.raises(HostCommandFailed, match="did not start") as caught:
        ask(LocalTransport(), release, nothing, [question()])
    assert "--fast" in caught.value.hint
