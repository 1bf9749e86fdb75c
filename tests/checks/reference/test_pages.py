"""Pages of entries and probes: every part that an entry has, in order, and nothing of what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.after.probes.registry import probes
from checks.catalog.entries import load
from checks.reference.pages import entry_page, page, remedy_line, slugs
from checks.vocabulary import EngineRange, FlagValue, Remedy

CAUSE = """\
title: Alpha does not fit
why: Because of its size.
engine: '>=0.5.4'
phase: memory
family: size
before:
  - {when: {flag.x: '1'}, severity: error, message: too large, engine: '<0.5.20'}
  - {when: {flag.x: '2'}, severity: info, message: large}
during:
  - {all: ['^Error: a'], anywhere: [b], engine: '>=0.5.10'}
  - {when: {observed.kind: hang}}
remedies:
  - {text: Use less., set: {tp-size: '2'}}
references: [https://example.org/1]
"""


def written(root: Path, text: str, place: str = "causes/alpha") -> Path:
    folder = root / place
    folder.mkdir(parents=True)
    (folder / ("sign.yaml" if "role:" in text else "cause.yaml")).write_text(text)
    return folder


def test_the_page_of_a_cause_has_every_part_in_order(tmp_path: Path) -> None:
    folder = written(tmp_path, CAUSE)
    (folder / "match-two.log").write_text("second")
    (folder / "match-one.log").write_text("x" * 3000 + "\nError: a\n\n")
    assert entry_page(load(folder)) == (
        "# alpha\n\nAlpha does not fit\n\n*cause: engine >=0.5.4, phase memory, family size*\n\n"
        "Because of its size.\n\n"
        "## Before the launch\n\n- **error** (<0.5.20): too large\n- **info**: large\n\n"
        "## In the log\n\n- `^Error: a` (>=0.5.10)\n- `b` (>=0.5.10)\n\n"
        "## Remedies\n\n- Use less. — set `tp-size` to `2`\n\n"
        f"## Example\n\n```text\n{'x' * 1489}\nError: a\n```\n\n"
        "## References\n\n- https://example.org/1\n"
    )


def test_a_page_leaves_out_what_an_entry_lacks(tmp_path: Path) -> None:
    assert entry_page(load(written(tmp_path, "title: t\n"))) == "# alpha\n\nt\n\n*cause: every release*\n"
    seen = "title: t\nduring: [{when: {observed.kind: hang}}]\n"
    assert "In the log" not in entry_page(load(written(tmp_path, seen, "causes/seen")))


def test_the_page_of_a_warning_says_what_clears_it(tmp_path: Path) -> None:
    text = "role: ledger\ntitle: t\nduring: [{all: [x]}]\ncleared-by: [needle, prose]\n"
    found = entry_page(load(written(tmp_path, text, "signs/odd")))
    assert found.startswith("# odd\n\nt\n\n*ledger: every release*")
    assert found.endswith("## Cleared by\n\n- needle\n- prose\n")


def test_at_most_twelve_patterns_are_shown(tmp_path: Path) -> None:
    text = f"title: t\nduring: [{{all: [{', '.join(f'word{number}' for number in range(20))}]}}]\n"
    assert entry_page(load(written(tmp_path, text))).count("- `word") == 12


@pytest.mark.parametrize(
    ("remedy", "line"),
    [
        (Remedy(text="Do it."), "Do it."),
        (Remedy(set={"tp-size": "2"}), "set `tp-size` to `2`"),
        (Remedy(text="Do it.", set={"tp-size": "2"}), "Do it. — set `tp-size` to `2`"),
        (Remedy(unset=("a", "b")), "remove `a`; remove `b`"),
        (Remedy(env={"A": "1"}, unset_env=("B",)), "export `A=1`; unset variable `B`"),
        (Remedy(upgrade={"sglang": ">=0.5.8"}), "upgrade `sglang` to `>=0.5.8`"),
        (Remedy(text="Do it.", engine=EngineRange("<0.6")), "Do it. (<0.6)"),
        (Remedy(set={"a": "1"}, engine=EngineRange("<0.6")), "set `a` to `1` (<0.6)"),
    ],
)
def test_a_remedy_is_one_line(remedy: Remedy, line: str) -> None:
    assert remedy_line(remedy) == line


@pytest.mark.parametrize(("value", "shown"), [("x", "x"), (True, "true"), (False, "false"), (["1", "2"], "1 2")])
def test_a_value_is_shown_as_it_is_typed(value: FlagValue, shown: str) -> None:
    assert remedy_line(Remedy(set={"a": value})) == f"set `a` to `{shown}`"


def test_every_name_has_a_page_that_begins_with_it() -> None:
    names = slugs()
    assert len(names) == len(set(names)) > 200 and list(names) == sorted(names)
    for name in (*names[::25], *(probe.id for probe in probes()[:3])):
        found = page(name)
        assert found is not None and found.startswith(f"# {name}\n\n")


def test_the_page_of_a_probe_says_what_it_asks_and_proves() -> None:
    probe = next(item for item in probes() if item.id == "needle")
    assert page("needle") == f"# needle\n\n{probe.title}\n\n{probe.why}\n\nSuites: full. Proves: correct.\n"


@pytest.mark.parametrize("name", ["nobody", "", "..", "causes/alpha"])
def test_what_is_no_entry_has_no_page(name: str) -> None:
    assert page(name) is None
