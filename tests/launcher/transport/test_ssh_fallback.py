"""~/.ssh/config read without an ssh program, in the form of `ssh -G`."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.errors import ProfileError
from launcher.transport.ssh_fallback import read_config


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def test_options_are_lists_of_values_under_lower_case_names(config: Path) -> None:
    config.write_text("Host box\n HostName 10.9.8.7\n Port 2200\n IdentityFile /k/one\n IdentityFile /k/två\n")
    options = read_config(config, "box")
    assert options["hostname"] == ("10.9.8.7",)
    assert options["port"] == ("2200",)
    assert options["identityfile"] == ("/k/one", "/k/två")


def test_a_host_without_a_block_is_its_own_address(config: Path) -> None:
    config.write_text("Host box\n HostName 10.9.8.7\n")
    assert read_config(config, "other") == {"hostname": ("other",)}


def test_the_first_value_wins_and_patterns_apply(config: Path) -> None:
    config.write_text("Host b?x !bix\n User eva\nHost *\n User adam\n")
    assert read_config(config, "box")["user"] == ("eva",)
    assert read_config(config, "bix")["user"] == ("adam",)


def test_a_missing_file_has_no_options(config: Path) -> None:
    assert read_config(config, "box") == {}


@pytest.mark.parametrize("content", [b"Host box\n HostName\n", b"Host box\n User \xff\n", b'Host "box\n User eva\n'])
def test_a_file_that_cannot_be_parsed_is_named(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    with pytest.raises(ProfileError, match="cannot parse the ssh configuration") as caught:
        read_config(config, "box")
    assert caught.value.where == str(config)


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="Is a directory"):
        read_config(tmp_path, "box")
