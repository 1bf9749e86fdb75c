"""Read a release's version, the packages it pins, and the model architectures it supports."""

from __future__ import annotations

import ast
import re

from checks.engine.source.tree import SourceTree

ENTRY_CLASS = re.compile(r"^[ \t]*EntryClass\s*\+?=\s*(\[[^\]]*\]|\w+)", re.M)
VERSION = re.compile(r"""^(?:__version__ = version = |__version__ = )["']([^"']+)["']""", re.M)
OTHER_EXTRA = re.compile(r"""extra == ["'](test|dev|diffusion[\w-]*|all[\w-]*|decord|docs?)["']""")
MODELS = "srt/models/"


def read_version(tree: SourceTree) -> str | None:
    """Return the version of the installed distribution or wheel, else the version in the source, else None."""
    stated = re.search(r"^Version: (\S+)", tree.metadata() or "", re.M)
    if stated:
        return stated.group(1)
    for path in ("_version.py", "version.py"):
        written = VERSION.findall(tree.read(path) or "")
        if written:
            return str(written[0])
    return None


def read_requirements(tree: SourceTree) -> list[str]:
    """Return the `Requires-Dist` lines that serving needs, without the extras for tests and image generation."""
    lines = re.findall(r"^Requires-Dist: (.+)$", tree.metadata() or "", re.M)
    return [" ".join(line.split()) for line in lines if not OTHER_EXTRA.search(line)]


def read_architectures(tree: SourceTree) -> list[str]:
    """Return the names in `EntryClass` of every module of `srt/models`, as the engine's registry lists them, sorted."""
    names: set[str] = set()
    for path in tree.paths(MODELS):
        if "/" in path[len(MODELS) :]:  # the registry does not read subpackages
            continue
        for written in ENTRY_CLASS.findall(tree.read(path) or ""):
            node = ast.parse(written, mode="eval").body
            items = node.elts if isinstance(node, ast.List) else [node]
            names.update(item.id for item in items if isinstance(item, ast.Name))
    return sorted(names)
