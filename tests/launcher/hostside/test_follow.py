"""The log of a run is sent by offset until its process has ended, with samples of what its processes do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher import hostside
from launcher.hostside import follow
from launcher.hostside.process import mark_stop, read_identity
from launcher.run.frames import Ended, Frame, FrameReader, LogBytes, Replaced, Sample
from tests.support.scripted_run import ScriptedRun

Start = Callable[..., ScriptedRun]
Follow = Callable[..., list[Frame]]


@pytest.fixture
def followed(capfdbinary: pytest.CaptureFixture[bytes]) -> Follow:
    """Follow a run to its end; the frames that were printed."""

    def run(folder: Path, offset: int = 0) -> list[Frame]:
        follow.main({"folder": str(folder), "run": folder.name, "offset": offset})
        return list(FrameReader().feed(capfdbinary.readouterr().out))

    return run


def ended(folder: Path, log: bytes, code: str = "0\n") -> Path:
    (folder / "server.log").write_bytes(log)
    (folder / "rc").write_text(code)
    return folder


def log_of(frames: list[Frame]) -> bytes:
    return b"".join(frame.data for frame in frames if isinstance(frame, LogBytes))


def test_the_whole_log_precedes_the_end(start_run: Start, followed: Follow) -> None:
    run = start_run("echo one; sleep 0.2; printf 'two: \\377'; exit 3")
    frames = followed(run.folder)
    assert log_of(frames) == b"one\ntwo: \xff"
    assert frames[-1] == Ended("exited", 3, asked=False)


def test_only_the_bytes_from_the_offset_on_are_sent(tmp_path: Path, followed: Follow) -> None:
    assert followed(ended(tmp_path, b"0123456789"), 4)[0] == LogBytes(b"456789", 4)


def test_a_log_larger_than_a_frame_arrives_in_pieces_that_join(tmp_path: Path, followed: Follow) -> None:
    data = os.urandom(2 * follow.CHUNK + 5)
    frames = followed(ended(tmp_path, data))
    pieces = [frame for frame in frames if isinstance(frame, LogBytes)]
    assert log_of(frames) == data
    assert [piece.offset for piece in pieces] == [0, follow.CHUNK, 2 * follow.CHUNK]


def test_a_log_that_became_shorter_is_sent_again_from_its_beginning(tmp_path: Path, followed: Follow) -> None:
    frames = followed(ended(tmp_path, b"new"), 100)
    assert frames[:2] == [Replaced(3), LogBytes(b"new", 0)]


def test_a_run_without_a_log_still_ends(tmp_path: Path, followed: Follow) -> None:
    (tmp_path / "rc").write_text("73\n")
    assert followed(tmp_path) == [Ended("exited", 73)]


def test_a_process_that_is_gone_without_an_exit_code_has_vanished(
    tmp_path: Path, followed: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "GRACE", 0.1)
    (tmp_path / "pid").write_text("1 1 another-boot\n")
    (tmp_path / "server.log").write_bytes(b"last words")
    frames = followed(tmp_path)
    assert log_of(frames) == b"last words"
    assert frames[-1] == Ended("vanished", None)
    assert followed(tmp_path / "missing")[-1] == Ended("not-started", None)


def test_a_stop_that_was_asked_for_is_told_from_a_crash(tmp_path: Path, followed: Follow) -> None:
    mark_stop(tmp_path)
    assert followed(ended(tmp_path, b"", "143\n"))[-1] == Ended("exited", 143, asked=True)


def test_the_first_sample_arrives_at_once(start_run: Start, followed: Follow) -> None:
    run = start_run("sleep 0.3")
    [sample] = [frame for frame in followed(run.folder) if isinstance(frame, Sample)]
    assert "sh launch.sh" in [row["name"] for row in sample.processes]


def test_a_sample_shows_the_work_of_every_process(start_run: Start) -> None:
    script = "kill -STOP $$; : " + "é" * 90
    run = start_run(f"sh -c '{script}' & echo up; wait")

    def states() -> str:
        rows = follow.sample(run.id, read_identity(run.folder))["processes"]
        return "".join(row["state"] for row in rows)

    run.until(lambda: "T" in states())
    sample = follow.sample(run.id, read_identity(run.folder))
    stopped = next(row for row in sample["processes"] if row["state"] == "T")
    assert stopped["name"].startswith("sh -c kill")
    assert len(stopped["name"]) <= 60
    assert sample["read"] > 0


def test_a_run_that_is_gone_has_an_empty_sample() -> None:
    assert follow.sample("no-such-run", (1, 1, "another-boot")) == {"processes": [], "cpu": 0.0, "read": 0}
    assert follow.sample("no-such-run", None)["processes"] == []


def test_a_process_that_is_gone_has_no_name_and_has_read_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert (follow.name_of(process.pid), follow.read_bytes(process.pid)) == ("?", 0)


def test_the_program_ends_when_nobody_reads_it(start_run: Start) -> None:
    run = start_run("sleep 0.2; while :; do echo x; sleep 0.05; done")
    program = hostside.bundle("follow", {"folder": str(run.folder), "run": run.id, "offset": 0})
    process = subprocess.Popen(
        [sys.executable, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(program)
    process.stdin.close()
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
