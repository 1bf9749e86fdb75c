"""Keeps the knowledge as two JSON files in the user's cache, one per side: 4 ms to read instead of 700 ms to build.

The file belongs to one state of the knowledge folders (names, sizes, times of change); any change builds a new one.
A cache that cannot be written costs time, nothing else.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from checks import KNOWLEDGE
from checks.before import rule_index
from checks.before.rule_index import Rules
from checks.during import signature_index
from checks.during.signature_index import Index

T = TypeVar("T")
FORMAT = 13
"""Raised when a document is made in another way out of the same folders."""


def index(root: Path = KNOWLEDGE, cache: Path | None = None) -> Index:
    """The log side of the knowledge under `root`. Raises YamlError when an entry is malformed."""
    return _kept("signatures", _build_signatures, signature_index.decode, root, cache)


def _build_signatures(root: Path) -> bytes:
    from checks.during.signature_build import build  # rare: not loaded where the document is ready

    return signature_index.encode(build(root))


def rules(root: Path = KNOWLEDGE, cache: Path | None = None) -> tuple[Rules, ...]:
    """The `before` side of the knowledge under `root`. Raises YamlError when an entry is malformed."""
    return _kept("rules", rule_index.build, rule_index.load, root, cache)


def _kept(name: str, make: Callable[[Path], bytes], load: Callable[[bytes], T], root: Path, cache: Path | None) -> T:
    path = (cache or cache_folder()) / f"{name}-{_state(root)}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        return load(path.read_bytes())
    document = make(root)
    with suppress(OSError):
        _write(path, document)
    return load(document)


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/sglang-launcher`, by default under `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sglang-launcher"


def _state(root: Path) -> str:
    """A digest of what the index was made from, without reading it: 300 stat calls take 2 ms."""
    rows = [f"{FORMAT} {root}"]
    for kind, name in (("causes", "cause.yaml"), ("signs", "sign.yaml"), ("phases", "")):
        for entry in sorted(_entries(root / kind), key=lambda item: item.name):
            with suppress(OSError):
                facts = os.stat(f"{entry.path}/{name}")  # noqa: PTH116  # a Path for each takes three times as long
                rows.append(f"{kind}/{entry.name} {facts.st_size} {facts.st_mtime_ns}")
    text = "\n".join(rows).encode()
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"  # hashlib would load OpenSSL


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _write(path: Path, document: bytes) -> None:
    """Atomically, leaving one file: the ones of older states are removed."""
    import tempfile  # it loads `random` and OpenSSL; writing is rare

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    with os.fdopen(handle, "wb") as file:
        file.write(document)
    Path(name).replace(path)
    for old in path.parent.glob(f"{path.stem.partition('-')[0]}-*.json"):
        if old != path:
            with suppress(OSError):
                old.unlink()
