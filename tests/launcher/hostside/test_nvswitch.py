"""Fabric Manager on hosts with and without NVSwitch: stand-ins for nvidia-smi and systemctl on a real PATH."""

from __future__ import annotations

import ctypes
import multiprocessing
from pathlib import Path

import pytest

from launcher.hostside.nvswitch import fabric_manager, service_state

LINKED = "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"
PLAIN = "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \nLegend:\n  NV#  = Connection traversing a bonded set\n"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "dev").mkdir()
    (tmp_path / "proc").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    program(tmp_path, "nvidia-smi", "echo '[N/A]'")
    program(tmp_path, "systemctl", "exit 1")
    return tmp_path


def program(host: Path, name: str, text: str) -> None:
    path = host / "bin" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def state(host: Path, topology: str | None = LINKED) -> str | None:
    found: str | None = fabric_manager(topology, str(host / "dev"), str(host / "proc"))
    return found


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Completed\nCompleted", "active"),
        ("Completed\nIn Progress", "activating"),
        ("Completed\nNot Started", "inactive"),
        ("N/A\nN/A", None),
    ],
)
def test_the_gpus_own_word_counts_and_one_outside_the_fabric_is_enough(
    host: Path, said: str, expected: str | None
) -> None:
    program(host, "nvidia-smi", f"printf '{said}\\n'")
    assert state(host) == expected


def test_without_a_sign_of_a_switch_nobody_is_asked(host: Path) -> None:
    program(host, "nvidia-smi", f"touch {host / 'asked'}; echo 'Not Started'")
    assert state(host, PLAIN) is None
    assert state(host, None) is None
    assert not (host / "asked").exists()


@pytest.mark.parametrize("word", ["active", "inactive", "failed"])
def test_where_the_driver_does_not_tell_the_service_is_asked(host: Path, word: str) -> None:
    (host / "dev" / "nvidia-nvswitch0").touch()
    program(host, "systemctl", f"echo {word}")
    assert state(host, PLAIN) == word


def test_links_without_a_switch_are_no_reason_to_expect_the_service(host: Path) -> None:
    program(host, "systemctl", "echo inactive")
    assert state(host) is None


def test_a_service_manager_that_hangs_is_left_and_says_nothing(host: Path) -> None:
    program(host, "systemctl", "exec sleep 600")
    assert service_state(str(host / "proc"), seconds=0.2) is None


def _named(name: bytes, ready: object, done: object) -> None:
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)  # PR_SET_NAME
    ready.set()  # type: ignore[attr-defined]
    done.wait(60)  # type: ignore[attr-defined]


def test_in_a_host_without_a_service_manager_its_running_process_is_found(host: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=_named, args=(b"nv-fabricmanager", ready, done))
    process.start()
    try:
        assert ready.wait(60)
        assert service_state() == "active"
    finally:
        done.set()
        process.join()
    assert service_state(str(host / "proc")) is None
