"""A stand-in accepts what modules do while they are imported, and notes when the engine decides by it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from launcher.hostside.stand_ins import Doubts, StandInClass, import_name, stand_in


@pytest.mark.parametrize(
    ("distribution", "name"),
    [("flashinfer_python", "flashinfer"), ("sgl-kernel", "sgl_kernel"), ("Pillow", "PIL"), ("numpy", "numpy")],
)
def test_a_distribution_is_imported_under_its_own_name(distribution: str, name: str) -> None:
    assert import_name(distribution) == name


def test_a_stand_in_can_be_used_as_names_are_used_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    doubts = Doubts()
    monkeypatch.setattr(StandInClass, "doubts", doubts)
    kernel = stand_in("Kernel")
    assert kernel | None is kernel
    assert kernel["int"] is kernel
    assert list(kernel) == []
    assert not doubts.touched

    class Derived(kernel):  # type: ignore[misc, valid-type]
        pass

    assert kernel()(test_a_distribution_is_imported_under_its_own_name) is (
        test_a_distribution_is_imported_under_its_own_name
    )
    assert kernel.uint4.max is not None
    assert doubts.touched
    assert doubts.texts == []
    assert bool(kernel.has)
    assert doubts.texts == ["the engine asked a kernel package: has"]
    with pytest.raises(AttributeError):
        _ = kernel.__version__


def test_what_a_module_asks_when_it_is_imported_is_no_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubts = Doubts()
    monkeypatch.setattr(StandInClass, "doubts", doubts)
    (tmp_path / "asking_module.py").write_text(
        "from launcher.hostside.stand_ins import stand_in\nhas = bool(stand_in('Kernel').has)\n"
        "def later():\n    return bool(stand_in('Kernel').other)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("asking_module")
    assert (doubts.texts, doubts.touched) == ([], True)
    assert module.later()
    assert doubts.texts == ["the engine asked a kernel package: other"]


def test_a_doubt_is_kept_once_and_twenty_at_most() -> None:
    doubts = Doubts()
    for number in (1, 1, *range(50)):
        doubts.add(str(number))
    assert len(doubts.texts) == 20
    assert doubts.texts[:2] == ["1", "0"]
