"""Options that commands share: a wrong value is refused with the name of its option, before anything is contacted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from launcher.cli.options import check_output, connected, host_of, release, seconds_of
from launcher.errors import ProfileError, UsageError
from launcher.transport.base import Command
from launcher.transport.inventory import Host
from launcher.transport.local import LocalTransport


@pytest.mark.parametrize("text", ["", "0.5.11", "v0.5.11", "0.5.10.post1", "0.5.12.dev3+gabc", "99"])
def test_a_release_is_kept_as_it_was_typed(text: str) -> None:
    assert release(text) == text


@pytest.mark.parametrize("text", ["banana", "0.5.x", " ", "0.5.11, 0.5.12", ">=0.5", "٠.٥.١١ᵃ", "latest"])
def test_what_is_not_a_release_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not an SGLang release"):
        release(text)


@pytest.mark.parametrize(("text", "seconds"), [("", 0), ("30s", 30), ("10m", 600), ("1h", 3600), ("0.2s", 0.2)])
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert seconds_of("--soak", text) == seconds


@pytest.mark.parametrize("text", ["soon", "-5s", "5 parsecs", "s", "nan", "inf", "١٠m s"])
def test_a_faulty_duration_is_refused_with_the_name_of_its_option(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--soak: "):
        seconds_of("--soak", text)


def test_a_host_must_be_named() -> None:
    with pytest.raises(UsageError) as refused:
        host_of("", None)
    assert "--host local" in refused.value.hint


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "a b", "user@", "box:99999"])
def test_a_name_that_ssh_would_misread_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        host_of(name, None)


def test_a_host_has_the_settings_of_the_chosen_inventory(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text("hosts: {local: {work_dir: /srv/work}}\n")
    assert host_of("local", inventory).work_dir == "/srv/work"
    with pytest.raises(ProfileError):
        host_of("local", tmp_path / "missing.yaml")


def test_a_connection_runs_commands_on_the_host() -> None:
    with connected(Host(name="local")) as transport:
        assert (
            transport.run(Command(label="multiply", argv=(sys.executable, "-c", "print(6 * 7)"))).stdout.strip()
            == b"42"
        )


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_connection_is_closed_whatever_happens(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    closed: list[str] = []
    monkeypatch.setattr(LocalTransport, "close", lambda self: closed.append(self.name))
    with pytest.raises(error), connected(Host(name="local")):
        raise error
    assert closed == ["local"]


@pytest.mark.parametrize("creates", [True, False])
def test_a_place_that_can_be_written_is_accepted(tmp_path: Path, creates: bool) -> None:
    (tmp_path / "old").write_text("is replaced")
    for path in (None, tmp_path / "new", tmp_path / "old"):
        check_output("--out", path, creates_folders=creates)
    check_output("--out", tmp_path / "a" / "b" / "new", creates_folders=True)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("place", "creates"),
    [("folder", False), ("folder", True), ("a/new", False), ("file/new", False), ("file/a/new", True)],
)
def test_a_place_that_cannot_be_written_is_refused_with_its_option(tmp_path: Path, place: str, creates: bool) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--out") as refused:
        check_output("--out", tmp_path / place, creates_folders=creates)
    assert place in str(refused.value)


def test_a_missing_folder_is_refused_with_the_command_that_creates_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        check_output("--out", tmp_path / "a" / "new")
    assert refused.value.hint == f"mkdir -p {tmp_path / 'a'}"
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file") as refused:
        check_output("--out", tmp_path / "file" / "new")
    assert refused.value.hint == ""
