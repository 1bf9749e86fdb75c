"""Keeps the compiled knowledge as one document in the user's cache: 4 ms to read instead of 1.4 s to build.

The document has two sections, for logs and for launches, and only the wanted one is decoded. It belongs to one state of
the knowledge files and of the code that compiles them; any change of either builds a new one. A cache that cannot be
written costs time, nothing else.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
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
"""Folders of `checks` whose code decides what the document holds."""


class _Document(Struct, frozen=True):
    log: Raw
    before: Raw


def index(root: Path = KNOWLEDGE, cache: Path | None = None) -> Index:
    """The log side of the knowledge under `root`. Raises YamlError when an entry is malformed."""
    return _kept(lambda document: signature_index.decode(bytes(document.log)), root, cache)


def rules(root: Path = KNOWLEDGE, cache: Path | None = None) -> tuple[Rules, ...]:
    """The launch side of the knowledge under `root`. Raises YamlError when an entry is malformed."""
    return _kept(lambda document: rule_index.load(bytes(document.before)), root, cache)


def _kept(section: Callable[[_Document], T], root: Path, cache: Path | None) -> T:
    path = (cache or cache_folder()) / f"knowledge-{_state(root)}.json"
    with suppress(OSError, ValueError):
        return section(msgspec.json.decode(path.read_bytes(), type=_Document))
    document = _build(root)
    with suppress(OSError):
        _write(path, msgspec.json.encode(document))
    return section(document)


def _build(root: Path) -> _Document:
    from checks.during.signature_build import build  # rare: not loaded where the document is ready

    return _Document(log=Raw(signature_index.encode(build(root))), before=Raw(rule_index.build(root)))


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/sglang-launcher`, by default under `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sglang-launcher"


def _state(root: Path) -> str:
    """A digest of what the document was made from, without reading it: 350 stat calls take 2 ms."""
    rows = [f"{root}"]
    rows += [f"code {row}" for folder in _BUILDERS for row in _stats(_CODE / folder, "", ".py")]
    rows += [f"fragments {row}" for row in _stats(root, "", "fragments.yaml")]
    for kind, name in (("causes", "cause.yaml"), ("signs", "sign.yaml"), ("phases", "")):
        rows += [f"{kind} {row}" for row in _stats(root / kind, f"/{name}" if name else "")]
    text = "\n".join(rows).encode()
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"  # hashlib would load OpenSSL


def _stats(folder: Path, below: str, suffix: str = "") -> Iterator[str]:
    """Name, size and time of change of each entry of a folder, or of a file `below` each of them."""
    for item in sorted(_entries(folder), key=lambda entry: entry.name):
        if item.name.endswith(suffix):
            with suppress(OSError):
                facts = os.stat(f"{item.path}{below}")  # noqa: PTH116  # a Path for each takes three times as long
                yield f"{item.name} {facts.st_size} {facts.st_mtime_ns}"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
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
    for old in path.parent.glob("knowledge-*.json"):
        if old != path:
            with suppress(OSError):
                old.unlink()
