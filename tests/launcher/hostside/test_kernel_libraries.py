"""What a kernel package wants of the loader, read out of real ELF files."""

from __future__ import annotations

import shutil
import struct
import sys
from pathlib import Path

import pytest
from msgspec import _core

from launcher.hostside.kernel_libraries import kernel_libraries, needed


def elf(names: list[str]) -> bytes:
    """A 64-bit ELF file that wants these libraries: a header, two segments, a string table."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    at = [strings.index(b"\0" + name.encode() + b"\0") + 1 for name in names]
    entries = [(1, offset) for offset in at] + [(5, 0x1000 + 400), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    whole = 400 + len(strings)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, whole, whole, 0x1000)
    table = struct.pack("<IIQQQQQQ", 2, 6, 180, 0x1000 + 180, 0x1000 + 180, len(dynamic), len(dynamic), 8)
    return (head + load + table).ljust(180, b"\0") + dynamic.ljust(220, b"\0") + strings


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "sgl_kernel" / "sm90").mkdir(parents=True)
    return tmp_path


def libraries(site: Path, **env: str) -> dict[str, list[str]] | None:
    found: dict[str, list[str]] | None = kernel_libraries(str(site / "sgl_kernel"), sys.executable, env)
    return found


def test_the_needs_of_a_real_library_are_read_as_the_loader_reads_them() -> None:
    assert any(name.startswith(("libc.so", "libpthread.so")) for name in needed(_core.__file__))


def test_a_need_that_is_nowhere_is_missing_and_others_are_not_looked_for(site: Path) -> None:
    (site / "sgl_kernel" / "sm90" / "ops.so").write_bytes(elf(["libcudart.so.19", "libnuma.so.9", "libother.so.1"]))
    found = libraries(site)
    assert found is not None and found["missing"] == ["libcudart.so.19", "libnuma.so.9"]


def test_libraries_that_come_as_python_packages_or_by_the_path_count(site: Path) -> None:
    (site / "sgl_kernel" / "ops.so").write_bytes(elf(["libcudart.so.19", "libnuma.so.9", "libnvrtc.so.19"]))
    wheel, torch, own = site / "nvidia" / "cu19" / "lib", site / "torch" / "lib", site / "own"
    for folder, name in ((wheel, "libcudart.so.19"), (torch, "libnvrtc.so.19"), (own, "libnuma.so.9")):
        folder.mkdir(parents=True)
        (folder / name).touch()
    found = libraries(site, LD_LIBRARY_PATH=f"/nowhere:{own}")
    assert found is not None and found["missing"] == []
    assert {"libcudart.so.19", "libnvrtc.so.19"} <= set(found["cuda"])


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF\x02\x01" + bytes(60), b"\x7fELF\x01\x01" + bytes(60)])
def test_what_is_not_such_a_file_wants_nothing(site: Path, content: bytes) -> None:
    path = site / "sgl_kernel" / "ops.so"
    path.write_bytes(content)
    assert needed(str(path)) == []


def test_a_file_cut_short_wants_nothing(site: Path) -> None:
    path = site / "sgl_kernel" / "ops.so"
    for length in range(0, 300, 7):
        path.write_bytes(elf(["libnuma.so.1"])[:length])
        assert needed(str(path)) == []


def test_without_any_library_nothing_is_known(site: Path) -> None:
    assert shutil.which("ldconfig") or Path("/sbin/ldconfig").exists()
    assert libraries(site) is None
