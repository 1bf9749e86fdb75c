"""Collect evidence on a run from its host: the kernel log, and a server log that is too large to copy.

`diagnose run --host-evidence` and `--remote` request it; `flows.diagnose.run_diagnosis` and `checks` judge it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from checks.during.log.repeated_lines import SAME_LIMIT
from checks.during.log.scan import EDGE_BYTES, FOLLOW_LINES, LEAD_LINES, Scanned, from_numbered
from launcher import hostside
from launcher.errors import HostCommandFailed, TransportTimeout
from launcher.flows.diagnose.run_diagnosis import HostEvidence, has_log
from launcher.plan.launch_script import run_folder
from launcher.run.store import Run
from launcher.secrets import Masker
from launcher.transport.answers import ask, document, output
from launcher.transport.base import Transport

MARGIN = 90.0  # seconds before and after a run in which a kernel message may concern it
MOST_BYTES = 16 << 20  # limit for the lines of a remote log that are transferred
_FILTER_SECONDS = 900.0  # enough for 10 GB on a slow disk


class KernelLog(Struct, frozen=True, kw_only=True):
    """The host's kernel log during a run, in the form of log records, and notes on what could not be read."""

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def host_evidence(
    transport: Transport, run: Run, now: float, *, kernel: bool, words: Sequence[str] = ()
) -> HostEvidence:
    """Return evidence from the run's host: with `kernel` its kernel log, with `words` the run's log, filtered there.

    A kernel log that cannot be read becomes a note. So does the run's log, if a local copy can be judged instead;
    otherwise raises HostCommandFailed or TransportTimeout. Raises HostUnreachable.
    """
    notes = list[str]()
    kernel_part, log = KernelLog(), None
    try:
        log, log_notes = remote_log(transport, run, words) if words else (None, [])
        notes += log_notes
    except (HostCommandFailed, TransportTimeout) as error:
        if not has_log(run):
            raise
        notes.append(f"{error.message}; the local copy of the log was diagnosed instead")
    try:
        kernel_part = kernel_log(transport, run, now) if kernel else kernel_part
    except (HostCommandFailed, TransportTimeout) as error:
        notes.append(f"the host's kernel log could not be read ({error.message})")
    return HostEvidence(kernel=kernel_part.lines, notes=(*notes, *kernel_part.notes), log=log)


def kernel_log(transport: Transport, run: Run, now: float) -> KernelLog:
    """Read the host's kernel log; a missing permission becomes a note.

    Raises HostCommandFailed, HostUnreachable, TransportTimeout.
    """
    info = run.info
    since = float(info.get("started") or info.get("created") or 0) - MARGIN
    until = float(info.get("ended") or now) + MARGIN
    command = hostside.command("kernel_log", {"since": since, "until": until}, python=run.plan.python)
    answer = ask(transport, command)
    notes = [] if answer["source"] else [f"the host's kernel log could not be read ({'; '.join(answer['notes'])})"]
    if answer["oom_kills"]:
        notes.append(f"the memory limit of the host's container has killed {answer['oom_kills']} processes so far")
    return KernelLog(lines=tuple(answer["lines"]), notes=tuple(notes))


def remote_log(transport: Transport, run: Run, words: Sequence[str]) -> tuple[Scanned, Sequence[str]]:
    """Filter the run's log on its host. Return the lines that a diagnosis needs, and notes on parts not searched.

    Raises HostCommandFailed, HostUnreachable, TransportTimeout.
    """
    arguments = {
        "path": (path := f"{run_folder(run.plan, run.id)}/server.log"),
        "words": list(words),
        "lead": LEAD_LINES,
        "follow": FOLLOW_LINES,
        "same": SAME_LIMIT,
        "edge": EDGE_BYTES,
        "most": MOST_BYTES,
    }
    command = hostside.command("filter_log", arguments, python=run.plan.python, timeout=_FILTER_SECONDS)
    body, mark, trailer = output(transport, command).rpartition(b"END {")
    if not mark:
        message = f"`{command.label}` on {transport.name} ended before its output was complete"
        raise HostCommandFailed(message, where=transport.name)
    totals = document(transport, command, b"{" + trailer)
    if totals.get("missing"):
        raise HostCommandFailed(f"cannot read {path} on {transport.name}: {totals['missing']}", where=transport.name)
    scanned = from_numbered(_rows(body), lines=totals["lines"], size=totals["bytes"], dropped=totals["dropped"])
    return scanned, totals["notes"]


def _rows(body: bytes) -> Iterator[tuple[int, bytes]]:
    mask = Masker()
    for row in body.split(b"\n"):
        number, mark, text = row.partition(b":")
        if mark and number.isdigit():
            yield int(number), mask(text.decode("utf-8", "replace")).encode()
