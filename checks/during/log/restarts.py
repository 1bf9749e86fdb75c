"""Where an engine was started, in a log that several starts were written to: `>>`, nohup.out, a supervisor.

A start shows as its `server_args=` line, or, where it got no further than its arguments, as a usage error or as a
traceback of the main process. Ranks and nodes of one launch are one start. Why a start ended is `diagnosis`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from checks.catalog.engine_phrases import ARGUMENTS, ASKED_TO_STOP, DIED, LEFT, READY
from checks.during.log.incident_builder import is_new_process
from checks.during.log.incidents import Incident, incidents
from checks.during.log.lines import Line, is_bar

_ARGS = re.compile(rf"{ARGUMENTS}(?:ServerArgs\(|\{{)")
_NODES = re.compile(r"\bnnodes(?:=|': )(?!1\b)\d")
_PROGRESS = re.compile(rf"Load weight begin|Load weight end|KV Cache is allocated|{READY}|Application startup")
_END = re.compile("|".join((DIED, ASKED_TO_STOP, LEFT)))
_WORK = re.compile(
    r"(?:Decode|Prefill) batch|avail mem=|KV Cache is|Memory pool|[Cc]apture|max_total_num_tokens"
    r"|Loading \w+ checkpoint|Init torch distributed|^INFO:  "
    rf"|{READY}"
)
_TAIL = re.compile(
    r"kill_process_tree called|resource_tracker|leaked \w+ objects|destroy_process_group|rc=\d|exit code"
)
_USAGE = re.compile(r"usage: .*(?:sglang|launch_server)|(?:sglang|launch_server)\S*(?: serve)?: error: ")
_MAIN = re.compile(r'\s*File "(?:[^"]*/)?(?:launch_server|__main__|sglang)(?:\.py)?", line \d+, in <module>')
_ARGUMENTS = frozenset({"prepare_server_args", "from_cli_args", "resolve_once", "run_resolution_pipeline"})
MOST_SHOWN = 7
"""How many starts before the last one are judged and reported one by one."""
_MOST_LEAD = 400  # lines above its first sign that may belong to a start


def begins(lines: Sequence[Line], found: Sequence[Incident]) -> tuple[int, ...]:
    """Numbers of the lines at which starts begin, the first of the log always among them."""
    if not lines:
        return ()
    if not _may_be_several(lines):
        return (lines[0].number,)
    leads = (_lead(lines, mark, found) for mark in _marks(lines, found))
    return tuple(sorted({lines[0].number, *leads}))


def latest(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines of the last start."""
    if not _may_be_several(lines):
        return lines
    first = begins(lines, incidents(lines))[-1]
    return [line for line in lines if line.number >= first]


def _may_be_several(lines: Sequence[Line]) -> bool:
    """A quick look, for nearly every log holds one start."""
    named = sum(ARGUMENTS in line.text for line in lines)
    imported = sum(map(is_new_process, lines))
    early = sum(line.text.startswith("usage: ") or _MAIN.match(line.text) is not None for line in lines)
    return named > 1 or imported > 1 or early > 1 or (named > 0 and early > 0)


class _Start(Struct):
    """What was seen of the start that is being read."""

    imported: bool = False  # known by its import, its arguments are still to come
    named: bool = False  # its arguments were printed
    nodes: bool = False  # they name several nodes, each of which prints them
    moved: bool = False  # it began to load
    ended: bool = False  # its main process or a rank is gone
    failed: bool = False  # some traceback was printed

    def follows(self, sign: str, nodes: bool) -> bool:
        """Whether a sign (import, early end, arguments) belongs to another start than what was seen so far."""
        if self.imported and sign != "import":
            return False
        if nodes and not self.named:
            return False  # another node of the same launch
        gone = self.ended or self.moved
        if sign == "arguments":
            return gone
        return gone or (self.named and not self.nodes) or (sign == "import" and self.failed)


def _marks(lines: Sequence[Line], found: Sequence[Incident]) -> Iterator[int]:
    """The lines by which a start that is not the first is known."""
    whole = {incident.line: incident for incident in found if incident.kind in ("usage", "traceback")}
    seen = _Start()
    for line in lines:
        incident = whole.get(line.number)
        sign = _sign(line, incident)
        nodes = sign == "arguments" and _NODES.search(line.text) is not None
        if sign and seen.follows(sign, nodes):
            yield line.number
            seen = _Start()
        seen.imported = sign == "import" or (seen.imported and not sign)
        seen.named = seen.named or sign == "arguments"
        seen.nodes = seen.nodes or nodes
        seen.failed = seen.failed or incident is not None
        if sign == "arguments":  # long, and neither an end nor progress
            continue
        over = sign == "early end" or _END.search(line.text) is not None or (seen.named and incident is not None)
        seen.ended = seen.ended or over
        seen.moved = seen.moved or (seen.named and _PROGRESS.search(line.text) is not None)


def _sign(line: Line, incident: Incident | None) -> str:
    """What of a start a line shows: import, early end, arguments; empty for all others."""
    if _ARGS.match(line.text) and not line.rank:
        return "arguments"
    if is_new_process(line):
        return "import"
    return "early end" if incident is not None and _is_early(incident) else ""


def _is_early(incident: Incident) -> bool:
    """Whether it ended a main process before that had anything started: the whole life of one start."""
    if incident.kind == "usage":
        return any(_USAGE.match(line.text) for line in (incident.lines[0], incident.lines[-1]))
    functions = {frame.function for part in incident.chain for frame in part.frames}
    if "spawn_main" in functions or incident.rank:
        return False
    return bool(functions & _ARGUMENTS) or any(map(_imports, incident.lines, incident.lines[1:]))


def _imports(frame: Line, source: Line) -> bool:
    """Whether the program itself was still importing: an import is what its outermost frame does."""
    return _MAIN.match(frame.text) is not None and source.text.strip().startswith(("from ", "import "))


def _lead(lines: Sequence[Line], mark: int, found: Sequence[Incident]) -> int:
    """The first line of a start known by a later one: warnings of its imports, what it said about its arguments."""
    place = next(index for index, line in enumerate(lines) if line.number == mark)
    floor = max((item.lines[-1].number for item in found if item.line < mark and item.kind != "line"), default=0)
    first = mark
    if place and lines[place].text.startswith("Traceback") and "kill_process_tree" in lines[place - 1].text:
        place -= 1  # said by the process that prints the traceback
    for line in reversed(lines[max(0, place - _MOST_LEAD) : place]):
        if line.number <= floor or line.rank or is_bar(line.text) or _belongs_before(line.text):
            break
        first = line.number
        if is_new_process(line):
            break
    return first


def _belongs_before(text: str) -> bool:
    """Whether a line shows an engine at work, or its end: nothing that a start says before its arguments."""
    return ARGUMENTS in text or any(pattern.search(text) for pattern in (_WORK, _END, _TAIL))
