"""Every entry of the knowledge has a page that says why, and every name that is listed leads to one."""

from __future__ import annotations

from checks.after.probes.registry import probes
from checks.catalog.entries import entries, entry
from checks.reference.pages import entry_page, page, remedy_line, slugs
from checks.vocabulary import EngineRange, Remedy


def test_every_listed_name_has_a_page_under_its_own_heading() -> None:
    assert [name for name in slugs() if not (page(name) or "").startswith(f"# {name}\n")] == []


def test_nothing_that_has_a_page_is_missing_in_the_list() -> None:
    assert {item.id for item in entries()} | {item.id for item in probes()} == set(slugs())


def test_a_page_of_a_cause_says_why_shows_a_log_and_names_every_remedy() -> None:
    cause = entry("speculation-without-extra-buffer")
    assert cause is not None
    text = entry_page(cause)
    assert cause.why in text
    assert "## Example" in text
    assert [item for item in cause.remedies if remedy_line(item) not in text] == []


def test_a_page_of_a_probe_says_what_it_proves() -> None:
    text = page("needle") or ""
    assert "Suites: full. Proves: correct." in text


def test_an_unknown_name_has_no_page() -> None:
    assert page("no-such-thing") is None


def test_a_remedy_is_one_line_with_all_its_parts() -> None:
    remedy = Remedy(
        text="Do it.", set={"tp-size": "2", "trust-remote-code": True}, unset=["page-size"],  # type: ignore[arg-type]
        env={"A": "1"}, engine=EngineRange("<0.5.14"),
    )  # fmt: skip
    assert remedy_line(remedy) == (
        "Do it. — set `tp-size` to `2`; set `trust-remote-code` to `true`; remove `page-size`; export `A=1` (<0.5.14)"
    )
