"""Expectations as records: what holds without one, and that zero is one."""

from __future__ import annotations

import pytest

from checks.after.probes.expect import NO_EXPECTATIONS, or_default


@pytest.mark.parametrize(("value", "held"), [(None, 0.05), (0.0, 0.0), (0.2, 0.2)])
def test_zero_is_an_expectation(value: float | None, held: float) -> None:
    assert or_default(value, 0.05) == held


def test_without_a_word_a_server_is_asked_in_chat_by_the_smoke_suite_and_has_an_hour() -> None:
    assert (NO_EXPECTATIONS.suite, NO_EXPECTATIONS.chat, NO_EXPECTATIONS.ready_within) == ("smoke", True, 3600.0)
    assert NO_EXPECTATIONS.soak == 0 and NO_EXPECTATIONS.known_answer == ()
