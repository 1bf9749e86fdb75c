"""What is wrong with the fragments: one that nobody shares. An unknown name is refused when an entry is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from checks.catalog.entries import Entry
from checks.catalog.fragments import Fragment


def fragments_are_shared(items: Iterable[Entry], known: Mapping[str, Fragment]) -> Iterator[str]:
    """Each fragment is used at least twice by the patterns of these entries; a wording used once belongs there."""
    uses = Counter(name for item in items for pattern in item.during for name in pattern.fragments)
    for name in known:
        if uses[name] < 2:
            count = "once" if uses[name] else "nowhere"
            yield f"fragments.yaml: `{name}` is used {count}; write the wording where it is used, or delete it"
