"""Rewrite the outputs that pages show from real runs: `python -m tests.docs.regenerate [PAGE ...]`, then read the diff.

An output that still agrees stays as it is, with what it leaves out. One that does not is written whole: shorten it with
`…` by hand. Blocks that only hold commands are not touched.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.docs import execution
from tests.docs.pages import Block, Step, blocks, page_path, steps
from tests.docs.stages import NAMES, PARSED, STAGES, Stage
from tests.docs.world import world


def regenerate(page: str) -> list[str]:
    """Rewrite one page; the places that changed."""
    stage, changed = STAGES.get(page, Stage()), dict[int, list[str]]()
    with tempfile.TemporaryDirectory() as scratch, world(
        Path(scratch) / "world", hosts=stage.hosts, servers=stage.servers
    ) as made:  # fmt: skip
        names = NAMES | stage.names(made)
        stage.prepare(made)
        for block in blocks(page):
            for step in steps(block) if block.is_shell else ():
                if step.command in PARSED:
                    continue
                made.fresh_port()
                ran = execution.run(execution.words_of(step.command, names))
                if step.output is not None and not execution.agrees(step.output, ran.out, made.folder):
                    text = ran.out.replace(str(made.home), "~").replace(str(made.here) + "/", "")
                    changed[step.line] = rewritten(block, step, execution.shown(text, block.indent))
    path = page_path(page)
    path.write_text(replaced(page, path.read_text("utf-8"), changed), "utf-8")
    return [f"{page}:{line}" for line in sorted(changed)]


def rewritten(block: Block, step: Step, output: Sequence[str]) -> list[str]:
    """The lines of a step in its page: the command, then its output."""
    return [f"{block.indent}$ {step.command}", *(f"{block.indent}{line}".rstrip() for line in output)]


def replaced(page: str, content: str, changed: Mapping[int, Sequence[str]]) -> str:
    """A page with new lines in place of those of each step, from the bottom up so that line numbers stay."""
    lines = content.splitlines()
    outputs = {step.line: step.output for block in blocks(page, content) if block.is_shell for step in steps(block)}
    for line, text in sorted(changed.items(), reverse=True):
        old = outputs[line] or ()
        length = len("\n".join(old).rstrip().splitlines())  # empty lines before the next command stay
        lines[line - 1 : line + length] = text
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:] or STAGES:
        sys.stdout.write("".join(f"{place}\n" for place in regenerate(name)))
