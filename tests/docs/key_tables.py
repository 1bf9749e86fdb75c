"""The keys that a table of the documentation names, as dotted names.

A row is `| key | meaning |`. Keys inside a key are written in braces somewhere in its row: `{at-least, margin}`,
`{flag or env, value}`, `{run, expect: {cause, level}}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support.paths import ROOT

HEAD = "| key | meaning |"


def documented(page: str, after: str = "") -> frozenset[str]:
    """Dotted names of the first table of keys in docs/`page` below the line `after`."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    assert not after or f"\n{after}\n" in text, f"docs/{page} has no line `{after}`"
    table = text.partition(f"\n{after}\n")[2] if after else text
    rows = table.partition(HEAD)[2].splitlines()[2:]
    names: set[str] = set()
    for row in rows:
        if not row.startswith("|"):
            break
        first, _, meaning = row.strip("|").partition("|")
        for key in re.findall(r"`([\w-]+)`", first):
            names.add(key)
            for group in re.findall(r"`([^`]*\{[^`]*)`", meaning):
                names |= {f"{key}.{name}" for name in inside(group[group.index("{") :])}
    return frozenset(names)


def inside(group: str) -> Iterator[str]:
    """Dotted names of a group in braces: `{a, b or c, d: {e}}` names a, b, c, d and d.e."""
    for part in split(group[1 : group.rindex("}")]):
        name, _, value = part.partition(":")
        for word in name.strip().split(" or "):
            yield word
            if value.strip().startswith("{"):
                yield from (f"{word}.{more}" for more in inside(value.strip()))


def split(text: str) -> list[str]:
    """Parts between commas that no bracket encloses."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "{[") - (sign in "}]")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
