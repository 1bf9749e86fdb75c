import gzip
import io
import lzma
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from launcher.errors import UsageError
from launcher.logfile import chunks

TEXT = b"[2026-11-29 15:16:18] hello\n" * 5000


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.log", bytes),
        ("a.gz", gzip.compress),
        ("a.xz", lzma.compress),
        ("no-suffix", zstandard.ZstdCompressor().compress),
    ],
)
def test_a_log_is_unpacked_by_its_first_bytes(tmp_path: Path, name: str, pack: object) -> None:
    path = tmp_path / name
    path.write_bytes(pack(TEXT))  # type: ignore[operator]
    assert b"".join(chunks(str(path))) == TEXT


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_of_a_cut_archive_the_beginning_is_read(tmp_path: Path, pack: object) -> None:
    text = bytes(range(10, 256)) * 20_000
    path = tmp_path / "a"
    packed = pack(text)  # type: ignore[operator]
    path.write_bytes(packed[: len(packed) - 20])
    found = b"".join(chunks(str(path)))
    assert text.startswith(found)


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(TEXT)))
    assert b"".join(chunks("-")) == TEXT


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        list(chunks(str(tmp_path / "none.log")))


def test_a_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        list(chunks(str(tmp_path)))


def test_an_empty_file_has_no_chunks(tmp_path: Path) -> None:
    (tmp_path / "e").write_bytes(b"")
    assert list(chunks(str(tmp_path / "e"))) == []
