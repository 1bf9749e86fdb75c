"""Keeps the compiled knowledge as one document in the user's cache: 4 ms to read instead of 1.4 s to build.

The document has two sections, one for logs and one for launches, and only the section that is needed is decoded. It is
valid for one state of the knowledge files and of the code that compiles them; any change to either builds a new one. If
the cache cannot be written, the only cost is time.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from checks import KNOWLEDGE
from checks.before import rule_index
from checks.before.rule_index import Rules
from checks.during import signature_index
from checks.during.signature_index import Index

T = TypeVar("T")
_CODE = KNOWLEDGE.parent
_BUILDERS = ("", "catalog", "before", "during", "during/log")
"""Folders of `checks` whose code determines the content of the document."""


class _Document(Struct, frozen=True):
    log: Raw
    before: Raw


def index(root: Path = KNOWLEDGE, cache: Path | None = None) -> Index:
    """Return the knowledge under `root` that reading a log needs. Raises YamlError when an entry is malformed."""
    return _cached(_log_section, root, cache)


def rules(root: Path = KNOWLEDGE, cache: Path | None = None) -> tuple[Rules, ...]:
    """Return the knowledge under `root` that checking a launch needs. Raises YamlError when an entry is malformed."""
    return _cached(_before_section, root, cache)


def _log_section(document: _Document) -> Index:
    return signature_index.decode(bytes(document.log))


def _before_section(document: _Document) -> tuple[Rules, ...]:
    return rule_index.load(bytes(document.before))


def _cached(section: Callable[[_Document], T], root: Path, cache: Path | None) -> T:
    path = (cache or cache_folder()) / f"knowledge-{_digest(root)}.json"
    with suppress(OSError, ValueError):
        known: T = _read(section, path)
        return known
    document = _build(root)
    with suppress(OSError):
        _write(path, msgspec.json.encode(document))
    return section(document)


@lru_cache(maxsize=4)
def _read(section: Callable[[_Document], T], path: Path) -> T:
    """Return a section of a document, decoded once per process. Raises OSError or ValueError for an unusable one."""
    return section(msgspec.json.decode(path.read_bytes(), type=_Document))


def _build(root: Path) -> _Document:
    from checks.during.signature_build import build  # rarely needed: not loaded when the document is cached

    return _Document(log=Raw(signature_index.encode(build(root))), before=Raw(rule_index.build(root)))


def cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME/sglang-launcher`; the default is `~/.cache/sglang-launcher`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sglang-launcher"


def _digest(root: Path) -> str:
    """Return a digest of the document's sources without reading them: 350 stat calls take 2 ms."""
    rows = [f"{root}"]
    rows += [f"code {row}" for folder in _BUILDERS for row in _stats(_CODE / folder, "", ".py")]
    rows += [f"fragments {row}" for row in _stats(root, "", "fragments.yaml")]
    for kind, name in (("causes", "cause.yaml"), ("signs", "sign.yaml"), ("phases", "")):
        rows += [f"{kind} {row}" for row in _stats(root / kind, f"/{name}" if name else "")]
    text = "\n".join(rows).encode()
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"  # hashlib would load OpenSSL


def _stats(folder: Path, below: str, suffix: str = "") -> Iterator[str]:
    """Yield name, size and modification time of each entry of a folder, or of the file `below` each entry."""
    for item in sorted(_entries(folder), key=lambda entry: entry.name):
        if item.name.endswith(suffix):
            with suppress(OSError):
                status = os.stat(f"{item.path}{below}")  # noqa: PTH116  # Path.stat takes three times as long
                yield f"{item.name} {status.st_size} {status.st_mtime_ns}"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _write(path: Path, document: bytes) -> None:
    """Write the document atomically and remove the documents of older states."""
    import tempfile  # imported here because it loads `random` and OpenSSL, and writing is rare

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    with os.fdopen(handle, "wb") as file:
        file.write(document)
    Path(name).replace(path)
    for old in path.parent.glob("knowledge-*.json"):
        if old != path:
            with suppress(OSError):
                old.unlink()
