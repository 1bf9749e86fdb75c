"""Read an engine's source files from a folder, a checkout, or a wheel that was never installed.

This module reads text and never imports the engine; `evaluate`, `arguments` and `environment` interpret the text.
It runs on a host under Python 3.9 with only the standard library.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path


class SourceError(Exception):
    """The engine's source was not found, or cannot be read."""


class SourceTree:
    """Files of the package `sglang`, named relative to it (`srt/server_args.py`)."""

    def __init__(self, files: dict[str, Path] | zipfile.ZipFile, origin: str) -> None:
        self.origin = origin
        self._files = files
        self._names = set(self._python_names())
        self._parsed: dict[str, ast.Module | None] = {}

    def read(self, path: str) -> str | None:
        """Return the text of one file; None if the file does not exist. Undecodable bytes are replaced."""
        if isinstance(self._files, zipfile.ZipFile):
            try:
                return self._files.read("sglang/" + path).decode("utf-8", "replace")
            except KeyError:
                return None
        file = self._files.get(path)
        return None if file is None else file.read_text(encoding="utf-8", errors="replace")

    def has(self, path: str) -> bool:
        """Whether the tree contains a file."""
        return path in self._names

    def parse(self, path: str) -> ast.Module | None:
        """Return the syntax tree of one file; None if it is missing or has syntax newer than the running Python."""
        if path not in self._parsed:
            text = self.read(path)
            try:
                self._parsed[path] = None if text is None else ast.parse(text)
            except SyntaxError:
                self._parsed[path] = None
        return self._parsed[path]

    def forget(self, path: str) -> None:
        """Drop a cached syntax tree: thousands of them do not fit into the memory of a small machine."""
        self._parsed.pop(path, None)

    def paths(self, under: str = "") -> Iterator[str]:
        """Return every Python file whose name starts with `under`, sorted."""
        return iter(sorted(name for name in self._names if name.startswith(under)))

    def metadata(self) -> str | None:
        """Return the METADATA text of the wheel or the installed distribution; None for a bare checkout."""
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
    """Return the source in a wheel file. Raises SourceError if the file is not a readable wheel."""
    try:
        archive = zipfile.ZipFile(wheel)
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceError(f"{wheel} is not a readable wheel: {error}") from error
    return SourceTree(archive, wheel)


def from_root(root: str) -> SourceTree:
    """Return the source in a checkout (in `python/sglang`), a site-packages folder, or the package folder itself.

    Raises SourceError if none of them contains `srt/server_args.py`.
    """
    base = Path(root).expanduser()
    for candidate in (base / "python" / "sglang", base / "sglang", base):
        if (candidate / "srt" / "server_args.py").is_file():
            files = {p.relative_to(candidate).as_posix(): p for p in candidate.rglob("*.py")}
            return SourceTree(files, str(candidate))
    raise SourceError(f"no srt/server_args.py in {root}, {root}/sglang or {root}/python/sglang")


def installed() -> SourceTree:
    """Return the source of the engine that the running Python would import. Raises SourceError if there is none."""
    spec = importlib.util.find_spec("sglang")  # locates a top-level package without running it
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(f"SGLang is not installed for {sys.executable}")
    return from_root(next(iter(spec.submodule_search_locations)))


def _folder_metadata(package: Path) -> str | None:
    """Return METADATA next to the package; else from the path finder, as an editable install has it elsewhere."""
    candidates = sorted(package.parent.glob("sglang-*.dist-info/METADATA"))
    candidates += sorted(package.parent.glob("sglang.egg-info/PKG-INFO"))
    if candidates:
        return candidates[0].read_text(encoding="utf-8", errors="replace")
    from importlib import metadata

    try:
        distribution = metadata.distribution("sglang")
    except metadata.PackageNotFoundError:
        return None
    return distribution.read_text("METADATA")
