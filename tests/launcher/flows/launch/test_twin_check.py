"""What the twin answers becomes findings: a refusal with its cause, changed values, or that it could not decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.facts.launch_evidence import Launch
from checks.vocabulary import Finding, Origin, Severity
from launcher.flows.launch import twin_check as module
from launcher.flows.launch.twin_check import Asked, available, twin_check
from launcher.transport.local import LocalTransport
from tests.support.small_release import small_release

RAW = {
    "host": {},
    "gpus": [{"name": "NVIDIA H100", "memory.total": "81559 MiB", "compute_cap": "9.0"}],
    "model": {"path": "/data/m", "config": {"model_type": "llama"}},
}


@pytest.fixture(autouse=True)
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, environment = small_release(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module.release_store, "stored", lambda version: release if version == "0.5.11" else None)
    monkeypatch.setattr(module.twin_environment, "existing", lambda _: environment)


def findings(raw: dict[str, Any] | None = RAW, **flags: Any) -> tuple[Finding, ...]:
    launch = Launch(engine="0.5.11", flags={"model-path": "/data/m", **flags})
    asked = Asked(name="p", launch=launch, flags=launch.flags, raw=raw)
    return twin_check(LocalTransport(), "0.5.11", [asked])["p"]


def test_an_accepted_launch_has_only_the_values_that_were_replaced() -> None:
    assert findings() == ()
    [changed] = findings(backend="auto")
    assert (changed.id, changed.severity) == ("flag-changed-by-engine", Severity.INFO)
    assert "`--backend auto` to `fa3`" in changed.message


def test_a_refusal_is_an_error_of_the_engine() -> None:
    [refusal] = findings(backend="trtllm")
    assert (refusal.id, refusal.severity, refusal.origin) == (
        "engine-refuses-arguments",
        Severity.ERROR,
        Origin.ENGINE,
    )
    assert "trtllm needs SM100" in refusal.message
    assert "self.backend == 'trtllm'" in refusal.why


def test_a_refusal_by_the_parser_has_the_known_cause() -> None:
    [refusal] = findings(backend="banana")
    assert refusal.id == "flag-value-not-a-choice"


def test_what_could_not_be_decided_is_no_pass() -> None:
    [undecided] = findings(act="connect")
    assert (undecided.id, undecided.severity) == ("twin-undecided", Severity.INFO)
    assert "opens a connection" in undecided.message
    [undecided] = findings({**RAW, "model": {}})
    assert "the facts lack config.json of /data/m" in undecided.message


def test_a_host_without_known_gpus_is_not_simulated_as_one_without_gpus() -> None:
    [undecided] = findings({**RAW, "gpus": []}, backend="trtllm")
    assert (undecided.id, undecided.severity) == ("twin-undecided", Severity.INFO)
    assert "the facts lack the GPUs" in undecided.message


def test_a_release_that_was_not_fetched_is_not_asked() -> None:
    assert available("0.5.11")
    assert not available("0.5.12")
    assert twin_check(LocalTransport(), "0.5.12", []) == {}
