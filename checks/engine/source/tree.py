"""An engine's source files, wherever they lie: a folder, a checkout, or a wheel that was never installed.

Reads text only; it never imports the engine. What the text means is in `evaluate`, `arguments`, `environment`.
Runs on a host under Python 3.9 with the standard library alone.
"""

from __future__ import annotations

import ast
import importlib.util
import zipfile
from collections.abc import Iterator
from pathlib import Path


class SourceError(Exception):
    """The engine's source is not where it was looked for, or cannot be read."""


class SourceTree:
    """Files of the package `sglang`, named relative to it (`srt/server_args.py`)."""

    def __init__(self, files: dict[str, Path] | zipfile.ZipFile, origin: str) -> None:
        self.origin = origin
        self._files = files
        self._names = set(self._python_names())
        self._parsed: dict[str, ast.Module | None] = {}

    def read(self, path: str) -> str | None:
        """Text of one file, None when there is no such file. Undecodable bytes are replaced."""
        if isinstance(self._files, zipfile.ZipFile):
            try:
                return self._files.read("sglang/" + path).decode("utf-8", "replace")
            except KeyError:
                return None
        found = self._files.get(path)
        return None if found is None else found.read_text(encoding="utf-8", errors="replace")

    def has(self, path: str) -> bool:
        """Is there such a file?"""
        return path in self._names

    def parse(self, path: str) -> ast.Module | None:
        """Syntax tree of one file; None when it is absent or newer than the Python that runs this."""
        if path not in self._parsed:
            text = self.read(path)
            try:
                self._parsed[path] = None if text is None else ast.parse(text)
            except SyntaxError:
                self._parsed[path] = None
        return self._parsed[path]

    def forget(self, path: str) -> None:
        """Drop a syntax tree: thousands of them do not fit a small machine."""
        self._parsed.pop(path, None)

    def paths(self, under: str = "") -> Iterator[str]:
        """Every Python file whose name starts with `under`, sorted."""
        return iter(sorted(name for name in self._names if name.startswith(under)))

    def metadata(self) -> str | None:
        """The wheel's or the installed distribution's METADATA text, None for a bare checkout."""
        if isinstance(self._files, zipfile.ZipFile):
            for name in self._files.namelist():
                if name.startswith("sglang-") and name.endswith(".dist-info/METADATA"):
                    return self._files.read(name).decode("utf-8", "replace")
            return None
        return _folder_metadata(Path(self.origin))

    def _python_names(self) -> Iterator[str]:
        if isinstance(self._files, zipfile.ZipFile):
            names = (n[len("sglang/") :] for n in self._files.namelist() if n.startswith("sglang/"))
        else:
            names = (n for n in self._files)
        return (n for n in names if n.endswith(".py"))


def from_wheel(wheel: str) -> SourceTree:
    """Source out of a wheel file. Raises SourceError when it holds no `sglang`."""
    try:
        archive = zipfile.ZipFile(wheel)
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceError(f"{wheel}: not a readable wheel: {error}") from error
    return SourceTree(archive, wheel)


def from_root(root: str) -> SourceTree:
    """Source out of a checkout (`python/sglang` below it), a site-packages folder, or the package itself."""
    base = Path(root).expanduser()
    for candidate in (base / "python" / "sglang", base / "sglang", base):
        if (candidate / "srt" / "server_args.py").is_file():
            files = {p.relative_to(candidate).as_posix(): p for p in candidate.rglob("*.py")}
            return SourceTree(files, str(candidate))
    raise SourceError(f"{root}: no srt/server_args.py below it (looked in python/sglang, sglang and itself)")


def installed() -> SourceTree:
    """Source of the engine that this very Python would import. Raises SourceError when there is none."""
    spec = importlib.util.find_spec("sglang")  # locates a top-level package without running it
    if spec is None or not spec.submodule_search_locations:
        raise SourceError("this Python has no package sglang")
    return from_root(next(iter(spec.submodule_search_locations)))


def _folder_metadata(package: Path) -> str | None:
    """METADATA beside the package; an editable install keeps it where pip put it, so ask the path finder too."""
    beside = sorted(package.parent.glob("sglang-*.dist-info/METADATA"))
    beside += sorted(package.parent.glob("sglang.egg-info/PKG-INFO"))
    if beside:
        return beside[0].read_text(encoding="utf-8", errors="replace")
    from importlib import metadata

    try:
        found = metadata.distribution("sglang")
    except metadata.PackageNotFoundError:
        return None
    return found.read_text("METADATA")
