"""Generate docs/facts.md from the registry of facts: `python -m checks.reference.facts_page [--write]`.

The page is never edited by hand; edit the records in `checks/knowledge/facts/*.yaml`.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from checks.facts.names import GIVEN, Fact, Namespace, Pattern, namespaces

PAGE = Path(__file__).parents[2] / "docs" / "facts.md"
ORDER = (
    "flag", "env", "engine", "host", "model", "draft", "package", "launch", "observed", "log", "captured",
)  # fmt: skip
_HEAD = """\
# Facts

Every name that a condition, a message or a remedy of the knowledge may use. This page is generated from
`checks/knowledge/facts/` by `python -m checks.reference.facts_page --write`. [knowledge.md](knowledge.md) describes how
conditions compare facts.
"""
_PROOFS = {
    "flag-schemas": "The name must be the newest spelling of an option of some release.",
    "variables": "The name must be a variable that some release reads.",
    "requirements": "The name must be a distribution that some release requires, or listed here.",
    "named-group": "The name must be a named group in a pattern of the same entry.",
    "keys": "The key must be listed here.",
}


def page() -> str:
    """Return the whole page as Markdown."""
    return "\n".join([_HEAD, *(line for name in ORDER for line in _section(namespaces()[name]))])


def _section(space: Namespace) -> Iterator[str]:
    logic = "A missing fact is absent." if space.closed else "A fact that was not measured is unknown."
    known = f"Unless the table states otherwise, a fact is known when {space.when}."
    yield from (f"## `{space.name}.`", "", *_wrapped(f"{space.meaning} {logic} {known}"), "")
    for pattern in space.patterns:
        yield from _pattern(pattern)
    if space.facts:
        plain = all(fact.measured_by == (GIVEN,) and fact.when == space.when for fact in space.facts.values())
        titles = ("fact", "type", "meaning", "known when", "measured by")[: 3 if plain else 5]
        yield from (_cells(titles), "|---" * len(titles) + "|")
        yield from (_cells(_row(fact, space.when)[: len(titles)]) for fact in space.facts.values())
        yield ""


def _pattern(pattern: Pattern) -> Iterator[str]:
    text = f"`{pattern.name}`: {pattern.fact.meaning} {_PROOFS[pattern.proven_by]}"
    if pattern.keys:
        text += (
            " Keys: "
            + ", ".join(f"`{key}`{'' if kind == 'text' else f' ({kind})'}" for key, kind in pattern.keys.items())
            + "."
        )
    yield from (*_wrapped(text), "")


def _row(fact: Fact, usual: str) -> tuple[str, ...]:
    kind = ", ".join(f"`{word}`" if word else "empty" for word in fact.choices) or _typed(fact)
    by = ", ".join(item if item == GIVEN else f"`{item}`" for item in fact.measured_by)
    return f"`{fact.name}`", kind, fact.meaning.replace("<", "\\<"), "" if fact.when == usual else fact.when, by


def _cells(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 120, break_on_hyphens=False)


def _typed(fact: Fact) -> str:
    kind = "true or false" if fact.type == "flag" else fact.type
    return f"{kind}, {fact.unit}" if fact.unit else kind


def main(words: Sequence[str]) -> int:
    """Print the page, or with `--write` write it to docs/facts.md; the exit code is 0."""
    if "--write" in words:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
