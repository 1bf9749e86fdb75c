"""Module-level names of an engine file: bindings in order, changes of lists, and imports inside the package."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine.source.scope import Scope
from checks.engine.source.values import Class, Function, Module, Opaque, Unresolved
from tests.support.engine_sources import scope_of, source_tree


def value(text: str, name: str = "A", **siblings: str) -> Any:
    return scope_of(text, **siblings).lookup(name)


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("A = 1\nA = 2\n", 2),
        ("A: list = [1]\n", [1]),
        ("A = [1]\nA += [2]\n", [1, 2]),
        ("A = [1]\nA.append(2)\nA.extend([3, 4])\n", [1, 2, 3, 4]),
        ("A = {1}\nA.add(2)\nA.update({3})\n", {1, 2, 3}),
        ("A = [1]\nA.sort()\n", [1]),
        ("A = [1]\nif debug:\n    A.append(2)\n", [1]),
        ("if x:\n    A = 1\n", 1),
        ("try:\n    A = 1\nexcept E:\n    B = 2\n", 1),
        ("B = 1\nA = B\n", 1),
        ("A = 1\nfrom sglang.srt.other import A\n", 1),
    ],
)
def test_the_last_binding_counts_and_later_changes_extend_it(text: str, worth: object) -> None:
    assert value(text, other="A = 9\n") == worth


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("from sglang.srt.other import A\n", 9),
        ("from .other import A\n", 9),
        ("from sglang.srt.other import X as A\n", 8),
        ("from sglang.srt.other import *\n", 9),
        ("from sglang.srt import other\nA = other.A\n", 9),
        ("from . import other\nA = other.X\n", 8),
        ("from sglang.srt.other import B as A\n", 7),
        ("from torch import A\n", Opaque("torch.A")),
        ("from sys import maxsize as A\n", 2**63 - 1),
        ("import torch as A\n", Module("torch", None)),
        ("from sglang.srt.absent import *\nfrom sglang.srt.other import *\n", 9),
    ],
)
def test_an_import_is_followed_inside_the_package(text: str, worth: object) -> None:
    assert value(text, other="from sglang.srt.third import C as B\nX = 8\nA = 9\n", third="C = 7\n") == worth


def test_a_package_is_its_init_file() -> None:
    tree = source_tree({"srt/main.py": "from sglang.srt.group import A\n", "srt/group/__init__.py": "A = 5\n"})
    assert Scope(tree, "srt/main.py").lookup("A") == 5
    above = source_tree({"srt/deep/main.py": "from ..other import A\n", "srt/other.py": "A = 6\n"})
    assert Scope(above, "srt/deep/main.py").lookup("A") == 6


def test_definitions_are_kept_with_their_file() -> None:
    scope = scope_of("from sglang.srt.other import K, f\n", other="class K: pass\ndef f(): pass\n")
    found = scope.lookup("K"), scope.lookup("f")
    assert isinstance(found[0], Class) and isinstance(found[1], Function)
    assert {item.scope.path for item in found} == {"srt/other.py"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "unknown name A"),
        ("A += [1]\n", "A is never bound"),
        ("from sglang.srt.absent import A\n", "unknown module srt/absent"),
        ("from sglang.srt.other import A\n", "unknown name A"),
        ("from sglang.srt.other import *\n", "unknown name A"),
        ("syntax error here\n", "unknown name A"),
    ],
)
def test_a_name_that_is_not_there_is_unresolved(text: str, complaint: str) -> None:
    with pytest.raises(Unresolved, match=complaint):
        value(text, other="X = 1\n")


def test_files_that_import_each_other_are_read_once() -> None:
    scope = scope_of("from sglang.srt.other import B\nA = 1\n", other="from sglang.srt.main import A\nB = A\n")
    assert scope.lookup("B") == 1
