"""What a validation starts from: the expectations of a profile, its stored baseline, and the pace of a soak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checks.after.probes.expectations import parse_expect
from launcher.client.endpoint import Endpoint
from launcher.flows.validate.request import Subject, ValidationRequest, request_from
from launcher.run.store import RunStore
from launcher.transport.local import LocalTransport

VALIDATION: dict[str, Any] = {"verdicts": [], "samples": {}}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return RunStore()


def test_a_profile_without_a_baseline_asks_for_none(store: RunStore) -> None:
    request = request_from(parse_expect({"suite": "full"}), store)
    assert (request.suite, request.baseline, request.missing_baseline) == ("full", None, "")


@pytest.mark.parametrize("folder", ["baselines", "repo/profiles/baselines", "repo/baselines"])
def test_the_baseline_is_looked_up_here_and_near_the_profile(store: RunStore, tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "prod.json").write_text(json.dumps(VALIDATION))
    profile = str(tmp_path / "repo/profiles/chat.yaml")
    request = request_from(parse_expect({"baseline": "prod"}), store, profile)
    assert (request.baseline, request.missing_baseline) == (VALIDATION, "")


def test_a_missing_baseline_is_named_and_not_an_error(store: RunStore) -> None:
    request = request_from(parse_expect({"baseline": "prod"}), store)
    assert (request.baseline, request.missing_baseline, request.expect.baseline) == (None, "prod", "prod")


@pytest.mark.parametrize(
    ("soak", "every", "pace"),
    [(600, None, 15.0), (20, None, 5.0), (0, None, 0.0), (600, 2.5, 2.5), (600, 0.0, 0.0)],
)
def test_a_short_soak_has_at_least_four_rounds_unless_the_pace_is_given(
    soak: float, every: float | None, pace: float
) -> None:
    assert ValidationRequest(expect=parse_expect({"soak": soak}), soak_every=every).pace == pace


def test_a_server_counts_as_alive_unless_someone_knows_better() -> None:
    endpoint = Endpoint(LocalTransport(), "127.0.0.1", 1)
    assert not Subject(endpoint=endpoint, transport=LocalTransport()).gone()
    assert Subject(endpoint=endpoint, transport=LocalTransport(), gone=lambda: True).gone()
