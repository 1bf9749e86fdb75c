"""Read the rows that `tools/extract_engines.py` writes for each release: one compressed text per release and kind.

The text of one release, DICTIONARY_RELEASE, is the compression dictionary of all others, because most rows are the
same: 24 releases of raise sites take 1.6 MB instead of 5.6 MB.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from checks import KNOWLEDGE
from checks.engine.releases import available, nearest

FOLDER = KNOWLEDGE / "engines/sglang"
DICTIONARY_RELEASE = "0.5.23"
Kind = Literal["sites", "features"]


def rows_for(kind: Kind, version: str) -> tuple[str, bool, tuple[str, ...]]:
    """Return `(release, exact, rows)` of an engine version; of the nearest release for an unknown one."""
    release, note = nearest(version, recorded(kind))
    return release, not note, tuple(_unpacked(kind, release).split("\n"))


@lru_cache(maxsize=2)
def recorded(kind: Kind) -> tuple[str, ...]:
    """Return the releases with recorded rows, oldest first; most `.postN` releases have none."""
    names = {entry.name.removesuffix(".zst") for entry in (FOLDER / kind).iterdir()}
    return tuple(release for release in available() if release in names)


def _unpacked(kind: Kind, release: str) -> str:
    try:
        import zstandard
    except ImportError:  # a bare source tree without dependencies: unexplained errors are reported without conditions
        return ""
    base = zstandard.ZstdDecompressor().decompress((FOLDER / kind / f"{DICTIONARY_RELEASE}.zst").read_bytes())
    if release == DICTIONARY_RELEASE:
        return base.decode()
    dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = (FOLDER / kind / f"{release}.zst").read_bytes()
    return zstandard.ZstdDecompressor(dict_data=dictionary).decompress(packed).decode()
