"""An engine's source in a checkout, site-packages or a wheel; files that are missing or cannot be read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from checks.engine.source.tree import SourceError, SourceTree, from_root, from_wheel, installed
from tests.support.engine_sources import source_tree

FILES = {"srt/server_args.py": "A = 1\n", "srt/broken.py": "def\n", "srt/odd.py": "# caf\xe9\n", "notes.txt": "x"}


def written(root: Path, package: str = "sglang") -> Path:
    for name, text in FILES.items():
        path = root / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    return root


def wheel(folder: Path) -> Path:
    path = folder / "sglang-9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(f"sglang/{name}", text.encode("latin-1"))
        archive.writestr("sglang-9.9.dist-info/METADATA", "Version: 9.9\n")
        archive.writestr("sglang_router/x.py", "")
    return path


@pytest.fixture(params=["checkout", "site-packages", "package", "wheel"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> SourceTree:
    match request.param:
        case "checkout":
            return from_root(str(written(tmp_path, "python/sglang")))
        case "site-packages":
            return from_root(str(written(tmp_path)))
        case "package":
            return from_root(str(written(tmp_path) / "sglang"))
        case _:
            return from_wheel(str(wheel(tmp_path)))


def test_files_are_named_inside_the_package_wherever_it_lies(tree: SourceTree) -> None:
    assert list(tree.paths()) == ["srt/broken.py", "srt/odd.py", "srt/server_args.py"]
    assert list(tree.paths("srt/s")) == ["srt/server_args.py"]
    assert tree.read("srt/server_args.py") == "A = 1\n"
    assert tree.has("srt/odd.py") and not tree.has("notes.txt") and not tree.has("srt/gone.py")


def test_what_cannot_be_read_is_none_and_bad_bytes_are_replaced(tree: SourceTree) -> None:
    assert tree.read("srt/gone.py") is None and tree.parse("srt/gone.py") is None
    assert tree.parse("srt/broken.py") is None
    assert tree.read("srt/odd.py") == "# caf\ufffd\n"


def test_a_syntax_tree_is_kept_until_it_is_forgotten() -> None:
    tree = source_tree({"srt/a.py": "A = 1\n"})
    first = tree.parse("srt/a.py")
    assert first is not None and tree.parse("srt/a.py") is first
    tree.forget("srt/a.py")
    assert tree.parse("srt/a.py") is not first


def test_metadata_is_that_of_the_wheel_or_beside_the_package(tmp_path: Path) -> None:
    assert from_wheel(str(wheel(tmp_path))).metadata() == "Version: 9.9\n"
    tree = from_root(str(written(tmp_path)))
    (tmp_path / "sglang.egg-info").mkdir()
    (tmp_path / "sglang.egg-info" / "PKG-INFO").write_text("Version: 7\n")
    assert tree.metadata() == "Version: 7\n"
    (tmp_path / "sglang-8.dist-info").mkdir()
    (tmp_path / "sglang-8.dist-info" / "METADATA").write_text("Version: 8\n")
    assert tree.metadata() == "Version: 8\n"
    assert source_tree({}).metadata() is None


def test_a_folder_or_file_that_is_not_an_engine_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no srt/server_args.py in "):
        from_root(str(tmp_path))
    (tmp_path / "x.whl").write_text("no zip")
    for name in ("x.whl", "absent.whl"):
        with pytest.raises(SourceError, match=f"{name} is not a readable wheel"):
            from_wheel(str(tmp_path / name))


def test_the_engine_that_would_be_imported_is_found_without_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    (tmp_path / "sglang" / "__init__.py").write_text("raise RuntimeError('was run')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed().origin == str(tmp_path / "sglang")
