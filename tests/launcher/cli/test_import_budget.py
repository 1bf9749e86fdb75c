"""The modules that a command may import: start-up stays fast when unused modules are not loaded. No test is timed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import CORPUS

LOG = CORPUS
HEAVY = {"paramiko", "httpx", "httpcore", "pydantic", "cryptography", "asyncio", "jsonschema", "numpy"}


def imported(tmp_path: Path, *words: str, whole: bool = False) -> set[str]:
    """Return the modules that a command line has loaded when it ends: their top-level names, or `whole` names."""
    code = (
        "import json, sys\nfrom launcher.cli import app\n"
        "table = app.LAUNCH if sys.argv[1] == 'launch' else app.DIAGNOSE\n"
        "app.run(sys.argv[1], table, sys.argv[2:])\n"
        "sys.stderr.write('\\nMODULES ' + json.dumps(sorted(sys.modules)))\n"
    )
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SGLANG_LAUNCHER_STATE": str(tmp_path / "state")}
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=env, check=False)
    names = json.loads(done.stderr.rpartition("MODULES ")[2])
    return {name if whole else name.partition(".")[0] for name in names}


def test_help_loads_no_command_line_library(tmp_path: Path) -> None:
    assert not imported(tmp_path, "launch", "--help") & (HEAVY | {"typer", "click", "rich", "yaml"})


@pytest.mark.parametrize(
    "words",
    [
        ("launch", "runs"),
        ("launch", "list"),
        ("launch", "engines", "list"),
        ("launch", "explain", "trtllm-moe-on-sm120"),
        ("launch", "baseline", "show"),
        ("launch", "check", "nextn-aggressive", "--engine", "0.5.10", "--json"),
        ("diagnose", "log", "/dev/null", "--json"),
        ("diagnose", "last-crash", "--json"),
        ("diagnose", "unknowns"),
    ],
)
def test_offline_commands_load_no_transport_library(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert not imported(tmp_path, *words) & (HEAVY | {"rich"})


@pytest.mark.parametrize(
    "words",
    [
        ("launch", "check", "nextn-aggressive", "--engine", "0.5.10", "--json"),
        ("launch", "profile", "nextn-aggressive", "--host", "local", "--dry-run"),
        ("diagnose", "log", str(LOG / "0.5.11-h200" / "nextn-nobuf.log"), "--json"),
    ],
)
def test_only_a_trace_loads_the_registry_of_facts(tmp_path: Path, words: tuple[str, ...]) -> None:
    registry = {"checks.facts.names", "checks.facts.origins", "checks.before.rule_trace", "checks.during.trace"}
    assert not imported(tmp_path, *words, whole=True) & registry
    if "--json" in words:
        assert imported(tmp_path, *words, "--trace", "trtllm-moe-on-sm120", whole=True) & registry


def test_a_local_launch_needs_no_ssh(tmp_path: Path) -> None:
    modules = imported(tmp_path, "launch", "profile", "nextn-aggressive", "--host", "local", "--dry-run")
    assert "paramiko" not in modules
