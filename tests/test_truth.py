"""`make truth` draws repeatable launches that an engine can be asked about, and counts each disagreement as one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from checks.engine.flag_schema import load
from launcher.profile.resolve import resolve
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def truth() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import truth

        yield truth
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def drawn(truth: ModuleType) -> list[Any]:
    profiles = [resolve(name, [ROOT / "profiles"]) for name in ("nextn-aggressive", "smollm2-135m-cpu")]
    result: list[Any] = truth.draw(load("0.5.23"), profiles, 7, 500)
    return result


def test_a_seed_makes_a_draw_repeatable(truth: ModuleType, drawn: list[Any]) -> None:
    profiles = [resolve(name, [ROOT / "profiles"]) for name in ("nextn-aggressive", "smollm2-135m-cpu")]
    assert truth.draw(load("0.5.23"), profiles, 7, 500) == drawn
    assert truth.draw(load("0.5.23"), profiles, 8, 500) != drawn


def test_every_kind_is_drawn_and_every_flag_comes_once_before_any_comes_twice(drawn: list[Any]) -> None:
    assert Counter(item.kind for item in drawn) == {"odd": 200, "pair": 200, "mutation": 100}
    odd = [next(iter(item.flags)) for item in drawn if item.kind == "odd"]
    assert len(set(odd)) == len(odd)


def test_no_launch_moves_the_server_or_its_files(drawn: list[Any]) -> None:
    moved = {"port", "host", "model-path", "device", "log-requests-target"}
    assert not any(moved & set(item.flags) for item in drawn)
    schema = load("0.5.23")
    misspelt = [name for item in drawn for name in item.flags if schema.find(name).flag is None]
    assert 0 < len(misspelt) < 40


@pytest.mark.parametrize(
    ("told", "real", "verdicts"),
    [
        ({"errors": ("x",)}, {"arguments": "refused"}, {"fails", "foreseen"}),
        ({"twin": "refused"}, {"arguments": "refused"}, {"fails", "foreseen"}),
        ({"twin": "accepted"}, {"arguments": "usage"}, {"fails", "fails unforeseen", "twin differs"}),
        ({"twin": "refused"}, {"arguments": "accepted"}, {"twin differs", "unproven"}),
        ({"errors": ("x",)}, {"arguments": "accepted", "start": "ready"}, {"refused although it works"}),
        ({"errors": ("x",)}, {"arguments": "accepted", "start": "crashed"}, {"fails", "foreseen"}),
        ({}, {"arguments": "accepted", "start": "crashed"}, {"fails", "fails unforeseen"}),
        ({"twin": "accepted"}, {"arguments": "accepted", "start": "ready"}, set()),
        ({"twin": "unknown"}, {"arguments": "accepted", "start": "undecided"}, {"unproven"}),
    ],
)
def test_each_outcome_has_its_verdict(
    truth: ModuleType, drawn: list[Any], told: dict[str, Any], real: dict[str, Any], verdicts: set[str]
) -> None:
    answered = truth.Answered(draw=drawn[0], **told, **real)
    assert {name for name, holds in truth.verdicts(answered) if holds} == verdicts
    counted = truth.table([answered])
    wrong = verdicts & {"fails unforeseen", "refused although it works", "twin differs"}
    assert counted.count("\n- ") == len(wrong)


def test_a_launch_changes_the_base_profile(truth: ModuleType, drawn: list[Any]) -> None:
    profile = resolve("smollm2-135m-cpu", [ROOT / "profiles"])
    bench = truth.Bench(profile=profile, python="python3", raw={"host": {"home": "/home/x"}})
    flags = bench.flags(truth.Draw(name="a", kind="odd", flags={"context-length": "0"}, note=""))
    assert flags["context-length"] == "0"
    assert str(flags["model-path"]).startswith("/home/x/")
    assert "--context-length" in truth.words(flags)
