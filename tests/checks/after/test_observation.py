"""The failed probes of a validation are one observation, the most telling one."""

from __future__ import annotations

from typing import Any

import pytest

from checks import KNOWLEDGE
from checks.after.observation import _KINDS, observed_kind
from checks.suspects.plan import understood


def verdict(probe: str, outcome: str = "fail", **figures: Any) -> dict[str, Any]:
    return {"id": probe, "outcome": outcome, "figures": figures}


@pytest.mark.parametrize(
    ("verdicts", "kind"),
    [
        ([verdict("known-answer", kind="loop"), verdict("speed")], "repeated-token"),
        ([verdict("speed"), verdict("prose")], "garbled"),
        ([verdict("accuracy-word-problems")], "accuracy-drop"),
        ([verdict("speed"), verdict("tool-call")], "tool-call-unparsed"),
        ([verdict("speed", "inconclusive"), verdict("prose", "pass"), verdict("health", "skip")], ""),
        ([verdict("a-probe-of-somebody")], ""),
        ([{}], ""),
        ([], ""),
    ],
)
def test_the_most_telling_failure_is_the_observation(verdicts: list[dict[str, Any]], kind: str) -> None:
    assert observed_kind(verdicts) == kind


@pytest.mark.parametrize(("probe", "kind"), _KINDS)
def test_each_row_names_probes_and_a_kind_that_a_plan_understands(probe: str, kind: str) -> None:
    assert understood(kind)
    assert any(path.stem.startswith(probe) for path in (KNOWLEDGE / "probes").glob("*.yaml"))
