"""A plan names its secrets and holds none; who asks its server brings the key."""

from __future__ import annotations

import pytest

from launcher.client.endpoint import planned
from launcher.errors import UsageError
from launcher.plan.launch_plan import LaunchPlan
from launcher.transport.local import LocalTransport

PLAN = LaunchPlan(
    profile="p", digest="d", host="local", engine="0.5.23", python="python3", work_dir="~/w",
    flags={"port": "30000"}, env={}, secret_flags={"api-key": "SERVER_KEY"},
)  # fmt: skip


def test_the_engine_s_dry_run_is_given_no_file_that_is_only_there_at_a_launch() -> None:
    assert PLAN.flag_words == ("--port", "30000")
    assert PLAN.argv[3:] == ("--config", "secrets.yaml", "--port", "30000")


def test_the_key_of_a_planned_server_comes_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVER_KEY", raising=False)
    assert planned(LocalTransport(), PLAN).api_key is None
    monkeypatch.setenv("SERVER_KEY", "sk-1")
    assert planned(LocalTransport(), PLAN).api_key == "sk-1"
    monkeypatch.setenv("SERVER_KEY", "sk-1\n")
    with pytest.raises(UsageError, match="SERVER_KEY"):
        planned(LocalTransport(), PLAN)
