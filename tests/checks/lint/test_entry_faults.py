"""The knowledge held to account: what lint reports."""

from __future__ import annotations

from pathlib import Path

from checks.lint.entry_faults import folders_without_an_entry


def test_a_folder_without_its_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "causes" / "misnamed").mkdir(parents=True)
    (tmp_path / "causes" / "misnamed" / "case.yaml").write_text("title: x\n")
    (tmp_path / "signs").mkdir()
    assert list(folders_without_an_entry(tmp_path)) == ["causes/misnamed: no cause.yaml"]
    assert list(folders_without_an_entry()) == []
