"""Where compiled kernels go: real folders, real mounts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launcher.hostside.kernel_cache import filesystem_of, triton_cache

MOUNTS = (
    "rootfs / ext4 rw 0 0\n"
    "server:/export /home nfs4 rw 0 0\n"
    "tmpfs /home/me/scratch tmpfs rw 0 0\n"
    "lustre /mnt/two\\040words lustre rw 0 0\n"
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/usr/lib", "ext4"),
        ("/home/me/.triton/cache", "nfs4"),
        ("/home/me/scratch", "tmpfs"),
        ("/home/me/scratches", "nfs4"),
        ("/mnt/two words/cache", "lustre"),
    ],
)
def test_the_deepest_mount_above_a_folder_decides(path: str, kind: str) -> None:
    assert filesystem_of(path, MOUNTS) == kind


def test_of_two_mounts_on_one_point_the_later_is_seen() -> None:
    assert filesystem_of("/home/x", MOUNTS + "tmpfs /home tmpfs rw 0 0\n") == "tmpfs"
    assert filesystem_of("/x", "") is None


def test_a_cache_that_is_not_there_yet_is_judged_by_the_folder_above_and_not_created(tmp_path: Path) -> None:
    cache = tmp_path / "a" / "b"
    found = triton_cache({"TRITON_CACHE_DIR": str(cache)})
    assert (found["dir"], found["writable"]) == (str(cache), True)
    assert not cache.parent.exists()


def test_a_file_in_the_way_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    assert triton_cache({"TRITON_CACHE_DIR": str(tmp_path / "cache")})["writable"] is False
    assert triton_cache({"TRITON_CACHE_DIR": str(tmp_path / "cache" / "below")})["writable"] is False


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_somebody_else_is_not_writable(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    assert triton_cache({"TRITON_CACHE_DIR": str(tmp_path)})["writable"] is False


def test_proc_cannot_be_written_into_and_its_type_is_read_from_the_real_mounts() -> None:
    found = triton_cache({"TRITON_CACHE_DIR": "/proc/cache"})
    assert found["filesystem"] == "proc"


def test_without_a_setting_it_is_the_home_folder_or_tritons_own(tmp_path: Path) -> None:
    assert triton_cache({})["dir"] == str(Path.home() / ".triton" / "cache")
    assert triton_cache({"TRITON_HOME": str(tmp_path)})["dir"] == str(tmp_path / ".triton" / "cache")
