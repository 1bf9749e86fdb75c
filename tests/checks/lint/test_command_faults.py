"""Commands of remedies that the lint must report, and commands that it must let pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.catalog.entries import load
from checks.catalog.yaml_reader import YamlError
from checks.lint.command_faults import commands_are_commands


def faults(root: Path, remedy: str) -> list[str]:
    folder = root / "causes" / "one"
    folder.mkdir(parents=True)
    (folder / "cause.yaml").write_text(f"title: t\nwhy: w\nremedies:\n  - text: x\n{remedy}")
    return list(commands_are_commands(load(folder)))


@pytest.mark.parametrize(
    "remedy",
    [
        "    run: apt-get install gcc python3-dev\n",
        "    run: pip install --upgrade flashinfer-python && rm -rf ~/.cache/flashinfer\n",
        "    run: /opt/venv/bin/python -m pip install ninja\n",
        "    inspect: dmesg -T | grep -i -e oom -e killed\n",
        '    inspect: python3 -c "import torch; print(torch.version.cuda, torch.cuda.get_arch_list())"\n',
        "    inspect: ls -l <model directory>\n",
        "    require: {torch: '==2.9.1', 'nvidia-cutlass-dsl[cu13]': ''}\n",
        "    require: {flashinfer-python: '>=0.6.12,!=0.6.14'}\n",
        "    require: {torch: '=={package.torch.pin}', sglang: '~={engine.version}'}\n",
        "",
    ],
)
def test_a_command_passes(tmp_path: Path, remedy: str) -> None:
    assert faults(tmp_path, remedy) == []


@pytest.mark.parametrize(
    ("remedy", "fault"),
    [
        ("    run: newer flashinfer-python with the fix\n", "starts with `newer`, which is not a known program"),
        ("    inspect: events of the orchestrator\n", "starts with `events`"),
        ("    run: flashinfer-python >= 0.6.14\n", "starts with `flashinfer-python`"),
        ("    run: apt-get install libnuma1 (RHEL numactl-libs)\n", "reads like prose at `(`"),
        ("    run: pip install ninja or apt-get install ninja-build\n", "reads like prose at `or`"),
        ("    inspect: dmesg -T, and the shell history\n", "reads like prose at `,`"),
        ("    run: pip install <the package>\n", "contains the placeholder <the package>"),
        ("    run: pip install {package}\n", "contains the placeholder {package}"),
        ("    require: {torch: newer}\n", "is not a requirement"),
        ("    require: {torch: '2.9.1'}\n", "is not a requirement"),
        ("    require: {torch: '==<pin of the release>'}\n", "is not a requirement"),
    ],
)
def test_prose_is_reported(tmp_path: Path, remedy: str, fault: str) -> None:
    [only] = faults(tmp_path, remedy)
    assert fault in only


@pytest.mark.parametrize(
    "remedy", ["    run: pip check\n    inspect: pip check\n", "    run: pip check\n    require: {a: ''}\n"]
)
def test_two_commands_in_one_remedy_are_refused(tmp_path: Path, remedy: str) -> None:
    with pytest.raises(YamlError, match=r"cause\.yaml:4:\d+: `run` and `\w+` in one remedy"):
        faults(tmp_path, remedy)


def test_the_old_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match="unknown key `install`"):
        faults(tmp_path, "    install: pip install x\n")
