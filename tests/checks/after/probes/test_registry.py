"""The bundled probes are well-formed; a malformed one is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.after.probes.every_reply import OBSERVERS
from checks.after.probes.registry import KINDS, load, of_suite, probes
from checks.catalog.yaml_reader import YamlError


def test_each_kind_of_the_table_has_an_entry_and_each_entry_a_kind() -> None:
    assert {probe.kind for probe in probes()} == {*KINDS, *OBSERVERS}


def test_the_suites_grow() -> None:
    smoke, standard, full = ({probe.id for probe in of_suite(name)} for name in ("smoke", "standard", "full"))
    assert smoke < standard < full


def test_smoke_spends_few_tokens() -> None:
    tokens = sum(int(probe.params.get("max_tokens", 0)) * 2 for probe in of_suite("smoke"))
    assert tokens <= 600


@pytest.mark.parametrize("probe", probes(), ids=lambda probe: probe.id)
def test_an_entry_says_what_and_why(probe: object) -> None:
    assert getattr(probe, "title", "")
    assert len(getattr(probe, "why", "")) > 40


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: t\nwhy: w\nkind: nonsense\nlevel: ready\nsuites: [smoke]\n", "nonsense"),
        ("title: t\nwhy: w\nkind: health\nlevel: fine\nsuites: [smoke]\n", "fine"),
        ("title: t\nwhy: w\nkind: health\nlevel: ready\nsuite: [smoke]\n", "suites"),
    ],
)
def test_a_malformed_entry_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(YamlError, match=message) as error:
        load(path)
    assert "bad.yaml:" in str(error.value)
