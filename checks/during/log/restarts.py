"""Find where each start of an engine begins in a log of several starts: `>>`, nohup.out, a supervisor.

The sign of a start is its `server_args=` line or, if it failed before that line, a usage error or a traceback of the
main process. All ranks and nodes of one launch are one start. `diagnosis` explains why a start ended.
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
"""Number of starts before the last one that are judged and reported individually."""
_MOST_LEAD = 400  # lines above the first sign of a start that may belong to it


def begins(lines: Sequence[Line], all_incidents: Sequence[Incident]) -> tuple[int, ...]:
    """Return the numbers of the lines at which starts begin, always including the first line of the log."""
    if not lines:
        return ()
    if not _may_be_several(lines):
        return (lines[0].number,)
    leads = (_lead(lines, mark, all_incidents) for mark in _marks(lines, all_incidents))
    return tuple(sorted({lines[0].number, *leads}))


def latest(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines of the last start."""
    if not _may_be_several(lines):
        return lines
    first = begins(lines, incidents(lines))[-1]
    return [line for line in lines if line.number >= first]


def _may_be_several(lines: Sequence[Line]) -> bool:
    """Whether the log may contain several starts: a cheap test, since nearly every log contains one."""
    named = sum(ARGUMENTS in line.text for line in lines)
    imported = sum(map(is_new_process, lines))
    early = sum(line.text.startswith("usage: ") or _MAIN.match(line.text) is not None for line in lines)
    return named > 1 or imported > 1 or early > 1 or (named > 0 and early > 0)


class _Start(Struct):
    """The signs read so far of the current start."""

    imported: bool = False  # its import was read, but not yet its arguments
    named: bool = False  # its arguments were printed
    nodes: bool = False  # its arguments name several nodes, each of which prints them
    moved: bool = False  # it began to load weights
    ended: bool = False  # its main process or a rank has ended
    failed: bool = False  # a traceback was printed

    def follows(self, sign: str, nodes: bool) -> bool:
        """Whether a sign (import, early end, arguments) belongs to the next start instead of this one."""
        if self.imported and sign != "import":
            return False
        if nodes and not self.named:
            return False  # another node of the same launch
        gone = self.ended or self.moved
        if sign == "arguments":
            return gone
        return gone or (self.named and not self.nodes) or (sign == "import" and self.failed)


def _marks(lines: Sequence[Line], all_incidents: Sequence[Incident]) -> Iterator[int]:
    """Return the numbers of the lines that are the first sign of a start after the first one."""
    errors = {incident.line: incident for incident in all_incidents if incident.kind in ("usage", "traceback")}
    start = _Start()
    for line in lines:
        incident = errors.get(line.number)
        sign = _sign(line, incident)
        nodes = sign == "arguments" and _NODES.search(line.text) is not None
        if sign and start.follows(sign, nodes):
            yield line.number
            start = _Start()
        start.imported = sign == "import" or (start.imported and not sign)
        start.named = start.named or sign == "arguments"
        start.nodes = start.nodes or nodes
        start.failed = start.failed or incident is not None
        if sign == "arguments":  # a long line that is neither an end nor progress
            continue
        ended = sign == "early end" or _END.search(line.text) is not None or (start.named and incident is not None)
        start.ended = start.ended or ended
        start.moved = start.moved or (start.named and _PROGRESS.search(line.text) is not None)


def _sign(line: Line, incident: Incident | None) -> str:
    """Return the sign of a start that a line is: import, early end, arguments; empty for all other lines."""
    if _ARGS.match(line.text) and not line.rank:
        return "arguments"
    if is_new_process(line):
        return "import"
    return "early end" if incident is not None and _is_early(incident) else ""


def _is_early(incident: Incident) -> bool:
    """Whether it ended a main process before the process started any other: the incident is a whole start."""
    if incident.kind == "usage":
        return any(_USAGE.match(line.text) for line in (incident.lines[0], incident.lines[-1]))
    functions = {frame.function for part in incident.chain for frame in part.frames}
    if "spawn_main" in functions or incident.rank:
        return False
    return bool(functions & _ARGUMENTS) or any(map(_imports, incident.lines, incident.lines[1:]))


def _imports(frame: Line, source: Line) -> bool:
    """Whether the main program was still importing: the source line of its outermost frame is an import."""
    return _MAIN.match(frame.text) is not None and source.text.strip().startswith(("from ", "import "))


def _lead(lines: Sequence[Line], mark: int, all_incidents: Sequence[Incident]) -> int:
    """Return the first line of a start from its first sign: messages on its imports and arguments come before it."""
    place = next(index for index, line in enumerate(lines) if line.number == mark)
    failures = (item for item in all_incidents if item.line < mark and item.kind != "line")
    floor = max((item.lines[-1].number for item in failures), default=0)
    first = mark
    if place and lines[place].text.startswith("Traceback") and "kill_process_tree" in lines[place - 1].text:
        place -= 1  # printed by the process that prints the traceback
    for line in reversed(lines[max(0, place - _MOST_LEAD) : place]):
        if line.number <= floor or line.rank or is_bar(line.text) or _belongs_before(line.text):
            break
        first = line.number
        if is_new_process(line):
            break
    return first


def _belongs_before(text: str) -> bool:
    """Whether a line shows an engine at work, or its end: a new start prints neither before its arguments."""
    return ARGUMENTS in text or any(pattern.search(text) for pattern in (_WORK, _END, _TAIL))
