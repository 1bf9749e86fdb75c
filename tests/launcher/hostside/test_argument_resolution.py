"""A refusal is reported with the statement that raised it and the conditions around that statement."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from launcher.hostside.argument_resolution import EngineWarnings, error_report, json_values, resolve

CODE = """
import logging
class Record:
    def __init__(self, argv):
        self.argv, self.port, self.admin_api_key = argv, 1, "secret"
    def check_server_args(self):
        logging.getLogger("engine").warning("port %d is odd", self.port)
        if self.port:
            assert "refuse" not in self.argv
def prepare_server_args(argv):
    return Record(argv)
"""


def engine(folder: Path) -> ModuleType:
    file = folder / "sglang" / "server_args.py"
    file.parent.mkdir()
    file.write_text(CODE)
    spec = importlib.util.spec_from_file_location("server_args_of_a_test", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_resolved_arguments_come_with_the_warnings_of_their_checks(tmp_path: Path) -> None:
    warnings = EngineWarnings()
    resolved = resolve(engine(tmp_path), ["--x"], warnings)
    logging.getLogger().removeHandler(warnings)
    assert resolved["argv"] == ["--x"]
    assert warnings.lines == ["port 1 is odd"] * len(warnings.lines)
    assert json_values({**resolved, "odd": object}) == {"argv": ["--x"], "port": 1, "odd": "<class 'object'>"}


def test_an_assertion_without_text_is_reported_with_its_condition(tmp_path: Path) -> None:
    module, warnings = engine(tmp_path), EngineWarnings()
    with pytest.raises(AssertionError) as caught:
        resolve(module, ["refuse"], warnings)
    logging.getLogger().removeHandler(warnings)
    report: dict[str, Any] = error_report(caught.value)
    assert report["exception"] == "AssertionError"
    assert report["frame"] == "server_args.py:9 in check_server_args"
    assert report["condition"] == "self.port and assert 'refuse' not in self.argv"
