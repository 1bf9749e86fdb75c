"""Releases are stored whole, with the digest and the requirements that their wheel states."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from checks.engine.release_rows import recorded
from launcher.errors import UsageError
from launcher.transport.base import Command, Result
from launcher.twin import release_store
from launcher.twin.release_store import digests, fetch, fetched, store_folder, store_wheel, stored

METADATA = """Metadata-Version: 2.1
Name: sglang
Version: 0.5.11
Requires-Dist: transformers==5.6.0
Requires-Dist: torch==2.11.0
Requires-Dist: numpy
Requires-Dist: msgspec>=0.18
Requires-Dist: ray; extra == "ray"
Requires-Dist: not a requirement !
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def wheel(folder: Path, name: str = "sglang-0.5.11-own.whl", metadata: str = METADATA, **files: str) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sglang/srt/server_args.py", "x = 1\n")
        archive.writestr("sglang/jit_kernel/csrc/a.cuh", "// source")
        archive.writestr("sglang/srt/large.bin", "0" * 400_000)
        archive.writestr("other/b.py", "")
        archive.writestr("sglang-0.5.11.dist-info/METADATA", metadata)
        for inner, text in files.items():
            archive.writestr(inner, text)
    return path


class Pip:
    """Answers `pip download` with a wheel, or with an error."""

    name = "local"

    def __init__(self, source: Path | None) -> None:
        self.source, self.words = source, ()

    def run(self, command: Command) -> Result:
        self.words = command.argv
        if self.source is None:
            return Result(exit=1, stdout=b"", stderr=b"ERROR: No matching distribution found\n", seconds=0)
        place = Path(command.argv[command.argv.index("-d") + 1])
        (place / self.source.name).write_bytes(self.source.read_bytes())
        return Result(exit=0, stdout=b"", stderr=b"", seconds=0)


def test_a_fetched_release_has_its_source_requirements_and_digest(tmp_path: Path) -> None:
    source = wheel(tmp_path)
    pip = Pip(source)
    release = fetch(pip, "0.5.11")  # type: ignore[arg-type]
    assert pip.words[-1] == "sglang==0.5.11"
    assert "--no-deps" in pip.words
    assert (release.folder / "sglang/srt/server_args.py").read_text() == "x = 1\n"
    assert (release.folder / "sglang/jit_kernel/csrc/a.cuh").exists()
    assert not (release.folder / "sglang/srt/large.bin").exists()
    assert not (release.folder / "other").exists()
    assert release.sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert (release.pin("transformers"), release.pin("numpy"), release.pin("absent")) == ("5.6.0", "", "")
    assert release.assumed() == {"transformers": "5.6.0", "torch": "2.11.0", "numpy": "99.0", "msgspec": "0.18"}
    assert stored("0.5.11") == release
    assert fetched() == ("0.5.11",)
    assert stored("0.5.12") is None


def test_a_wheel_of_a_recorded_release_must_have_its_digest(tmp_path: Path) -> None:
    name = next(iter(digests()))
    with pytest.raises(UsageError, match="expected"):
        store_wheel(wheel(tmp_path, name), "")
    assert fetched() == ()


def test_every_recorded_release_has_a_digest() -> None:
    assert {name.split("-")[1] for name in digests()} == set(recorded("sites"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "absent.whl", "cannot read the wheel"),
        (lambda folder: Path(__file__), "cannot read the wheel"),
        (lambda folder: wheel(folder, metadata=METADATA.replace("0.5.11", "0.5.12")), "contains SGLang 0.5.12"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        store_wheel(make(tmp_path), "0.5.11")  # type: ignore[operator]
    assert fetched() == ()


def test_a_failed_download_names_the_other_way() -> None:
    with pytest.raises(UsageError, match="No matching distribution") as caught:
        fetch(Pip(None), "0.5.99")  # type: ignore[arg-type]
    assert "--wheel" in caught.value.hint


def test_a_folder_is_stored_with_the_requirements_beside_it(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "sglang/srt").mkdir(parents=True)
    (site / "sglang/srt/server_args.py").write_text("y = 2\n")
    with pytest.raises(UsageError, match="does not say what"):
        store_folder(site, "0.5.11")
    (site / "sglang-0.5.11.dist-info").mkdir()
    (site / "sglang-0.5.11.dist-info/METADATA").write_text(METADATA)
    release = store_folder(site, "0.5.11")
    assert (release.folder / "sglang/srt/server_args.py").read_text() == "y = 2\n"
    assert release.pin("transformers") == "5.6.0"
    with pytest.raises(UsageError, match=r"srt/server_args\.py is missing"):
        store_folder(tmp_path, "0.5.11")


def test_a_failure_keeps_the_release_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = store_wheel(wheel(tmp_path), "0.5.11")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(release_store, "_note_origin", fail)
    with pytest.raises(OSError, match="disk full"):
        store_wheel(wheel(tmp_path), "0.5.11")
    assert stored("0.5.11") == release
    assert [path.name for path in release.folder.parent.iterdir()] == ["0.5.11"]


def test_a_damaged_record_counts_as_not_fetched(tmp_path: Path) -> None:
    release = store_wheel(wheel(tmp_path), "0.5.11")
    for text in ("", "[]", "{}", '{"sha256": "0", "requirements": 3}'):
        (release.folder / release_store.ORIGIN).write_text(text)
        assert stored("0.5.11") is None
