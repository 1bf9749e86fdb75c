"""Look up the releases in which a function of the engine changed. `tools/extract_engines.py` writes the table.

The table is one text: the releases on its first line, then a line per file, with a field per function that changed:
`Class.method:3,7,-9` means that it appeared in the fourth release, changed in the eighth and is gone from the tenth.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from checks.engine.release_rows import FOLDER

TABLE = "functions.zst"


class Changes(Struct, frozen=True, kw_only=True):
    """The releases around one release in which a function changed; empty texts where there are none."""

    function: str  # Class.method
    later: str  # the first release after it with other code, or without the function
    gone: bool  # whether the later release does not have the function
    changed_in: str  # the release at hand or an older one: the last with a change
    before: str  # the release before `changed_in`, which has the earlier code; empty if the function was new


def changes(file: str, function: str, release: str) -> Changes | None:
    """Return the changes of a function around a release; None if it never changed, or is unknown.

    `function` is the name in a traceback, without the class. Where several classes have a method of this name, the
    answer is None.
    """
    table = _table()
    releases = table.partition("\n")[0].split("\t")
    start = table.find(f"\n{file}\t")
    if start < 0 or release not in releases:
        return None
    fields = table[start + 1 : table.find("\n", start + 1)].split("\t")[1:]
    split = [field.rpartition(":") for field in fields]
    named = [(name, events) for name, _, events in split if function in (name, name.rsplit(".", 1)[-1])]
    if len(named) != 1:
        return None
    name, events = named[0]
    at = releases.index(release)
    numbers = [int(event) for event in events.split(",")]
    later = next((number for number in numbers if abs(number) > at), None)
    past = [number for number in numbers if abs(number) <= at]
    if not past or past[-1] < 0:
        return None
    last = past[-1]
    return Changes(
        function=name,
        later="" if later is None else releases[abs(later)],
        gone=later is not None and later < 0,
        changed_in=releases[last],
        before=releases[last - 1] if len(past) > 1 and past[-2] >= 0 else "",
    )


@lru_cache(maxsize=1)
def _table() -> str:
    try:
        import zstandard
    except ImportError:  # a bare source tree without dependencies: no release is proposed
        return ""
    return zstandard.ZstdDecompressor().decompress((FOLDER / TABLE).read_bytes()).decode() + "\n"
