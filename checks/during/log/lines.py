"""Parse raw bytes of an engine log into Lines: time, rank and message, without colour codes, prefixes and bars.

One file contains the output of several processes in four formats (`[time RANKS] text`, `[time] LEVEL file.py:1: text`,
uvicorn, raw). `scan` searches for the lines that matter; `incidents` groups lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from checks.catalog.engine_phrases import ARGUMENTS

MAX_CHARS = 32_768
"""Longest text kept of one line. `server_args=` takes 26 kB; usage texts take 36 kB in many lines."""
MAX_ARGS_CHARS = 262_144
_TAIL_CHARS = 4_096
_ARGUMENTS = ARGUMENTS.encode()

# A record may start anywhere in a line: tqdm bars end without a newline, and the next record follows on the same line.
_HEAD = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)"
    r"(?P<rank>(?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\] ?"
)
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BAR = re.compile(r"\d+%\|[^|]*\|? *\d|\d+(?:\.\d+)?(?:it|ex)/s\]|\d+% Completed \|")
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?Z| ?[+-]\d\d:?\d\d)"
_SYSLOG_NAME = r"\S{1,64} [^\s\[]{1,64}\[\d+\]: "
# Prefixes that log collectors add to a line, in any order: docker compose, kubectl --timestamps/--prefix, journald,
# srun --label, mpirun --tag-output, ray, vLLM's workers, dmesg. A time stamp without a zone is the engine's own.
_PREFIX = re.compile(
    rf"(?:[\[(]{_ISO}[\])]|{_ISO}(?: ?\|)?)(?: std(?:out|err) [FP]| {_SYSLOG_NAME[:-1]})? ?"
    r"|(?P<compose>[\w.-]{1,64}) *\| |(?P<task>\d{1,4}): |\[(?P<mpi>\d+,\d+)\]<std(?:out|err)>:"
    r"|\[(?P<pod>pod/[^\]]{1,128})\] ?|\[ {0,6}\d{1,7}\.\d{6}\] "
    rf"|[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d {_SYSLOG_NAME}"
    r"|\((?P<worker>\w{1,64} pid=\d+)[^)]{0,64}\) (?:[A-Z]{4,8} \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]{1,64}:\d+\] )?"
)
_MOST_PREFIXES = 4
# --log-requests: prompts and completions are not messages of the engine.
_QUOTED = re.compile(r"(?:Receive|Finish): obj=|\{\"timestamp\": \"[^\"]{1,40}\", \"event\": \"request\.")
_QUOTED_CHARS = 40
_TORCH_RANK = re.compile(r"\[rank(\d+)\]: ?")


class Line(Struct, frozen=True, kw_only=True):
    """One line of a log, or one of the pieces into which `\\r` or a record start in its middle cuts it."""

    number: int  # from 1, counting only newlines, as an editor does
    text: str  # the message without time and ranks
    time: str = ""  # as printed; empty for raw lines
    rank: str = ""  # "DP0 TP1", "rank3"; empty with a single process
    headed: bool = False  # whether it began with [time]
    stream: str = ""  # container, pod, task or worker in a collector's prefix; empty without one


def parse(raw: bytes, number: int) -> Iterator[Line]:
    """Return the Lines of one newline-terminated piece of a log. Never raises; blank input gives one blank Line."""
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
    """Whether the line at `start` begins a record. Cheap, for the walk over the lines around a hit."""
    head = data.find(b"[20", start, start + 96)
    return head >= 0 and data.find(b"\n", start, head) < 0


def is_bar(text: str) -> bool:
    """Whether the text is a progress bar."""
    return _BAR.search(text) is not None


def _unwrapped(raw: bytes) -> bytes:
    """Return the text in a line of Docker's or a collector's log files, which contain one JSON object per line."""
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    text = next((record[key] for key in ("log", "message", "msg") if isinstance(record.get(key), str)), None)
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
    """Cut a piece where records begin; the text before the first head is raw text or a container's prefix."""
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
    """Return where the prefixes of collectors end, and the container, pod, task or worker that they name."""
    end, stream = 0, ""
    for _ in range(_MOST_PREFIXES):
        prefix = _PREFIX.match(text, end)
        if prefix is None:
            break
        end = prefix.end()
        stream = stream or (prefix[prefix.lastgroup] if prefix.lastgroup else "")
    return end, stream


def _glued(piece: str, head: re.Match[str]) -> bool:
    """Whether a head starts a record: after a progress bar or a prefix it does, inside a quoted message it does not."""
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
