"""The program as one text: it runs on a bare interpreter, and contains every module of the package in import order."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from checks.engine.source.program import describe
from checks.engine.source.remote_program import MODULES, program_text
from checks.engine.source.tree import from_root
from tests.support.paths import ROOT

FOLDER = ROOT / "checks" / "engine" / "source"
SOURCE = """
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--port", type=int, default=30000, help="A port.")
"""


def test_the_bundled_program_runs_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "srt").mkdir()
    (tmp_path / "srt" / "server_args.py").write_text(SOURCE)
    command = [sys.executable, "-I", "-", "--root", str(tmp_path)]
    done = subprocess.run(command, input=program_text(), capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout)["arguments"] == describe(from_root(str(tmp_path)))["arguments"]


def test_the_program_text_reports_a_missing_engine_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-", "--root", str(tmp_path)]
    done = subprocess.run(command, input=program_text(), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no srt/server_args.py" in done.stderr


def test_every_module_of_the_folder_travels_after_those_it_imports() -> None:
    here = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "remote_program"}
    assert set(MODULES) == here
    for place, name in enumerate(MODULES):
        module = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
        needed = {
            (node.module or "").rpartition(".")[2] for node in ast.walk(module) if isinstance(node, ast.ImportFrom)
        }
        assert needed & here <= set(MODULES[:place]), name


def test_the_program_is_one_small_text_of_the_oldest_python_that_hosts_have() -> None:
    text = program_text()
    assert len(text) < 100_000
    ast.parse(text, feature_version=(3, 9))
    for name in MODULES:
        ast.parse((FOLDER / f"{name}.py").read_text("utf-8"), feature_version=(3, 9))
