"""Where each fact of a launch comes from, in words: the line of a profile, a program on a host, or a file."""

from __future__ import annotations

import pytest

from checks.catalog.yaml_reader import parse
from checks.engine.flag_schema import load
from launcher.plan.fact_sources import of_file, of_host, of_profile
from launcher.profile.file import parse_profile
from launcher.profile.resolve import override

PROFILE = """\
model:
  path: /models/m
  served-name: chat
hardware:
  gpu: H100
  note: any
flags:
  tensor-parallel-size: 2
  no-such-flag: 1
env:
  A: x
"""


def sources(text: str = PROFILE) -> dict[str, str]:
    return of_profile(parse_profile("p", "p.yaml", parse(text, "p.yaml")), load("0.5.20"))


@pytest.mark.parametrize(
    ("fact", "where"),
    [
        ("flag.model-path", "p.yaml:2:3"),
        ("flag.served-model-name", "p.yaml:3:3"),
        ("host.gpu_name", "p.yaml:5:3"),
        ("flag.tp-size", "p.yaml:8:3"),
        ("flag.no-such-flag", "p.yaml:9:3"),
        ("env.A", "p.yaml:11:6"),
    ],
)
def test_a_fact_that_a_profile_states_has_the_line_of_its_value(fact: str, where: str) -> None:
    assert sources()[fact] == f"set in {where}"


def test_only_keys_that_become_facts_are_named() -> None:
    assert not [name for name in sources() if "note" in name or "tensor-parallel" in name]


def test_a_flag_beside_the_model_s_path_goes_before_it() -> None:
    assert sources("model: {path: /a}\nflags:\n  model-path: /b\n")["flag.model-path"] == "set in p.yaml:3:3"


def test_a_fact_that_the_command_line_sets_names_the_option() -> None:
    profile = override(parse_profile("p", "p.yaml", parse(PROFILE, "p.yaml")), ["tp=4"], [], ["B=y"])
    named = of_profile(profile, load("0.5.20"))
    assert (named["flag.tp-size"], named["env.B"]) == ("set by --set tp=4", "set by --env B")


def test_what_no_profile_sets_was_added_by_the_launcher() -> None:
    assert sources("{}") == dict.fromkeys(("flag.", "env."), "added to the profile by the launcher")


def test_a_measured_fact_names_the_host_and_the_program_that_read_it() -> None:
    named = of_host({"host": {"env": {"CUDA_HOME": "/cuda"}}}, "gpu-box", recorded=False)
    assert named["model."] == "read from gpu-box by launcher/hostside/read_checkpoint.py"
    assert named["env.CUDA_HOME"] == named["engine.version"] == "read from gpu-box by launcher/hostside/host_facts.py"
    assert named["model.gated"] == "read from gpu-box by launcher/hostside/hub_route.py"


def test_a_recorded_fact_names_the_file() -> None:
    named = of_host({"host": None}, "facts/gpu-box.json", recorded=True)
    assert {text.partition(", ")[0] for text in named.values()} == {"recorded in facts/gpu-box.json"}
    assert not [name for name in named if name.startswith("env.")]


def test_every_program_that_is_named_exists() -> None:
    from tests.support.paths import ROOT

    programs = {text.rpartition(" by ")[2] for text in of_host({}, "gpu-box", recorded=False).values()}
    assert [name for name in programs if not (ROOT / name).is_file()] == []


def test_a_file_is_the_source_of_every_kind_of_fact() -> None:
    assert of_file("case.json")["draft."] == of_file("case.json")["observed."] == "given in case.json"
