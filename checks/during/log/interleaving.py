"""Which of several unfinished tracebacks a line belongs to, when processes write into one pipe line by line.

Nothing in such a line names its process. What tells: a source line stands below its `File` line; a frame is entered by
the source line above it; `raise X` ends in `X`; ranks fail alike, so a step seen once is known. Not certain: where
nothing tells, the stack that moved last goes on. Building incidents is `tracebacks`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

Part = Literal["start", "frame", "source", "marks", "error", "chain", "text"]

_FRAME = re.compile(r'\s*(?:[|+ ]\s*)?(File "[^"]+", line \d+), in (.+)')
_MARKS = re.compile(r"\s{4,}[~^ ]*[~^][~^ ]*$")
_RAISE = re.compile(r"raise (?:\w+\.)*(\w+)")
_BUILDS = re.compile(r"(?:[\w., ]+ = |return )?[A-Z][a-z]\w*\(")  # what makes an object fails inside
_OUTERMOST = frozenset({"<module>", "run_scheduler_process", "run_detokenizer_process", "_bootstrap", "launch_server"})
_OPEN_CALLS = ("(*args", "**kwargs)", "func(", "fn(", "self.run(", "self._target(")  # a wrapper may enter anything


class Stack(Struct):
    """How far one traceback has come. Lines are counted by the caller."""

    part: Part = "start"
    frame: str = ""
    source: str = ""
    moved: int = 0


class Known(Struct):
    """Steps that were seen, so that the same traceback of another rank is recognised."""

    sources: dict[str, str] = field(default_factory=dict)
    steps: set[tuple[str, str]] = field(default_factory=set)  # frame → next frame, or the exception's type
    left: set[str] = field(default_factory=set)  # frames that some step leads away from


def part_of(text: str, error: bool) -> Part:
    """What a line is in a traceback. `error`: it reads like an exception at the margin."""
    if _FRAME.match(text):
        return "frame"
    if error:
        return "error"
    if _MARKS.match(text):
        return "marks"
    return "source" if text.startswith("    ") and text.strip() else "text"


def advance(stack: Stack, part: Part, text: str, known: Known, moved: int) -> None:
    """Note that a line was added to a stack."""
    stack.moved = moved
    if part in ("frame", "error"):
        step = _name(part, text)
        known.steps.add((stack.frame, step))
        if stack.frame:
            known.left.add(stack.frame)
        stack.frame, stack.source, stack.part = step, "", part
    elif part == "source" and stack.part == "frame":
        stack.source, stack.part = text.strip(), "source"
        known.sources[stack.frame] = stack.source
    elif part in ("start", "chain"):
        stack.frame, stack.source, stack.part = "", "", part


def owner(stacks: Sequence[Stack], part: Part, text: str, known: Known) -> int:
    """The index of the stack that a line goes on with; -1 when it fits none of them."""
    ranked = [
        (score, stack.moved, index)
        for index, stack in enumerate(stacks)
        if (score := _fit(stack, part, text, known)) > _NO
    ]
    return max(ranked, default=(0, 0, -1))[2]


_NO = -100


def _fit(stack: Stack, part: Part, text: str, known: Known) -> int:
    """How well a line goes on with a stack; _NO when it cannot."""
    match part:
        case "source":
            if stack.part != "frame":
                return _NO
            seen = known.sources.get(stack.frame)
            return 0 if seen is None else 5 if seen == text.strip() else -5
        case "marks":
            return 0 if stack.part == "source" and len(text) <= len(stack.source) + 4 else _NO
        case "frame" | "error":
            if stack.part in ("error", "chain") or (part == "error" and not stack.frame):
                return _NO
            step = _name(part, text)
            if (stack.frame, step) in known.steps:
                return 6
            wanted = _entered(stack, text) if part == "frame" else _ended(stack, step)
            return wanted - 2 * (stack.frame in known.left)
    return _NO


def _entered(stack: Stack, text: str) -> int:
    """Whether the last source line of a stack calls the function of a frame."""
    found = _FRAME.match(text)
    function = (found[2] if found else "").rsplit(".", 1)[-1]
    if not stack.frame:
        return 3 if function in _OUTERMOST else 0
    source = stack.source
    if source.startswith(("raise ", "assert ")):
        return -4
    if not source:
        return -1  # its own source is still to come, unless the file was not to be had
    if re.search(rf"\b{re.escape(function)}\b", source):
        return 4
    if function == "__init__" and re.search(r"\b[A-Z]\w*\(", source):
        return 3
    if function in ("<module>", "_call_with_frames_removed", "_find_and_load") and "import" in source:
        return 3
    return 1 if any(call in source for call in _OPEN_CALLS) or function.strip("_") in source else -1


def _ended(stack: Stack, kind: str) -> int:
    """Whether the last source line of a stack may raise an exception."""
    source = stack.source
    raised = _RAISE.match(source)
    if raised:
        return 5 if raised[1] == kind else -1
    if source.startswith("assert "):
        return 5 if kind == "AssertionError" else -3
    if kind in ("AssertionError", "NotImplementedError"):
        return -2
    if kind in ("ImportError", "ModuleNotFoundError") and "import" in source:
        return 3
    if kind in ("KeyError", "IndexError") and "[" in source:
        return 3
    return -2 if _BUILDS.match(source) else 0 if source else -1


def _name(part: Part, text: str) -> str:
    if part == "frame":
        found = _FRAME.match(text)
        return found[1] if found else text.strip()
    return text.partition(":")[0].strip().rsplit(".", 1)[-1]
