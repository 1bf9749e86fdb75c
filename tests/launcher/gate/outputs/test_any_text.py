"""Every format for CI systems is well formed whatever a profile contains, and the command line writes each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.gate.outputs.codequality import codequality
from launcher.gate.outputs.github import workflow_commands
from launcher.gate.outputs.junit import junit
from launcher.gate.outputs.markdown import markdown
from launcher.gate.outputs.sarif import sarif
from launcher.gate.report import Place
from tests.support.gate_fixtures import Judged, remark, report
from tests.support.gate_repo import Repo
from tests.support.paths import DATA

SCHEMA = json.loads((DATA / "schemas/sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
TEXT = st.text(st.characters(exclude_categories=()), max_size=40)


@given(message=TEXT, path=TEXT, profile=TEXT)
def test_every_format_is_well_formed_for_any_text(message: str, path: str, profile: str) -> None:
    odd = report(remark(message=message, place=Place(path=path or "x"), profile=profile))
    VALIDATOR.validate(json.loads(sarif(odd)))
    ElementTree.fromstring(junit(odd))
    json.loads(codequality(odd))
    assert len(workflow_commands(odd).split("\n")) == 2
    assert markdown(odd)


def test_the_command_line_writes_every_format(
    repo: Repo, gate: Callable[..., Judged], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.append("profiles/chat.yaml", "  no-such-flag: 1\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    out = tmp_path / "out"
    words = [f"--{name}={out / name}" for name in ("junit", "sarif", "codequality", "markdown")]
    judged = gate(repo, *words)
    assert judged.code == 1
    VALIDATOR.validate(json.loads((out / "sarif").read_text()))
    assert ElementTree.parse(out / "junit").getroot().get("failures") == "1"
    assert len(json.loads((out / "codequality").read_text())) == 1
    assert (out / "markdown").read_text() == (tmp_path / "summary.md").read_text()
    assert "::error file=profiles/chat.yaml,line=5,col=3" in judged.error
