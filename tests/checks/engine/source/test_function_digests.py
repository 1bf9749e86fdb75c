"""A digest changes with the code of a function, and with nothing else."""

from __future__ import annotations

from pathlib import Path

from checks.engine.source.function_digests import function_digests
from checks.engine.source.tree import from_root

CODE = "class C:\n    def f(self):\n        return 1\n\ndef g():\n    def inner():\n        return 2\n"


def digests(folder: Path, code: str) -> dict[tuple[str, str], str]:
    (folder / "srt").mkdir(parents=True)
    (folder / "srt/server_args.py").write_text("class ServerArgs:\n    pass\n")
    (folder / "srt/a.py").write_text(code)
    return function_digests(from_root(str(folder)))


def test_methods_and_inner_functions_have_their_full_names(tmp_path: Path) -> None:
    assert {name for _, name in digests(tmp_path, CODE)} == {"C.f", "g", "g.inner"}


def test_position_and_comments_do_not_count_and_code_does(tmp_path: Path) -> None:
    before = digests(tmp_path / "a", CODE)
    assert digests(tmp_path / "b", "# moved\n\n\n" + CODE.replace("return 1", "return 1  # same")) == before
    after = digests(tmp_path / "c", CODE.replace("return 1", "return 3"))
    assert {place for place in before if before[place] != after[place]} == {("srt/a.py", "C.f")}


def test_a_file_with_newer_syntax_is_left_out(tmp_path: Path) -> None:
    assert digests(tmp_path, "def f(:\n") == {}
