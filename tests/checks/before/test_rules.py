"""52 launches through the argument resolution of 16 releases, as the engines themselves judged them.

`tests/data/replay.json` holds what each release's own code said with GPU facts mocked: `.` accepted, `A`
AssertionError, `V` ValueError, `2` usage error, `O` OSError because the draft path does not exist. The first two
launches are the day this project started from.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from checks.before.rules import check, fill
from checks.catalog import entries
from checks.facts.launch_evidence import from_case
from checks.vocabulary import Severity
from tests.support.paths import DATA

REPLAY = json.loads((DATA / "replay.json").read_text())
VERSIONS: list[str] = REPLAY["versions"]

TRIPLE = "speculative-triple-incomplete"
BUFFER = "speculation-without-extra-buffer"
USAGE = ("flag-removed-or-renamed", "flag-unknown-to-engine", "flag-abbreviation-ambiguous", "flag-value-not-a-choice")
WANTED: dict[str, dict[str, tuple[str, ...]]] = {
    "seed1_as_msg5980": {"A": (TRIPLE,), "V": (BUFFER,)},
    "seed2_as_msg5983_extra_buffer": {"A": (TRIPLE,), "2": USAGE},
}
# Refused by every release with a clear text; the engine's own dry run reports them, no rule of ours does.
LEFT_TO_THE_ENGINE = ("lora_no_rank", "served_name_colon", "deterministic_bad")


def verdicts(name: str) -> list[tuple[str, str, str]]:
    said = REPLAY["cases"][name]["verdicts"]
    return [(name, version, verdict) for version, verdict in zip(VERSIONS, said, strict=True)]


def cells(*names: str) -> list[Any]:
    return [pytest.param(*cell, id=f"{cell[0]}-{cell[1]}") for name in names for cell in verdicts(name)]


@pytest.mark.parametrize(("name", "version", "verdict"), cells(*WANTED))
def test_the_two_launches_of_the_day_are_refused_for_the_reason_of_that_release(
    name: str, version: str, verdict: str
) -> None:
    wanted = WANTED[name][verdict]
    assert errors(name, version) & set(wanted), f"{version} says {verdict}"


@pytest.mark.parametrize("name", sorted(REPLAY["cases"].keys() - set(LEFT_TO_THE_ENGINE)))
def test_what_a_release_refuses_is_found(name: str) -> None:
    missed = [version for _, version, verdict in verdicts(name) if verdict in "AV2" and not errors(name, version)]
    assert missed == []


@pytest.mark.parametrize("name", sorted(REPLAY["cases"]))
def test_what_a_release_accepts_is_not_called_refused(name: str) -> None:
    """Errors of later phases are allowed: such launches pass the arguments and fail afterwards."""
    wrong = {
        version: found
        for _, version, verdict in verdicts(name)
        if verdict == "." and (found := errors(name, version) & refusals())
    }
    assert wrong == {}


def test_only_one_of_the_seven_variants_is_accepted_by_every_release() -> None:
    """No profile is right for all releases: only switching the radix cache off passes everywhere."""
    variants = [name for name in REPLAY["cases"] if name.startswith("seed") and name != "seed0_baseline_nospec"]
    accepted = [name for name in variants if not any(errors(name, version) & refusals() for version in VERSIONS)]
    assert accepted == ["seed7_disable_radix"]


@cache
def errors(name: str, version: str) -> frozenset[str]:
    case = REPLAY["cases"][name]
    launch = {"engine_version": version, **REPLAY["settings"][case["setting"]], "flags": case["flags"]}
    found = check(from_case({**launch, "env": case.get("env", {})}))
    return frozenset(finding.id for finding in found if finding.severity is Severity.ERROR)


@cache
def refusals() -> frozenset[str]:
    """Causes that show while arguments are resolved; fa3 passes there and is asserted in the scheduler."""
    return frozenset(entry.id for entry in entries.entries() if entry.phase == "args") - {"fa3-off-hopper"}


def test_a_message_names_an_unknown_release_in_words_and_marks_other_unknown_facts() -> None:
    facts = {"engine.version": None, "host.sm": 90, "host.name": None}
    assert fill("{host.sm} in {engine.version}", facts) == "90 in this release"
    assert fill("{host.name}, {host.gpu_name}", facts) == "?, ?"
    assert fill("SGLang {engine.version}", {"engine.version": "0.5.9"}) == "SGLang 0.5.9"
