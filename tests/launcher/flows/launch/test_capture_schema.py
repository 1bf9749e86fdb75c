"""The flags of an engine that is not a release: read from its source on a host, in a wheel or in a folder."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from checks.engine.flag_schema import from_document
from launcher.errors import HostCommandFailed, UsageError
from launcher.flows.launch.capture_schema import capture_file, capture_host
from launcher.transport.inventory import Host
from launcher.transport.local import LocalTransport

METADATA = "Metadata-Version: 2.1\nName: sglang\nVersion: 9.9.dev1\n"
SERVER_ARGS = """\
import argparse
import dataclasses

raise SystemExit("the source is read and never run")


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    brand_new: int = 7

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--brand-new", type=int, default=ServerArgs.brand_new, help="a flag of tomorrow")
"""
FILES = {
    "sglang/__init__.py": "",
    "sglang/srt/__init__.py": "",
    "sglang/srt/server_args.py": SERVER_ARGS,
    "sglang-9.9.dev1.dist-info/METADATA": METADATA,
}


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text)
    return tmp_path / "site"


def flags(document: dict[str, Any]) -> tuple[str, str | None]:
    schema = from_document(json.loads(json.dumps(document)))
    return schema.version, schema.canonical("brand-new")


def host(**fields: Any) -> Host:
    return Host(name="gpu-box", work_dir="~/w", **fields)


def test_a_wheel_and_a_folder_have_the_same_schema(engine: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "sglang-9.9.dev1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    from_wheel, from_folder = capture_file(wheel), capture_file(engine)
    assert flags(from_wheel) == flags(from_folder) == ("9.9.dev1", "brand-new")


def test_the_interpreter_of_the_host_finds_its_engine_without_running_it(engine: Path) -> None:
    local = LocalTransport()
    named = capture_host(local, host(python=sys.executable, env={"PYTHONPATH": str(engine)}))
    assert flags(named) == ("9.9.dev1", "brand-new")
    asked = capture_host(local, host(python="/no/such/python", env={"PYTHONPATH": str(engine)}), sys.executable)
    assert asked == named


def test_a_host_without_an_engine_is_an_error_that_names_it(tmp_path: Path) -> None:
    nothing = host(python=sys.executable, env={"PYTHONPATH": str(tmp_path)})
    with pytest.raises(HostCommandFailed, match="cannot read the engine's source on gpu-box: ") as caught:
        capture_host(LocalTransport(), nothing)
    assert caught.value.where == "gpu-box"


def test_a_host_whose_engine_cannot_be_parsed_is_an_error(engine: Path) -> None:
    (engine / "sglang/srt/server_args.py").write_text("def (:\n")
    with pytest.raises(HostCommandFailed, match="cannot read the engine's source"):
        capture_host(LocalTransport(), host(python=sys.executable, env={"PYTHONPATH": str(engine)}))


def test_an_interpreter_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(HostCommandFailed):
        capture_host(LocalTransport(), host(python="/no/such/python"))


@pytest.mark.parametrize(
    "content", [None, b"", b"PK\x03\x04 cut off", b"not an archive"], ids=["missing", "empty", "cut off", "text"]
)
def test_a_file_that_is_not_a_wheel_is_a_usage_error_that_names_it(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "engine.whl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"engine\.whl: "):
        capture_file(path)


def test_a_wheel_or_folder_of_something_else_is_a_usage_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other/__init__.py", "")
    for path in (tmp_path / "other.whl", tmp_path):
        with pytest.raises(UsageError):
            capture_file(path)
