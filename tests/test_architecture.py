"""The structure of the project: rooms, arrows between them, unique module names, and the mirror in tests/."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.long_files import LONG_FILES
from tests.support.paths import ROOT


def graph_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("import_graph", ROOT / "tools" / "import_graph.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


TOOL = graph_tool()
# The layout was drafted with 13 rooms and 31 arrows in checks; a new arrow needs a reason.
# 38 and 39: lint and the reference pages read the registry of facts, which is in the room of facts.
# 45: suspects weighs what before and during report, by the maps of engine.
# 71: the twin needs a transport, the programs for hosts, facts and the cache; the flows and the command line use it.
MOST_ARROWS = {"checks": 45, "launcher": 71}


@pytest.mark.parametrize("root", ["checks", "launcher"])
def test_rooms_form_floors_without_a_circle(root: str) -> None:
    graph = TOOL.arrows(root)
    level = TOOL.floors(graph)
    upward = [(room, to) for room, others in graph.items() for to in others if level[to] >= level[room]]
    assert upward == []
    assert sum(len(others) for others in graph.values()) <= MOST_ARROWS[root]


def test_a_circle_is_reported_with_its_rooms() -> None:
    with pytest.raises(ValueError, match="a → b → a"):
        TOOL.floors({"a": frozenset({"b"}), "b": frozenset({"a"})})


def test_no_two_modules_share_a_name() -> None:
    names = Counter(
        name.rpartition(".")[2]
        for root in ("checks", "launcher")
        for name, path in TOOL.modules(root).items()
        if path.name != "__init__.py"
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_the_docs_show_the_measured_rooms() -> None:
    text = TOOL.PAGE.read_text("utf-8")
    assert TOOL.page(text) == text, "run: python tools/import_graph.py --write"


@pytest.mark.parametrize("root", ["checks", "launcher"])
def test_the_quick_suite_touches_every_room(root: str) -> None:
    """Some test file that `make quick` runs imports a module of the room."""
    known = TOOL.modules(root)
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if is_quick(path)]
    texts = [re.sub(rf"from {root} import (\w+)", rf"{root}.\1", path.read_text("utf-8")) for path in files]
    named = {name for text in texts for name in re.findall(rf"\b{root}(?:\.\w+)+", text)}
    touched = {TOOL.room_of(name, known) for name in named if name in known}
    assert set(TOOL.arrows(root)) - touched == set()


def is_quick(path: Path) -> bool:
    marked = re.search(r"^pytestmark = .*(sshd|engine|slow)", path.read_text("utf-8"), re.MULTILINE)
    return path.relative_to(ROOT).as_posix() not in LONG_FILES and marked is None


def test_the_list_of_long_files_holds_files() -> None:
    assert [name for name in LONG_FILES if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("top", ["checks", "launcher"])
def test_tests_mirror_the_tree(top: str) -> None:
    """Each folder of tests is a folder of the product; a test file may name a behaviour instead of a module."""
    folders = {path.relative_to(ROOT / "tests") for path in (ROOT / "tests" / top).rglob("*") if path.is_dir()}
    unmatched = [str(path) for path in folders if path.name != "__pycache__" and not (ROOT / path).is_dir()]
    assert unmatched == []


WITHOUT_OWN_TESTS = {
    "checks.during.signature_build": "tested through test_matching, which builds an index for each of its tests",
    "checks.during.signature_index": "tested through test_matching, which writes an index and reads it back",
    "launcher.flows.launch.flow_context": "a record without behaviour: mypy checks each place that builds one",
    "launcher.transport.base": "records and protocols: test_contract holds every transport to each of its promises",
}
"""Modules without a test module of the same name, each with the reason. At most five."""


@pytest.mark.parametrize("root", ["checks", "launcher"])
def test_every_module_has_a_test_module_of_its_name(root: str) -> None:
    untested = {
        name
        for name, path in TOOL.modules(root).items()
        if path.name != "__init__.py"
        and not (
            ROOT
            / "tests"
            / path.relative_to(ROOT).with_name(f"test_{path.stem.removeprefix('__').removesuffix('__')}.py")
        ).exists()
    }
    assert untested - WITHOUT_OWN_TESTS.keys() == set(), "write the test module, or give a reason in WITHOUT_OWN_TESTS"
    assert len(WITHOUT_OWN_TESTS) <= 5


PRODUCT = [path for top in ("checks", "launcher", "tools") for path in (ROOT / top).rglob("*.py")]


def test_no_file_is_longer_than_300_lines() -> None:
    long = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in PRODUCT}
    assert {name: lines for name, lines in long.items() if lines > 300} == {}, "give part of it a module of its own"


def test_no_function_is_longer_than_40_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in PRODUCT
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 40
    ]
    assert long == []
