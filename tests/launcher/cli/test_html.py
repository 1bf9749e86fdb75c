"""The HTML report is complete, runs no code, and is well-formed whatever text a model returns."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from checks.after.validation import LedgerItem, Level, Validation, as_dict
from checks.vocabulary import Evidence, Outcome, Verdict
from launcher.cli.html import page

EVIL = "<script>alert('x')</script>\"'&<img src=x onerror=alert(1)>"
VOID = {"meta", "br", "img"}


class Tree(HTMLParser):
    """Collects elements, attributes and text as a browser would; fails on tags that are closed in the wrong order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def validation(text: str, outcome: Outcome = Outcome.PASS) -> dict[str, Any]:
    verdict = Verdict(
        id=text, outcome=outcome, message=text, figures={text: text},
        evidence=(Evidence(text=text, source=text, time=text, line=7),),
    )  # fmt: skip
    item = LedgerItem(id=text, title=text, state="open", clears=(text,), evidence=text)
    return as_dict(
        Validation(
            suite=text, outcome=outcome, level=Level.READY, summary=text, verdicts=(verdict,), warnings=(item,),
            model=text, engine=text, started=text, seconds=1.5,
        )
    )  # fmt: skip


def test_no_value_becomes_markup() -> None:
    plain, evil = Tree(page(validation("x"), {"run": "x"}, "x")), Tree(page(validation(EVIL), {"run": EVIL}, EVIL))
    assert evil.tags == plain.tags
    assert evil.attributes == plain.attributes
    assert "script" not in evil.tags
    assert "".join(evil.words).count(EVIL) == "".join(plain.words).count("x") - "".join(Tree(page(
        validation(""), {}, "")).words).count("x")  # fmt: skip


def test_the_page_loads_no_other_resource() -> None:
    text = page(validation("x"), {"run": "r"})
    assert "default-src 'none'" in text
    assert {"src", "href"}.isdisjoint(Tree(text).attributes)


def test_the_ladder_ends_at_the_reached_level() -> None:
    text = page(validation("x"), {})
    assert text.count('class="reached"') == 2
    assert text.index("ready</li>") < text.index('class="not">correct')


def test_figures_evidence_and_warnings_are_on_the_page() -> None:
    data = validation("prose", Outcome.FAIL)
    data["verdicts"][0]["figures"] = {"score": 0.9}
    words = "".join(Tree(page(data, {"run": "20261129-1200-p-abcd"})).words)
    shown = ("score = 0.9", "line 7", "Warnings in the log", "a pass of prose would clear it", "20261129-1200-p-abcd")
    assert all(part in words for part in shown)
