"""Small engines in memory: a few files of the package `sglang` as the extractor sees them."""

from __future__ import annotations

import io
import zipfile

from checks.engine.source.scope import Scope
from checks.engine.source.tree import SourceTree


def source_tree(files: dict[str, str], metadata: str = "") -> SourceTree:
    """An engine of these files, named relative to the package; `metadata` is that of its wheel."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"sglang/{name}", text)
        if metadata:
            archive.writestr("sglang-9.9.dist-info/METADATA", metadata)
    return SourceTree(zipfile.ZipFile(memory), "memory")


def scope_of(text: str, **siblings: str) -> Scope:
    """The names of `srt/main.py` with this text; keyword `other` stands for `srt/other.py`."""
    files = {f"srt/{name}.py": body for name, body in siblings.items()}
    return Scope(source_tree({"srt/main.py": text, **files}), "srt/main.py")
