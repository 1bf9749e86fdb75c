"""`launch facts`: one JSON document about a host, which `launch check --facts` accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Cli


def test_the_facts_of_a_host_are_one_document(engine: Cli) -> None:
    code, out, _ = engine("facts", "--host", "local")
    facts = json.loads(out)
    assert code == 0
    assert facts["engine"]["packages"]["sglang"] == "0.5.23"
    assert facts["host"]["work_dir"] == str(engine.folder / "work")


def test_recorded_facts_can_be_checked_against(engine: Cli) -> None:
    code, out, _ = engine("facts", "--host", "local", "--out", "box.json")
    assert (code, out) == (0, "")
    code, out, err = engine("check", "fake", "--facts", "box.json", "--json")
    assert "findings" in json.loads(out), err


def test_a_profile_adds_its_model_and_port(engine: Cli) -> None:
    plain = json.loads(engine("facts", "--host", "local")[1])
    asked = json.loads(engine("facts", "--host", "local", "--profile", "fake")[1])
    assert plain.get("model") != asked.get("model")
    assert str(engine.folder) in json.dumps(asked["model"])


def test_a_host_without_an_engine_is_captured_with_a_note(engine: Cli) -> None:
    (engine.folder / "hosts.yaml").write_text(json.dumps({"hosts": {"local": {"python": "/no/such/python3"}}}))
    code, out, err = engine("facts", "--host", "local")
    assert (code, json.loads(out)["engine"]) == (0, None)
    assert "note: no SGLang: " in err and "/no/such/python3" in err


@pytest.mark.parametrize("place", ["no/such/folder/box.json", "work"])
def test_a_place_that_cannot_be_written_is_refused_before_the_host_is_asked(engine: Cli, place: str) -> None:
    (engine.folder / "work").mkdir()
    code, out, err = engine("facts", "--host", "nobody@127.0.0.1:1", "--out", place)
    assert (code, out, place in err, "--out" in err) == (2, "", True, True)


@pytest.mark.parametrize("words", [(), ("--host", "local", "--profile", "nothing"), ("--hosts-file", "missing.yaml")])
def test_a_host_or_profile_that_does_not_exist_is_refused(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, err = cli("facts", *words)
    assert (code, out, err.startswith("launch: ")) == (2, "", True)
    assert list(Path().iterdir()) == []
