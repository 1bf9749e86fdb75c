"""hosts.yaml becomes typed records; an invalid entry does not affect the other entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.errors import ProfileError
from launcher.transport.hosts_file import DEFAULT_WORK_DIR, HostsFile

TEXT = """\
hosts:
  gpu-box:
    address: '[fd00::7]'
    python: /opt/venv/bin/python
    env: {HF_HOME: /models, CUDA_HOME: /opt/own}
    cuda_home: /usr/local/cuda-13
    engine: 0.5.12
    facts: facts/gpu-box.json
  with-cuda: {cuda_home: /usr/local/cuda-13}
  bare:
  broken: {pyhton: x}
"""


@pytest.fixture
def hosts(tmp_path: Path) -> HostsFile:
    (tmp_path / "hosts.yaml").write_text(TEXT)
    return HostsFile(tmp_path / "hosts.yaml")


def test_an_entry_is_a_record_with_the_position_of_each_key(hosts: HostsFile) -> None:
    entry = hosts.entry("gpu-box")
    assert entry is not None
    assert (entry.address, entry.python, entry.engine, entry.facts) == (
        "fd00::7", "/opt/venv/bin/python", "0.5.12", Path("facts/gpu-box.json"),
    )  # fmt: skip
    assert entry.where.endswith("hosts.yaml:3:5") and entry.places["engine"].endswith("hosts.yaml:7:5")


def test_cuda_home_sets_the_variable_unless_env_sets_it(hosts: HostsFile) -> None:
    with_cuda, both = hosts.entry("with-cuda"), hosts.entry("gpu-box")
    assert with_cuda is not None and with_cuda.env == {"CUDA_HOME": "/usr/local/cuda-13"}
    assert both is not None and both.env == {"HF_HOME": "/models", "CUDA_HOME": "/opt/own"}


def test_an_entry_without_keys_has_defaults_and_an_unknown_name_has_no_entry(hosts: HostsFile) -> None:
    bare = hosts.entry("bare")
    assert bare is not None and (bare.work_dir, bare.python, dict(bare.env)) == (DEFAULT_WORK_DIR, "", {})
    assert hosts.entry("nobody") is None
    assert hosts.names == ("gpu-box", "with-cuda", "bare", "broken")


def test_an_invalid_entry_does_not_affect_the_others(hosts: HostsFile) -> None:
    with pytest.raises(ProfileError, match="pyhton") as caught:
        hosts.entry("broken")
    assert caught.value.where.endswith("hosts.yaml:11:12")
    assert hosts.entry("gpu-box") is not None
