"""Parameters of a probe as its script reads them: of their type, with a default, or missed by name."""

from __future__ import annotations

import pytest

from checks.after.probes.entry import Probe


def probe(**params: object) -> Probe:
    return Probe(id="p", title="t", why="w", kind="k", level="ready", suites=("smoke",), params=params)


def test_a_parameter_is_read_in_the_type_that_is_asked_for() -> None:
    found = probe(word=8, share="0.5", count=2.0)
    assert (found.text("word"), found.number("share"), found.count("count")) == ("8", 0.5, 2)
    assert isinstance(found.count("count"), int)


def test_a_default_stands_in_only_for_what_is_missing() -> None:
    assert (probe().text("a", "x"), probe().number("a", 0.5), probe().count("a", 3)) == ("x", 0.5, 3)
    assert (probe(a="y").text("a", "x"), probe(a=0).number("a", 0.5), probe(a=0).count("a", 3)) == ("y", 0.0, 0)


def test_a_parameter_that_must_be_there_is_missed_by_its_name() -> None:
    for read in (Probe.text, Probe.number, Probe.count):
        with pytest.raises(KeyError, match="tokens"):
            read(probe(), "tokens")


def test_a_probe_shares_the_machine_and_clears_nothing_unless_it_says_so() -> None:
    assert (probe().alone, probe().clears) == (False, ())
