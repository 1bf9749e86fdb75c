"""Raw bytes of an engine log → Lines: time, rank and message apart, colour codes, container prefixes and bars removed.

One file holds several processes' output in four shapes (`[time RANKS] text`, `[time] LEVEL file.py:1: text`, uvicorn,
raw). Not the search for what matters (`scan`), not the grouping into incidents (`tracebacks`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from checks.catalog.engine_phrases import ARGUMENTS

MAX_CHARS = 32_768
"""Longest text kept of one line; `server_args=` takes 26 kB, usage texts 36 kB in many lines."""
MAX_ARGS_CHARS = 262_144
_TAIL_CHARS = 4_096
_ARGUMENTS = ARGUMENTS.encode()

# A record starts anywhere in a line: tqdm bars end without a newline and the next record is glued to them.
_HEAD = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)"
    r"(?P<rank>(?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\] ?"
)
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BAR = re.compile(r"\d+%\|[^|]*\|? *\d|\d+(?:\.\d+)?(?:it|ex)/s\]|\d+% Completed \|")
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?Z| ?[+-]\d\d:?\d\d)"
_SYSLOG_NAME = r"\S{1,64} [^\s\[]{1,64}\[\d+\]: "
# What collectors put in front of a line, by shape and in any order: docker compose, kubectl --timestamps/--prefix,
# journald, srun --label, mpirun --tag-output, ray, vLLM's workers, dmesg. A stamp needs a zone, or it is the engine's.
_PREFIX = re.compile(
    rf"(?:[\[(]{_ISO}[\])]|{_ISO}(?: ?\|)?)(?: std(?:out|err) [FP]| {_SYSLOG_NAME[:-1]})? ?"
    r"|(?P<compose>[\w.-]{1,64}) *\| |(?P<task>\d{1,4}): |\[(?P<mpi>\d+,\d+)\]<std(?:out|err)>:"
    r"|\[(?P<pod>pod/[^\]]{1,128})\] ?|\[ {0,6}\d{1,7}\.\d{6}\] "
    rf"|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d {_SYSLOG_NAME}"
    r"|\((?P<worker>\w{1,64} pid=\d+)[^)]{0,64}\) (?:[A-Z]{4,8} \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]{1,64}:\d+\] )?"
)
_MOST_PREFIXES = 4
# --log-requests: what users asked and what the model said is no word of the engine's
_QUOTED = re.compile(r"(?:Receive|Finish): obj=|\{\"timestamp\": \"[^\"]{1,40}\", \"event\": \"request\.")
_QUOTED_CHARS = 40
_TORCH_RANK = re.compile(r"\[rank(\d+)\]: ?")


class Line(Struct, frozen=True, kw_only=True):
    """One line of a log, or one of the pieces that `\\r` or a glued record make of it."""

    number: int  # from 1, counting newlines only, as an editor does
    text: str  # the message without time and ranks
    time: str = ""  # as printed; empty for raw lines
    rank: str = ""  # "DP0 TP1", "rank3"; empty with one process
    headed: bool = False  # it began with [time]
    stream: str = ""  # the container, pod, task or worker that a collector put in front; empty without


def parse(raw: bytes, number: int) -> Iterator[Line]:
    """The Lines of one newline-terminated piece of a log. Never raises; blank input gives one blank Line."""
    if raw.startswith(b'{"') and len(raw) < MAX_ARGS_CHARS:
        raw = _unwrapped(raw)
    pieces = [piece for piece in raw.split(b"\r") if piece.strip()]
    if not pieces:
        yield Line(number=number, text="")
        return
    last = len(pieces) - 1
    for index, piece in enumerate(pieces):
        text = _decode(piece)
        if index == last or not _BAR.search(text) or "[2" in text:
            yield from _records(text, number)


def is_record_start(data: bytes, start: int) -> bool:
    """Whether the line that begins at `start` begins a record (cheap: for walking over neighbours of a hit)."""
    head = data.find(b"[20", start, start + 96)
    return head >= 0 and data.find(b"\n", start, head) < 0


def is_bar(text: str) -> bool:
    """Whether the text is a progress bar."""
    return _BAR.search(text) is not None


def _unwrapped(raw: bytes) -> bytes:
    """The text in a line of Docker's own log files, or of a collector's: one JSON object a line."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    text = next((found[key] for key in ("log", "message", "msg") if isinstance(found.get(key), str)), None)
    return raw if text is None else text.rstrip("\n").replace("\n", " ").encode("utf-8", "replace")


def _decode(raw: bytes) -> str:
    limit = MAX_ARGS_CHARS if _ARGUMENTS in raw[:256] else MAX_CHARS
    if len(raw) > limit:
        raw = raw[: limit - _TAIL_CHARS] + b" ... " + raw[-_TAIL_CHARS:]
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _CONTROL.sub("", text) if not text.isprintable() else text


def _records(piece: str, number: int) -> Iterator[Line]:
    """A piece cut where records begin; what stands before the first head is raw text or a container's prefix."""
    heads = list(_HEAD.finditer(piece)) if "[2" in piece else []
    heads = [head for index, head in enumerate(heads) if index == 0 or _glued(piece, head)]
    if heads and not _glued(piece, heads[0]):
        heads = []
    lead = piece[: heads[0].start()] if heads else piece
    end, stream = _prefix(lead)
    if not heads or (lead.strip() and end != len(lead)):
        yield _raw(lead, number)
    for index, head in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(piece)
        text = _without_quotes(piece[head.end() : end])
        rank = head["rank"].strip()
        yield Line(number=number, text=text, time=head["time"], rank=rank, headed=True, stream=stream)


def _prefix(text: str) -> tuple[int, str]:
    """Where the prefixes of collectors end, and the container, pod, task or worker that they name."""
    end, stream = 0, ""
    for _ in range(_MOST_PREFIXES):
        prefix = _PREFIX.match(text, end)
        if prefix is None:
            break
        end = prefix.end()
        stream = stream or (prefix[prefix.lastgroup] if prefix.lastgroup else "")
    return end, stream


def _glued(piece: str, head: re.Match[str]) -> bool:
    """A head in the middle counts when a bar or a container's prefix precedes it, not inside a quoted message."""
    lead = piece[: head.start()]
    return not lead.strip() or _prefix(lead)[0] > 0 or is_bar(lead) or lead.endswith(("]", "%", "s"))


def _raw(text: str, number: int) -> Line:
    end, stream = _prefix(text)
    text, rank = text[end:], ""
    torch_rank = _TORCH_RANK.match(text)
    if torch_rank:
        text, rank = text[torch_rank.end() :], f"rank{torch_rank[1]}"
    return Line(number=number, text=_without_quotes(text), rank=rank, stream=stream)


def _without_quotes(text: str) -> str:
    return text[:_QUOTED_CHARS] + " ..." if _QUOTED.match(text) else text
