"""The kernel's messages of a period, from the ring buffer or a stand-in for journalctl; what is closed is a note."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from launcher.hostside import kernel_log

OOM = "Out of memory: Killed process 811 (sglang::schedul) total-vm:1kB"
ROWS = [
    (100.5, OOM),
    (101.0, "usb 1-1: new device"),
    (102.0, "NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus."),
    (200.0, OOM),
]


def journal(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "journalctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_journal_is_read_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "1.25 box kernel: one: é\n2 box kernel: two\n-- Boot 1 --\n3 box systemd[1]: three\n"
    journal(tmp_path, monkeypatch, f"cat <<'X'\n{text}X\nprintf '4 b kernel: \\377\\n'")
    rows, note = kernel_log.from_journal(0)
    assert rows == [(1.25, "one: é"), (2.0, "two"), (4.0, "\N{REPLACEMENT CHARACTER}")]
    assert note == ""


def test_the_journal_is_asked_for_the_period_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal(tmp_path, monkeypatch, 'echo "1 box kernel: $*"')
    [(_, words)], _ = kernel_log.from_journal(1_700_000_000.7)
    assert "--since @1700000000" in words


@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("echo 'No journal files' >&2; exit 1", "journalctl: No journal files"),
        ("exit 3", "journalctl: 3"),
    ],
)
def test_a_journal_that_fails_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, note: str
) -> None:
    journal(tmp_path, monkeypatch, script)
    assert kernel_log.from_journal(0) == (None, note)


def test_a_journal_without_visible_messages_names_the_group_that_may_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal(tmp_path, monkeypatch, "exit 0")
    rows, note = kernel_log.from_journal(0)
    assert rows == []
    assert "systemd-journal" in note


def test_a_host_without_a_journal_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert kernel_log.from_journal(0) == (None, "journalctl: not installed")


def test_only_messages_of_the_period_that_may_explain_an_end_are_reported() -> None:
    assert kernel_log.explaining(ROWS, 100.0, 199.0) == [
        f"[{kernel_log.stamp(at)}] kernel: {text}" for at, text in (ROWS[0], ROWS[2])
    ]
    assert len(kernel_log.explaining(ROWS, 100.5, 200.0)) == 3


def test_of_many_messages_the_latest_are_reported() -> None:
    rows = [(float(number), f"Killed process {number}") for number in range(1000)]
    lines = kernel_log.explaining(rows, 0.0, 2000.0)
    assert len(lines) == kernel_log.MOST
    assert lines[-1].endswith("Killed process 999")


def test_a_host_that_shows_no_messages_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = kernel_log.main({"since": time.time() + 3600, "until": time.time() + 7200})
    assert answer["lines"] == []
    assert answer["source"] == "kmsg" or "journalctl: not installed" in answer["notes"]


def test_the_real_ring_buffer_holds_times_since_the_boot_or_is_closed() -> None:
    rows, note = kernel_log.from_kmsg(0)
    if rows is None:
        assert note.startswith("/dev/kmsg: ")
    else:
        assert all(at <= time.time() + 1 and "\n" not in text for at, text in rows)
        assert kernel_log.from_kmsg(time.time() + 3600)[0] == []


def test_the_counter_of_a_memory_limit_is_a_number_or_unknown() -> None:
    kills = kernel_log.oom_kills()
    assert kills is None or kills >= 0
