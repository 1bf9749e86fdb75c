"""Guess which of several unfinished tracebacks a line belongs to, when processes write into one pipe line by line.

Such a line does not name its process. The evidence: a source line follows its `File` line; the source line above a
frame calls its function; `raise X` ends in `X`; ranks fail in the same way, so a step of one rank is known for the
others. Without evidence, the line continues the traceback that grew last. `incident_builder` builds the incidents;
`rejoined_tracebacks` tests whether a cause depends on these guesses.
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
_BUILDS = re.compile(r"(?:[\w., ]+ = |return )?[A-Z][a-z]\w*\(")  # a constructor call fails in a further frame
_OUTERMOST = frozenset({"<module>", "run_scheduler_process", "run_detokenizer_process", "_bootstrap", "launch_server"})
_IMPORTING = frozenset({"<module>", "_call_with_frames_removed", "_find_and_load"})
_OPEN_CALLS = ("(*args", "**kwargs)", "func(", "fn(", "self.run(", "self._target(")  # a wrapper may call any function


class Stack(Struct):
    """The state of one unfinished traceback. `moved` is the number of its last line, which the caller provides."""

    part: Part = "start"
    frame: str = ""
    source: str = ""
    moved: int = 0


class Known(Struct):
    """Steps that were read before, so that the same traceback of another rank is recognised."""

    sources: dict[str, str] = field(default_factory=dict)
    steps: set[tuple[str, str]] = field(default_factory=set)  # frame → next frame, or the exception's type
    left: set[str] = field(default_factory=set)  # frames whose next step is known


def part_of(text: str, error: bool) -> Part:
    """Return the role of a line in a traceback. `error`: the line looks like an unindented exception."""
    if _FRAME.match(text):
        return "frame"
    if error:
        return "error"
    if _MARKS.match(text):
        return "marks"
    return "source" if text.startswith("    ") and text.strip() else "text"


def advance(stack: Stack, part: Part, text: str, known: Known, moved: int) -> None:
    """Update a stack and the known steps after a line was added."""
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
    """Return the index of the stack that a line continues; -1 if it fits none."""
    ranked = [
        (score, stack.moved, index)
        for index, stack in enumerate(stacks)
        if (score := _fit(stack, part, text, known)) > IMPOSSIBLE
    ]
    return max(ranked, default=(0, 0, -1))[2]


# How well a line continues a stack. Only the order matters, and that two proofs outweigh one doubt.
SEEN_BEFORE = 6  # another rank took exactly this step
RAISED_HERE = 5  # `raise X` ends in X, `assert` in an AssertionError, the source line is the known one of this frame
CALLED_HERE = 4  # the source line names the function of the frame
MAY_LEAD_HERE = 3  # a constructor, an import, an index: the kind of line that leads to such a step
MAY_CALL = 1  # a wrapper that may call any function
NO_SIGN = 0
UNLIKELY = -1  # the source line does not lead to this step
LEADS_ELSEWHERE = -2  # the source line leads to another kind of step, or another step from this frame is known
NOT_AN_ASSERT = -3
ENDS_HERE = -4  # the source line raises: no frame can follow
OTHER_SOURCE = -5  # another source line is known for this frame
IMPOSSIBLE = -100


def _fit(stack: Stack, part: Part, text: str, known: Known) -> int:
    """Return how well a line continues a stack; IMPOSSIBLE if it cannot."""
    match part:
        case "source":
            return _fits_source(stack, text, known)
        case "marks":
            below_source = stack.part == "source" and len(text) <= len(stack.source) + 4
            return NO_SIGN if below_source else IMPOSSIBLE
        case "frame" | "error":
            if stack.part in ("error", "chain") or (part == "error" and not stack.frame):
                return IMPOSSIBLE
            step = _name(part, text)
            if (stack.frame, step) in known.steps:
                return SEEN_BEFORE
            evidence = _entered(stack, text) if part == "frame" else _ended(stack, step)
            return evidence + (LEADS_ELSEWHERE if stack.frame in known.left else 0)
    return IMPOSSIBLE


def _fits_source(stack: Stack, text: str, known: Known) -> int:
    if stack.part != "frame":
        return IMPOSSIBLE
    before = known.sources.get(stack.frame)
    if before is None:
        return NO_SIGN
    return RAISED_HERE if before == text.strip() else OTHER_SOURCE


def _entered(stack: Stack, text: str) -> int:
    """Return how well the last source line of a stack explains a call of a frame's function."""
    frame = _FRAME.match(text)
    function = (frame[2] if frame else "").rsplit(".", 1)[-1]
    source = stack.source
    if not stack.frame:
        return MAY_LEAD_HERE if function in _OUTERMOST else NO_SIGN
    if source.startswith(("raise ", "assert ")):
        return ENDS_HERE
    if not source:
        return UNLIKELY  # the source line of the last frame is still missing, unless its file could not be read
    if re.search(rf"\b{re.escape(function)}\b", source):
        return CALLED_HERE
    if function == "__init__" and re.search(r"\b[A-Z]\w*\(", source):
        return MAY_LEAD_HERE
    if function in _IMPORTING and "import" in source:
        return MAY_LEAD_HERE
    is_wrapper = any(call in source for call in _OPEN_CALLS) or function.strip("_") in source
    return MAY_CALL if is_wrapper else UNLIKELY


def _ended(stack: Stack, kind: str) -> int:
    """Return how well the last source line of a stack explains an exception of a type."""
    source = stack.source
    raised = _RAISE.match(source)
    if raised:
        return RAISED_HERE if raised[1] == kind else UNLIKELY
    if source.startswith("assert "):
        return RAISED_HERE if kind == "AssertionError" else NOT_AN_ASSERT
    if kind in ("AssertionError", "NotImplementedError"):
        return LEADS_ELSEWHERE
    if kind in ("ImportError", "ModuleNotFoundError") and "import" in source:
        return MAY_LEAD_HERE
    if kind in ("KeyError", "IndexError") and "[" in source:
        return MAY_LEAD_HERE
    if _BUILDS.match(source):
        return LEADS_ELSEWHERE
    return NO_SIGN if source else UNLIKELY


def _name(part: Part, text: str) -> str:
    if part == "frame":
        frame = _FRAME.match(text)
        return frame[1] if frame else text.strip()
    return text.partition(":")[0].strip().rsplit(".", 1)[-1]
