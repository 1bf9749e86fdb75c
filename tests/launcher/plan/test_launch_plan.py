"""A plan names its secrets without their values; a request to its server takes the key from the environment."""

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


def test_flag_words_omit_the_secrets_file_that_exists_only_during_a_launch() -> None:
    assert PLAN.flag_words == ("--port", "30000")
    assert PLAN.argv[3:] == ("--config", "secrets.yaml", "--port", "30000")


def test_the_key_of_a_planned_server_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVER_KEY", raising=False)
    assert planned(LocalTransport(), PLAN).api_key is None
    monkeypatch.setenv("SERVER_KEY", "sk-1")
    assert planned(LocalTransport(), PLAN).api_key == "sk-1"
    monkeypatch.setenv("SERVER_KEY", "sk-1\n")
    with pytest.raises(UsageError, match="SERVER_KEY"):
        planned(LocalTransport(), PLAN)
