"""What a validation takes from a log, and that reading a log loads neither HTTP nor SSH."""

from __future__ import annotations

import subprocess
import sys

import pytest

from launcher.flows.diagnose.log_view import LogView


def test_the_view_of_a_log_that_does_not_exist_is_empty() -> None:
    assert (LogView().ledger, LogView().decode) == ((), ())


@pytest.mark.parametrize("module", ["log_view", "run_diagnosis"])
def test_a_log_is_read_without_loading_http_or_ssh(module: str) -> None:
    code = f"import launcher.flows.diagnose.{module}, sys; print({{'httpx', 'paramiko', 'typer'}} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "set()"
