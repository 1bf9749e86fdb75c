"""Links lead somewhere, and the table of contents of the tests names what is there."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES
from tests.support.paths import ROOT

CATALOGUE = (ROOT / "tests/README.md").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_to_files(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    targets = [target.strip() for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)]
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not ((ROOT / page).parent / target).exists()] == []


def test_every_folder_and_stand_in_of_the_tests_is_described() -> None:
    named = {name.rstrip("/").removeprefix("support/") for name in re.findall(r"`([\w./]+)`", CATALOGUE)}
    top = {path.name for path in (ROOT / "tests").iterdir() if path.name[0] not in "._"} - {"README.md", "conftest.py"}
    support = {path.name for path in (ROOT / "tests/support").iterdir() if path.name[0] not in "._"}
    hidden = {"gate_fixtures.py"} & named
    assert (top | support) - named - hidden == set()


def test_every_shared_fixture_is_described() -> None:
    fixtures = set()
    for name in ("conftest.py", "support/gate_fixtures.py"):
        text = (ROOT / "tests" / name).read_text("utf-8")
        fixtures |= set(re.findall(r"@pytest\.fixture[^\n]*\ndef (\w+)", text))
    assert fixtures - set(re.findall(r"`(\w+)`", CATALOGUE)) == set()


def test_every_marker_is_described() -> None:
    markers = re.findall(r'^    "(\w+): ', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert [name for name in markers if f"| `{name}` |" not in CATALOGUE] == []
