"""The evidence bundle: it is complete, contains no secrets, and is not trusted when it is unpacked."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.cli.app import DIAGNOSE, LAUNCH
from launcher.cli.app import run as command
from launcher.errors import RunNotFound, UsageError
from launcher.gate.evidence_bundle import opened, write
from launcher.run.state import State
from launcher.run.store import Run
from tests.support.gate_recorded import crashed

TOKEN = "hf_" + "a1B2c3D4" * 4


@pytest.fixture
def recorded(tmp_path: Path) -> Run:
    return crashed(tmp_path / "20261129-120000-fake-abcd")


def packed(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def test_a_bundle_opens_as_the_run_it_was(recorded: Run, tmp_path: Path) -> None:
    path = write(recorded, tmp_path / "a.tar.gz", {})
    with opened(path) as run:
        assert (run.id, run.state) == (recorded.id, State.CRASHED)
        assert run.read("plan") == recorded.read("plan")
        assert run.log.read_bytes() == recorded.log.read_bytes()
        folder = run.folder
    assert not folder.exists()


def test_the_same_run_gives_the_same_bytes(recorded: Run, tmp_path: Path) -> None:
    first, second = (write(recorded, tmp_path / name, {}).read_bytes() for name in ("a.tar.gz", "b.tar.gz"))
    assert first == second


def test_a_bundle_contains_no_secret_of_any_origin(recorded: Run, tmp_path: Path) -> None:
    plan = recorded.read("plan")
    recorded.write("plan", {**plan, "secret_env": ["SGLANG_KEY"], "env": {"MY_API_KEY": "whatever-it-is"}})
    with recorded.log.open("a") as log:
        log.write(f"Authorization: Bearer abcdefgh12345678\ntoken={TOKEN}\nkey s3cret-of-plan\napi_key='xyz-123456'\n")
        log.write("proxy http://me:pa55word@proxy:3128\nhome /home/me/models\n")
    path = write(recorded, tmp_path / "a.tar.gz", {"SGLANG_KEY": "s3cret-of-plan"})
    everything = gzip.decompress(path.read_bytes())
    for secret in (TOKEN, "abcdefgh12345678", "s3cret-of-plan", "xyz-123456", "pa55word", "whatever-it-is"):
        assert secret.encode() not in everything, secret
    assert b"/home/me/models" in everything


@pytest.mark.parametrize(
    "name",
    ["../run.json", "/etc/run.json", "a/../../run.json", "a/b/run.json", "a/other.txt", "run.json", ".a/run.json"],
)
def test_a_name_outside_the_run_s_folder_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / "evil.tar.gz", (tarfile.TarInfo(name), b"{}"))
    with pytest.raises(UsageError, match="is not a bundle: it contains"), opened(path):
        pass
    assert sorted(item.name for item in tmp_path.iterdir()) == ["evil.tar.gz"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_only_plain_files_are_unpacked(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("a/run.json")
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(UsageError, match="is not a bundle"), opened(packed(tmp_path / "evil.tar.gz", (member, b""))):
        pass


def test_two_runs_or_a_repeated_file_are_not_a_bundle(tmp_path: Path) -> None:
    two = packed(
        tmp_path / "two.tar.gz", (tarfile.TarInfo("a/run.json"), b"{}"), (tarfile.TarInfo("b/run.json"), b"{}")
    )
    same = packed(
        tmp_path / "same.tar.gz", (tarfile.TarInfo("a/run.json"), b"{}"), (tarfile.TarInfo("a/run.json"), b"{}")
    )
    for path in (two, same):
        with pytest.raises(UsageError), opened(path):
            pass


def test_a_damaged_bundle_is_refused(recorded: Run, tmp_path: Path) -> None:
    path = write(recorded, tmp_path / "a.tar.gz", {})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(UsageError), opened(path):
        pass


def test_a_bundle_whose_content_was_changed_is_refused(recorded: Run, tmp_path: Path) -> None:
    path = write(recorded, tmp_path / "a.tar.gz", {})
    members = []
    with tarfile.open(path) as archive:
        for member in archive:
            data = archive.extractfile(member).read()  # type: ignore[union-attr]
            members.append((member, data + b" " if member.name.endswith("run.json") else data))
    with pytest.raises(UsageError, match=r"is damaged: run\.json"), opened(packed(path, *members)):
        pass


@given(st.binary(max_size=200))
def test_any_bytes_are_either_a_bundle_or_a_usage_error(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.tar.gz"
        path.write_bytes(data)
        with pytest.raises(UsageError), opened(path):
            pass


def test_a_missing_bundle_is_reported_as_not_found(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound), opened(tmp_path / "none.tar.gz"):
        pass


def test_the_command_packs_and_diagnose_opens_it(
    recorded: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.tar.gz"
    assert command("launch", LAUNCH, ["bundle", str(recorded.folder), "--out", str(path)]) == 0
    capfd.readouterr()
    assert command("diagnose", DIAGNOSE, ["run", str(path), "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["cause"]["id"] == "model-directory-without-weights"
