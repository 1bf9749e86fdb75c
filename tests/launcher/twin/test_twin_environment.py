"""One interpreter with torch for all releases, and one folder of packages for each pinned version of transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from launcher.errors import HostCommandFailed, UsageError
from launcher.transport.base import Command, Result
from launcher.twin.release_store import Release
from launcher.twin.twin_environment import PLAIN, Environment, existing, prepare


class Pip:
    """Answers as an interpreter and pip would; keeps what it was asked."""

    name = "local"

    def __init__(self, *, torch: bool = True, installs: bool = True, **found: str) -> None:
        self.torch, self.installs, self.found, self.commands = torch, installs, found, []

    def run(self, command: Command) -> Result:
        self.commands.append(command.argv)
        if command.label == "torch":
            text = json.dumps(["311", self.found]).encode() if self.torch else b""
            return Result(exit=0, stdout=text, stderr=b"ModuleNotFoundError: No module named 'torch'\n", seconds=0)
        if command.label == "pip install" and self.installs:
            if "--target" in command.argv:
                Path(command.argv[command.argv.index("--target") + 1]).mkdir(parents=True)
            return Result(exit=0, stdout=b"", stderr=b"", seconds=0)
        failed = command.label == "pip install"
        return Result(exit=int(failed), stdout=b"", stderr=b"no index\n" if failed else b"", seconds=0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def release(transformers: str = "5.6.0", *more: str) -> Release:
    needs = (f"transformers=={transformers}", "openai==2.6.1", *more)
    return Release(version="0.5.11", folder=Path("/x"), sha256="0", requirements=needs)


def made(pip: Pip, item: Release, python: str = "") -> tuple[Environment, list[str]]:
    told: list[str] = []
    return prepare(pip, item, told.append, python), told  # type: ignore[arg-type]


def test_the_packages_have_the_versions_that_the_release_pins() -> None:
    pip = Pip()
    environment, told = made(pip, release(), "/opt/python")
    assert (environment.python, environment.transformers) == ("/opt/python", "5.6.0")
    words = pip.commands[-1]
    assert {"transformers==5.6.0", "openai==2.6.1", "numpy"} <= set(words)
    assert len(told) == 1
    assert existing(release()) == environment


def test_releases_with_the_same_pin_share_the_packages() -> None:
    pip = Pip()
    made(pip, release(), "/opt/python")
    before = len(pip.commands)
    made(pip, release("5.6.0", "numpy==2.0"), "/opt/python")
    assert [words for words in pip.commands[before:] if "install" in words] == []
    assert existing(release("5.8.1")) is None
    made(pip, release("5.8.1"), "/opt/python")
    assert existing(release("5.8.1")) is not None


def test_without_an_interpreter_that_of_the_engine_is_used_else_one_is_made(tmp_path: Path) -> None:
    pip = Pip()
    environment, told = made(pip, release())
    assert environment.python.endswith("twin/python/bin/python")
    assert any("torch" in words for words in pip.commands if "install" in words)
    assert "installing torch" in told[0]
    cache = tmp_path / "cache/sglang-launcher"
    (cache / "twin/interpreter.json").unlink()
    (cache / "engine.json").write_text(json.dumps({"python": "/engine/bin/python"}))
    assert made(Pip(), release())[0].python == "/engine/bin/python"


def test_the_interpreter_that_was_used_before_is_used_again(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("")
    python.chmod(0o755)
    made(Pip(), release(), str(python))
    assert made(Pip(), release())[0].python == str(python)


def test_an_interpreter_without_torch_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot import torch: ModuleNotFoundError"):
        made(Pip(torch=False), release(), "/opt/python")


def test_a_failed_installation_leaves_nothing_that_looks_complete() -> None:
    with pytest.raises(HostCommandFailed, match="no index"):
        made(Pip(installs=False), release(), "/opt/python")
    assert existing(release()) is None


def test_an_interpreter_that_has_everything_needs_no_packages() -> None:
    everything = dict.fromkeys(PLAIN, "1.0")
    pip = Pip(transformers="5.6.0", **everything)
    environment, told = made(pip, release(), "/engine/python")
    assert list(environment.packages.glob("*.*")) == [environment.packages / ".complete"]
    assert (told, [words for words in pip.commands if "install" in words]) == ([], [])
    assert existing(release()) == environment
    assert existing(release("5.8.1")) is None
