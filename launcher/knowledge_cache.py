"""Keeps the log side of the knowledge as one JSON file in the user's cache: 4 ms to read instead of 300 ms to build.

The file belongs to one state of the knowledge folders (names, sizes, times of change); any change builds a new one.
A cache that cannot be written costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from checks.catalog import KNOWLEDGE
from checks.signature_index import FORMAT, Index, build


def index(root: Path = KNOWLEDGE, cache: Path | None = None) -> Index:
    """The index of the knowledge under `root`. Raises YamlError when an entry is malformed."""
    folder = cache or cache_folder()
    path = folder / f"signatures-{_state(root)}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        return Index.load(json.loads(path.read_bytes()))
    document = build(root)
    with suppress(OSError):
        _write(path, json.dumps(document))
    return Index.load(document)


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/sglang-launcher`, by default under `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sglang-launcher"


def _state(root: Path) -> str:
    """A digest of what the index was made from, without reading it: 300 stat calls take 2 ms."""
    digest = hashlib.blake2b(f"{FORMAT} {root}".encode(), digest_size=12)
    for kind, name in (("causes", "cause.yaml"), ("signs", "sign.yaml"), ("phases", "")):
        for entry in sorted(_entries(root / kind), key=lambda item: item.name):
            with suppress(OSError):
                facts = Path(entry.path, name).stat()
                digest.update(f"{kind}/{entry.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _write(path: Path, text: str) -> None:
    """Atomically, leaving one file: the ones of older states are removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".signatures-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(name).replace(path)
    for old in path.parent.glob("signatures-*.json"):
        if old != path:
            with suppress(OSError):
                old.unlink()
