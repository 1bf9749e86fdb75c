"""A person who follows CONTRIBUTING.md to the letter gets what it promises, recipe by recipe, in a copy of the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import blocks, steps
from tests.docs.recipes import PAGE, copy, follow, run, sections
from tests.support.paths import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("title", sorted(sections()))
def test_a_recipe_can_be_followed(title: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    copy(tree)
    wrong = list(follow(sections()[title], tree))
    assert not wrong, "\n\n".join(wrong)


def test_there_is_a_recipe_for_each_of_the_four() -> None:
    assert [title.split(":")[0] for title in sections()] == ["A cause", "A fact", "A probe", "A transport"]


@pytest.mark.slow
def test_single_tests_are_run_as_the_page_says() -> None:
    [block] = [item for item in blocks(PAGE) if item.indent and ".venv" in item.text]
    for step in steps(block):
        done = run(f"{step.command} --collect-only", ROOT)
        assert done.returncode == 0, done.stdout + done.stderr
