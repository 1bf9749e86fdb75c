"""The paths of a launch are judged as the engine will find them; nothing is written while looking."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from launcher.hostside.launch_paths import adapter, launch_paths, unreadable, unwritable


def safetensors(path: Path, shapes: dict[str, list[int]]) -> None:
    table = {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    header = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def test_a_path_to_read_is_there_or_says_why_not(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    (tmp_path / "dead").symlink_to(tmp_path / "gone")
    (tmp_path / "bad.json").write_text("{not")
    (tmp_path / "good.json").write_text("{}")
    assert unreadable(str(tmp_path / "there")) is None
    assert unreadable(str(tmp_path)) is None
    assert unreadable(str(tmp_path / "good.json")) is None
    assert unreadable(str(tmp_path / "none")) == "does not exist"
    assert unreadable(str(tmp_path / "dead")) == "is a link to nothing"
    assert (unreadable(str(tmp_path / "bad.json")) or "").startswith("is not JSON: ")


def test_a_folder_to_write_is_judged_by_its_nearest_parent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert unwritable(str(tmp_path)) is None
    assert unwritable(str(tmp_path / "new" / "deep")) is None
    assert unwritable(str(tmp_path / "file")) == "is a file"
    assert unwritable(str(tmp_path / "file" / "x")) == f"cannot be made: {tmp_path}/file is not a folder"
    assert unwritable("/proc/nope") == "cannot be made in /proc"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_the_rights_of_the_user_count(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    assert unreadable(str(closed)) == "cannot be read by this user"
    assert unwritable(str(closed)) == "cannot be written by this user"


def test_an_adapter_is_read_without_its_weights(tmp_path: Path) -> None:
    assert adapter(str(tmp_path / "none")) == {"fault": "does not exist"}
    assert adapter(str(tmp_path)) == {"fault": "has no adapter_config.json"}
    (tmp_path / "adapter_config.json").write_text("[")
    assert adapter(str(tmp_path)) == {"fault": "has an unreadable adapter_config.json"}
    config = {"r": 8, "target_modules": ["q_proj"], "secret": 1}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    assert adapter(str(tmp_path))["fault"] == "has no weights"
    place = "base.layers.0.self_attn.q_proj"
    shapes = {f"{place}.lora_A.weight": [8, 256], f"{place}.lora_B.weight": [256, 8]}
    safetensors(tmp_path / "adapter_model.safetensors", shapes)
    assert adapter(str(tmp_path)) == {
        "fault": None,
        "config": {"r": 8, "target_modules": ["q_proj"]},
        "in_features": {"q_proj": 256},
    }


def test_relative_paths_are_meant_from_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("x")
    wanted = {"read": {"--chat-template": "./t.jinja"}, "written": {"TMPDIR": "new"}, "adapters": {"a": "./none"}}
    assert launch_paths(wanted, str(tmp_path)) == {
        "read": {"--chat-template": None},
        "written": {"TMPDIR": None},
        "adapters": {"a": {"fault": "does not exist"}},
    }
    assert launch_paths({}, str(tmp_path)) == {"read": {}, "written": {}, "adapters": {}}
