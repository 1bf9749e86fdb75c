"""`launch bundle`: one archive of a run, at the place that is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.gate.evidence_bundle import opened
from launcher.run.store import Run
from tests.support.command_line import Cli
from tests.support.gate_recorded import crashed


@pytest.fixture
def run(cli: Cli) -> Run:
    return crashed(cli.folder / "state" / "runs" / "20261129-120000-chat-abcd")


def test_the_archive_has_the_id_of_its_run_and_lies_in_the_current_folder(cli: Cli, run: Run) -> None:
    code, out, err = cli("bundle", "last")
    path = Path(out.strip())
    assert (code, path, path.exists()) == (0, Path(f"{run.id}.tar.gz"), True)
    assert f"{path.stat().st_size:,} bytes; review it before you publish it" in err


def test_the_archive_is_written_where_it_is_wanted_and_opens(cli: Cli, run: Run) -> None:
    code, out, _ = cli("bundle", "abcd", "--out", "evidence/ünïcode.tar.gz")
    assert (code, out) == (0, "evidence/ünïcode.tar.gz\n")
    with opened(Path(out.strip())) as unpacked:
        assert unpacked.read("diagnosis") == run.read("diagnosis")


def test_a_copied_folder_can_be_packed(cli: Cli, run: Run) -> None:
    run.folder.rename(cli.folder / "copy")
    assert cli("bundle", "copy")[:2] == (0, "copy.tar.gz\n")


@pytest.mark.parametrize("place", ["state", "hosts.yaml/a.tar.gz"])
def test_a_place_that_cannot_be_written_is_refused(cli: Cli, run: Run, place: str) -> None:
    (cli.folder / "hosts.yaml").write_text("")
    code, out, err = cli("bundle", run.id, "-o", place)
    assert (code, out, "--out" in err) == (2, "", True)


def test_a_run_that_does_not_exist_is_refused(cli: Cli) -> None:
    code, out, err = cli("bundle", "nothing")
    assert (code, out, "no run matches `nothing`" in err) == (2, "", True)
    assert list(cli.folder.glob("*.tar.gz")) == []
