"""The documentation as blocks, commands and code spans: what there is to be executed, with its page and line.

A block is fenced, or indented by four spaces after an empty line. In a shell block each line is a command; a line that
begins with `$ ` is one anywhere, and what follows it is its output. Nothing is run here: `execution` does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from tests.support.paths import ROOT

PAGES: tuple[str, ...] = (
    "README.md", "CONTRIBUTING.md", "tests/README.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
)  # fmt: skip
SHELL = frozenset({"sh", "bash", "console", "shell"})
PROGRAMS = frozenset(
    {"launch", "diagnose", "make", "pip", "python", "python3", "git", "cp", "mkdir", ".venv/bin/launch",
     ".venv/bin/diagnose", ".venv/bin/pytest", ".venv/bin/python", ".venv/bin/ruff"}
)  # fmt: skip
_FENCE = re.compile(r"```([\w-]*)")


class Block(Struct, frozen=True, kw_only=True):
    """One block of a page. `language` is that of the fence, or empty; lines are without their indentation."""

    page: str
    line: int  # of its first line of text, from 1
    language: str
    indent: str
    lines: tuple[str, ...]
    before: str  # the last line of text above it

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_shell(self) -> bool:
        """Whether its lines are commands, with or without their output."""
        if self.language:
            return self.language in SHELL
        first = [line.split()[0] for line in self.lines if line.strip()]
        return first[0] == "$" or all(word in PROGRAMS for word in first)


class Step(Struct, frozen=True, kw_only=True):
    """One command of a page, and its output where the page shows one (None: it shows none)."""

    page: str
    line: int
    command: str
    output: tuple[str, ...] | None = None

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str, text: str | None = None) -> list[Block]:
    """Every block of a page, from top to bottom."""
    lines = (text if text is not None else (ROOT / page).read_text("utf-8")).splitlines()
    found, number, above = list[Block](), 0, ""
    while number < len(lines):
        line = lines[number]
        start = number
        if fence := _FENCE.match(line):
            end = next((at for at in range(number + 1, len(lines)) if lines[at].startswith("```")), None)
            assert end is not None, f"{page}:{number + 1}: a fence without an end"
            found.append(_block(page, number + 1, fence[1], lines[number + 1 : end], above))
            number = end + 1
        elif line.startswith("    ") and not above_is_text(lines, number):
            while number < len(lines) and (lines[number].startswith("    ") or _goes_on(lines, number)):
                number += 1
            found.append(_block(page, start, None, lines[start:number], above))
        else:
            above = line if line.strip() else above
            number += 1
    return found


def above_is_text(lines: Sequence[str], number: int) -> bool:
    """Whether an indented line only continues the paragraph or list item above it."""
    return number > 0 and bool(lines[number - 1].strip())


def _goes_on(lines: Sequence[str], number: int) -> bool:
    """An empty line inside an indented block."""
    following = next((line for line in lines[number:] if line.strip()), "")
    return not lines[number].strip() and following.startswith("    ")


def _block(page: str, start: int, language: str | None, lines: Sequence[str], above: str) -> Block:
    """`language` is None for a block that is indented instead of fenced."""
    indent = "    " if language is None else ""
    plain = tuple(line.removeprefix(indent) for line in lines)
    return Block(page=page, line=start + 1, language=language or "", indent=indent, lines=plain, before=above)


def steps(block: Block) -> Iterator[Step]:
    """The commands of a shell block, each with the output below it."""
    transcript = any(line.startswith("$ ") for line in block.lines)
    lines = [(block.line + offset, line) for offset, line in enumerate(block.lines)]
    if not transcript:
        for number, line in joined(lines):
            if command := command_of(line):
                yield Step(page=block.page, line=number, command=command)
        return
    starts = [index for index, (_, line) in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        number, line = lines[start]
        output = tuple(text for _, text in lines[start + 1 : end])
        yield Step(page=block.page, line=number, command=command_of(line[2:]), output=output)


def joined(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines with those that end in a backslash put together with the next one."""
    held: tuple[int, str] | None = None
    for number, line in lines:
        start, text = (held[0], held[1] + line.strip()) if held else (number, line)
        held = (start, text[:-1]) if text.endswith("\\") else None
        if held is None:
            yield start, text


def command_of(line: str) -> str:
    """The command of a line without its remark: what follows `#`, or two spaces and more."""
    return re.split(r"\s+#\s|\s{2,}|^#", line.strip(), maxsplit=1)[0].strip()


def spans(page: str) -> Iterator[tuple[int, str]]:
    """Code spans outside of blocks, with their lines; a span may be wrapped over two lines."""
    text = (ROOT / page).read_text("utf-8")
    lines = text.splitlines()
    for block in blocks(page):
        for number in range(block.line - 1, block.line - 1 + len(block.lines)):
            lines[number] = ""
    kept = "\n".join("" if line.startswith("```") else line for line in lines)
    for match in re.finditer(r"`([^`]+)`", kept):
        yield kept.count("\n", 0, match.start()) + 1, " ".join(match[1].split())


def reference(page: str) -> Iterator[tuple[list[Step], list[str]]]:
    """Rows of a table `| command | what it does |`: the commands of the first cell, the options of the second."""
    rows = (ROOT / page).read_text("utf-8").splitlines()
    start = rows.index("| command | what it does |") + 2
    for number, row in enumerate(rows[start:], start + 1):
        if not row.startswith("|"):
            return
        cells = re.split(r"(?<!\\)\|", row)
        named = [span.replace("\\|", "|") for span in re.findall(r"`([^`]+)`", cells[1])]
        program = named[0].split()[0]
        commands = [span if span.split()[0] == program else f"{program} {span}" for span in named]
        options = re.findall(r"--[a-z][a-z-]+", " ".join(re.findall(r"`([^`]+)`", cells[2])))
        yield [Step(page=page, line=number, command=command) for command in commands], options


def page_path(page: str) -> Path:
    return ROOT / page
