"""Find fragments that are not shared. Loading an entry already rejects an unknown fragment name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from checks.catalog.entries import Entry
from checks.catalog.fragments import Fragment


def fragments_are_shared(items: Iterable[Entry], known: Mapping[str, Fragment]) -> Iterator[str]:
    """Check that the patterns of these entries use each fragment at least twice; one use does not need a fragment."""
    uses = Counter(name for item in items for pattern in item.during for name in pattern.fragments)
    for name in known:
        if uses[name] < 2:
            fault = "is used only once; move its text into that pattern" if uses[name] else "is not used; delete it"
            yield f"fragments.yaml: `{name}` {fault}"
