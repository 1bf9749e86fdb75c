"""The generated reference of facts."""

from __future__ import annotations

from checks.facts.names import namespaces
from checks.reference.facts_page import ORDER, PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m checks.reference.facts_page --write"


def test_every_record_and_every_pattern_is_on_the_page() -> None:
    assert set(ORDER) == set(namespaces())
    text = page()
    for space in namespaces().values():
        names = [*space.facts, *(pattern.name for pattern in space.patterns)]
        assert [name for name in names if f"`{name}`" not in text] == []


def test_no_cell_breaks_its_table() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {4, 6}
