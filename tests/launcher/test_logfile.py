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
def test_compression_is_recognised_by_the_first_bytes(tmp_path: Path, name: str, pack: object) -> None:
    path = tmp_path / name
    path.write_bytes(pack(TEXT))  # type: ignore[operator]
    assert b"".join(chunks(str(path))) == TEXT


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_truncated_archive_yields_its_beginning(tmp_path: Path, pack: object) -> None:
    text = bytes(range(10, 256)) * 20_000
    path = tmp_path / "a"
    packed = pack(text)  # type: ignore[operator]
    path.write_bytes(packed[: len(packed) - 20])
    content = b"".join(chunks(str(path)))
    assert content and text.startswith(content)


def test_a_dash_means_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(TEXT)))
    assert b"".join(chunks("-")) == TEXT


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        list(chunks(str(tmp_path / "none.log")))


def test_a_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        list(chunks(str(tmp_path)))


def test_an_empty_file_has_no_chunks(tmp_path: Path) -> None:
    (tmp_path / "e").write_bytes(b"")
    assert list(chunks(str(tmp_path / "e"))) == []
