"""One gate at a time uses a host: the next one waits in line, and a lock ends with the connection that holds it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from launcher.errors import HostCommandFailed, TransportTimeout
from launcher.gate.queue import held
from launcher.transport.base import Command, Transport
from launcher.transport.local import LocalStream, LocalTransport


class Bare(LocalTransport):
    """A host with the programs that it is created with, and no others."""

    def __init__(self, folder: Path, *programs: str) -> None:
        super().__init__("bare-box")
        folder.mkdir()
        for name in programs:
            (folder / name).symlink_to(f"/usr/bin/{name}")
        self._folder = folder

    def stream(self, command: Command) -> LocalStream:
        return super().stream(Command(argv=command.argv, label=command.label, env={"PATH": str(self._folder)}))


def ignore(text: str) -> None:
    """Nobody listens."""


@pytest.mark.sshd
def test_one_gate_at_a_time_uses_a_host_and_then_frees_it(transport: Transport, tmp_path: Path) -> None:
    messages: list[str] = []
    folder = str(tmp_path / "work")
    with held(transport, folder, wait=60, who="the first", say=messages.append):
        with (
            pytest.raises(TransportTimeout, match="another gate still uses"),
            held(transport, folder, wait=1, who="the second", say=messages.append),
        ):
            pass
        assert messages == ["the host is in use: queued behind the first"]
        entered = threading.Event()

        def wait_in_line() -> None:
            with held(transport, folder, wait=60, who="the third", say=messages.append):
                entered.set()

        third = threading.Thread(target=wait_in_line)
        third.start()
        assert not entered.is_set()
    third.join(30)
    assert entered.is_set()


def test_a_block_that_fails_frees_the_host(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), held(LocalTransport(), str(tmp_path), wait=60, who="a", say=ignore):
        raise ZeroDivisionError
    with held(LocalTransport(), str(tmp_path), wait=60, who="b", say=ignore):
        assert (tmp_path / "gate.holder").read_text() == "b\n"


def test_hosts_with_folders_of_their_own_do_not_wait_for_each_other(tmp_path: Path) -> None:
    messages: list[str] = []
    with (
        held(LocalTransport(), str(tmp_path / "a"), wait=60, who="a", say=messages.append),
        held(LocalTransport(), str(tmp_path / "b"), wait=60, who="b", say=messages.append),
    ):
        assert messages == []


@pytest.mark.slow
def test_the_name_of_a_holder_is_shown_and_is_neither_executed_nor_an_answer(tmp_path: Path) -> None:
    messages: list[str] = []
    name = "$(touch stolen) `id` %s ünï 'quoted\" \\n"
    with (
        held(LocalTransport(), str(tmp_path), wait=60, who=f"{name}\nheld\nqueued behind another", say=ignore),
        pytest.raises(TransportTimeout) as caught,
        held(LocalTransport("gpu-box"), str(tmp_path), wait=0.4, who="next", say=messages.append),
    ):
        pass
    assert messages == [f"the host is in use: queued behind {name}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gate.holder", "gate.lock"]
    assert (caught.value.where, "gpu-box after 0 minutes" in caught.value.message) == ("gpu-box", True)
    assert "wait-minutes" in caught.value.hint


def test_a_folder_below_the_home_of_the_host_is_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with held(LocalTransport(), "~/of gates/work", wait=60, who="a", say=ignore):
        assert (tmp_path / "of gates/work/gate.lock").exists()


def test_a_folder_that_cannot_be_made_is_an_error_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(HostCommandFailed, match="cannot take the gate's lock") as caught,
        held(LocalTransport(), str(tmp_path / "file/work"), wait=60, who="a", say=ignore),
    ):
        pass
    assert caught.value.hint == ""


def test_a_host_without_flock_is_told_which_package_has_it(tmp_path: Path) -> None:
    host = Bare(tmp_path / "bin", "sh", "mkdir", "cat", "sleep")
    with (
        pytest.raises(HostCommandFailed, match="on bare-box") as caught,
        held(host, str(tmp_path / "work"), wait=60, who="a", say=ignore),
    ):
        pass
    assert "util-linux" in caught.value.hint
