"""A profile's expectations are checked before the launch starts, and every stage counts in one validation."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from checks.after.probes.expectations import parse_expect
from checks.after.slow_paths import decode_lines
from checks.after.validation import Level, as_dict
from checks.vocabulary import Evidence, Match, Outcome, Role, Verdict
from launcher.client.endpoint import Endpoint
from launcher.client.server_info import read_server_info
from launcher.flows.diagnose.log_view import LogView
from launcher.flows.validate.prove import prove
from launcher.flows.validate.request import Subject, ValidationRequest, request_from
from launcher.run.store import RunStore
from launcher.transport.local import LocalTransport
from tests.support.fake_clock import FakeClock
from tests.support.fake_server import serving
from tests.support.validating import LENIENT, requested, run

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
BARE = b"[2026-11-29 16:46:19] Decode batch, #running-req: 1, #token: 5, cuda graph: False, gen throughput\n" * 9


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path / "state"))
    return RunStore()


def proved(
    request: ValidationRequest, *faults: str, reported: list[Verdict] | None = None, **fields: Any
) -> dict[str, Verdict]:
    """The verdicts by id; under the empty id, the outcome and level of the whole validation."""
    inform = (reported if reported is not None else []).append
    with serving(*faults) as (port, _):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        subject = Subject(
            endpoint=endpoint, transport=LocalTransport(), host="127.0.0.1", port=port,
            info=read_server_info(endpoint), **fields,
        )  # fmt: skip
        validation = prove(subject, request, FakeClock(NOW), inform)
        endpoint.close()
    whole = Verdict(id="", outcome=validation.outcome, message=validation.level)
    return {item.id: item for item in validation.verdicts} | {"": whole}


def test_expectations_for_the_launcher_are_parsed_and_do_not_disturb_the_probes(store: RunStore) -> None:
    request = request_from(parse_expect({"ready-within": 60, "soak": "10m", "timeout": 5}), store)
    assert (request.suite, request.expect.soak, request.expect.timeout) == ("smoke", 600.0, 5)
    assert proved(replace(request, expect=replace(request.expect, soak=0.0)))[""].outcome is Outcome.PASS


def test_a_baseline_of_the_profile_s_own_repository_is_used(store: RunStore, tmp_path: Path) -> None:
    validation, _ = run(suite="standard")
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "prod.json").write_text(json.dumps(as_dict(validation)))
    expect = parse_expect({"suite": "standard", "baseline": "prod", **LENIENT})
    verdicts = proved(request_from(expect, store, str(tmp_path / "profiles" / "p.yaml")))
    assert verdicts["greedy-baseline"].outcome is Outcome.PASS
    assert "against the baseline" in verdicts["accuracy-word-problems"].message


def test_a_baseline_that_does_not_exist_yet_is_not_a_pass(store: RunStore) -> None:
    verdicts = proved(request_from(parse_expect({"baseline": "prod", **LENIENT}), store))
    assert verdicts["baseline"].outcome is Outcome.INCONCLUSIVE
    assert "launch baseline save RUN prod" in verdicts["baseline"].message
    assert verdicts[""].outcome is Outcome.INCONCLUSIVE
    assert verdicts[""].message == Level.CORRECT  # the level does not depend on the baseline


def test_a_soak_follows_a_pass_and_reports_only_failures_and_its_final_verdict() -> None:
    reported: list[Verdict] = []
    verdicts = proved(requested({**LENIENT, "soak": 60}), reported=reported)
    assert verdicts["soak"].outcome is Outcome.PASS
    assert verdicts["soak"].figures["rounds"] == 5
    assert reported[-1].id == "soak"
    assert "pulse" not in [item.id for item in reported]


def test_a_server_that_failed_is_not_soaked() -> None:
    assert "soak" not in proved(requested({**LENIENT, "soak": 60}), "bangs")


def test_slow_decoding_in_the_log_is_named_in_the_speed_verdict() -> None:
    view = LogView(decode=decode_lines([BARE]))
    skip = [f"accuracy-{name}" for name in ("word-problems", "general-knowledge")]
    request = requested({**LENIENT, "suite": "standard", "skip": skip})
    reported: list[Verdict] = []
    speed = proved(request, read_log=lambda: view, reported=reported)["speed"]
    assert speed.outcome is Outcome.INCONCLUSIVE
    assert [item for item in reported if item.id == "speed"] == [speed]  # reported once, in its final form
    assert "9 of 9 decode lines report `cuda graph: False`" in speed.message


def test_warnings_that_the_probes_caused_are_in_the_ledger() -> None:
    late = Match(
        id="fp8-cache-with-default-scales", role=Role.LEDGER, title="FP8", evidence=(Evidence(text="x", line=9),)
    )
    verdicts = proved(requested(), read_log=lambda: LogView(ledger=(late,)))
    assert verdicts[""].outcome is Outcome.INCONCLUSIVE
    assert verdicts[""].message == Level.READY
