"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the tree.

A block follows a sentence that says where it goes: "New file `PATH`:", "In `PATH`, above `TEXT`:" or "In `PATH`, in
place of `TEXT`:", where TEXT is the beginning of a line. Blocks of shell are commands.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.docs.pages import Block, blocks, steps
from tests.support.paths import ROOT

PAGE = "CONTRIBUTING.md"
COPIED = ("checks", "launcher", "profiles", "tests", "docs", "tools", "templates", "pyproject.toml", "README.md", PAGE,
          "Makefile", "action.yml", "gate.yaml", ".pre-commit-hooks.yaml", "LICENSE")  # fmt: skip
_PLACE = re.compile(r"(?:^|\s)(?:[Nn]ew file|[Ii]n) `([^`]+)`(?:, (above|in place of) `([^`]+)`)?:\s*$")


def sections() -> Mapping[str, list[Block]]:
    """Title of each recipe → its blocks."""
    lines = (ROOT / PAGE).read_text("utf-8").splitlines()
    starts = [(number, line[3:]) for number, line in enumerate(lines, 1) if line.startswith("## ")]
    ends = [*(number for number, _ in starts[1:]), len(lines) + 1]
    found = blocks(PAGE)
    return {
        title: [block for block in found if start < block.line < end]
        for (start, title), end in zip(starts, ends, strict=True)
    }


def copy(to: Path) -> None:
    """The tree as far as a contributor's change concerns it."""
    to.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, to / name)


def follow(recipe: list[Block], tree: Path) -> Iterator[str]:
    """Do what a recipe says; what went wrong, one text per command."""
    for block in recipe:
        if block.is_shell:
            for step in steps(block):
                done = run(step.command, tree)
                if done.returncode != (1 if "diagnose log" in step.command else 0):  # it names a cause
                    yield f"{step.where}: $ {step.command}\nexit {done.returncode}\n{done.stdout}{done.stderr}"
        else:
            put(block, tree)


def put(block: Block, tree: Path) -> None:
    """Write a block where the sentence above it says."""
    place = _PLACE.search(above(block))
    assert place is not None, f"{block.where}: no sentence above the block says where it goes"
    name, how, anchor = place.groups()
    path = tree / name
    if how is None:
        assert not path.exists(), f"{block.where}: {name} is there already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")
        return
    lines = path.read_text("utf-8").splitlines()
    found = [number for number, line in enumerate(lines) if line.startswith(anchor)]
    assert len(found) == 1, f"{block.where}: {len(found)} lines of {name} begin with `{anchor}`"
    lines[found[0] : found[0] + (how != "above")] = block.lines
    path.write_text("\n".join(lines) + "\n", "utf-8")


def above(block: Block) -> str:
    """The paragraph above a block, as one line; the spaces of a code span are kept."""
    lines = (ROOT / PAGE).read_text("utf-8").splitlines()[: block.line - 2]
    while lines and not lines[-1].strip():
        lines.pop()
    start = next((number for number in range(len(lines), 0, -1) if not lines[number - 1].strip()), 0)
    return " ".join(line.removeprefix("   ") for line in lines[start:])


def run(command: str, tree: Path) -> subprocess.CompletedProcess[str]:
    """A command in the copy, with this interpreter in place of `.venv`."""
    binaries = Path(sys.executable).parent
    text = re.sub(r"^\.venv/bin/(python|pytest|mypy|lint-imports)\b", rf"{binaries}/\1", command)
    for program in ("launch", "diagnose"):
        start = f"{binaries}/python -c 'from launcher.cli.app import {program}; {program}()'"
        text = re.sub(rf"^\.venv/bin/{program}\b", start, text)
    environment = {"PYTHONPATH": str(tree), "PATH": f"{binaries}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(tree),
                   "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}  # fmt: skip
    return subprocess.run(["sh", "-c", text], cwd=tree, env=environment, capture_output=True, text=True, check=False)
