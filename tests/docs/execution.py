"""Commands of the documentation, run or only parsed, and their output compared with what a page shows.

A command runs in this process, as the console script would run it. In an expected output the word `…` or `...` stands
for whatever was left out; lines may be wrapped; times, ids, ports and paths are not compared.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from launcher.cli import app

TABLES: Mapping[str, dict[str, tuple[str, str]]] = {"launch": app.LAUNCH, "diagnose": app.DIAGNOSE}
GAP = re.compile(r"(?<!\S)(?:…|\.\.\.)(?!\S)")
WIDTH = 116  # of a page's line, its indentation included
_VARYING: tuple[tuple[str, str], ...] = (
    (r"\d{8}-\d{6}-([a-z0-9._-]+)-[0-9a-f]{4}", r"RUN-\1"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+00:00)?", "TIME"),
    (r"\b[0-9a-f]{12}\b", "DIGEST"),
    (r"\d[\d,.]*\s?(s|ms|tok/s)\b", r"# \1"),
    (r"(port|pid|:)(\s?)\d{4,}\b", r"\1\2#"),
    (r"(/[\w.+-]+)+/(?=[\w.+-]+)", "/"),
)


class Ran(Struct, frozen=True):
    """What a command left: exit code and the two streams."""

    code: int
    out: str
    err: str


class NotParsed(ValueError):
    """The command line does not exist: no such command, option, or number of arguments."""


def run(words: Sequence[str]) -> Ran:
    """Run `launch …` or `diagnose …` in this process."""
    with captured() as (out, err):
        code = app.run(words[0], TABLES[words[0]], list(words[1:]))
    return Ran(code, out(), err())


@contextmanager
def captured() -> Iterator[tuple[Callable[[], str], Callable[[], str]]]:
    """Standard output and error of the block, read by the two functions; standard input is empty."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO())

    def text(stream: io.TextIOWrapper) -> Callable[[], str]:
        return lambda: stream.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]

    try:
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            yield text(streams[0]), text(streams[1])
    finally:
        sys.stdin = before


def parse(words: Sequence[str], *, complete: bool = True) -> None:
    """Hold a command line against the real one, without running it. Raises NotParsed.

    `complete`: its arguments are all there; a code span may name a command alone.
    """
    program, *rest = words
    if not rest:
        return
    if rest[0] not in TABLES[program]:
        raise NotParsed(f"`{program}` has no command `{rest[0]}`")
    command = _command(program, rest[0])
    known = {name for item in command.params for name in (*item.opts, *item.secondary_opts) if name.startswith("-")}
    unknown = [
        word for word in rest[1:] if word.startswith("-") and word != "-" and word.partition("=")[0] not in known
    ]
    if unknown:
        raise NotParsed(f"`{program} {rest[0]}` has no option {', '.join(unknown)}")
    if complete:
        try:
            command.make_context(rest[0], list(rest[1:]))
        except Exception as error:
            raise NotParsed(f"{shlex.join(words)}: {error}") from error


def _command(program: str, name: str) -> Any:
    import typer
    from typer.main import get_command

    module, _, function = TABLES[program][name][0].partition(":")
    made = typer.Typer(add_completion=False)
    made.command()(getattr(import_module(f"launcher.cli.{module}"), function or "main"))
    return get_command(made)


def words_of(command: str, names: Mapping[str, str] | None = None) -> list[str]:
    """Words of a command line, with the names that stand for something in the pages replaced."""
    words = shlex.split(command)
    words[0] = words[0].removeprefix(".venv/bin/")
    return [word for word in ((names or {}).get(word, word) for word in words) if word]


def agrees(expected: Sequence[str], output: str, folder: Path | None = None) -> bool:
    """Whether an output is the one that a page shows."""
    parts = [_plain(part) for part in GAP.split("\n".join(expected))]
    text = _plain(output if folder is None else output.replace(str(folder), "/tmp/x"))
    if len(parts) == 1:
        return parts[0] == text
    if not text.startswith(parts[0]) or not text.endswith(parts[-1]):
        return False
    place = 0
    for part in parts:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def _plain(text: str) -> str:
    for pattern, instead in _VARYING:
        text = re.sub(pattern, instead, text)
    return " ".join(text.split())


def shown(output: str, indent: str = "") -> list[str]:
    """An output as lines for a page, wrapped where they are too long for it."""
    lines: list[str] = []
    for line in output.rstrip().splitlines():
        start = re.match(r"\s*(?:\S+\s{2,}(?=\S))?", line)
        hang = " " * len(start[0] if start else "")
        lines += textwrap.wrap(
            line.rstrip(), WIDTH - len(indent), subsequent_indent=hang, break_long_words=False, break_on_hyphens=False,
            replace_whitespace=False, drop_whitespace=True,
        ) or [""]  # fmt: skip
    return lines
