"""What the host knows of a run besides its log: the kernel's own words, and a log too large to copy.

Asked for by `diagnose run --host-evidence` and `--remote`; the judging is `flows.diagnosing` and `checks`.
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

MARGIN = 90.0  # seconds around a run in which the kernel may have spoken about it
MOST_BYTES = 16 << 20  # of a remote log that may travel
_FILTER_SECONDS = 900.0  # 10 GB from a slow disk


class KernelLog(Struct, frozen=True, kw_only=True):
    """Lines of the host's kernel log in the time of a run, in the form of log records, and what could not be read."""

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def host_evidence(
    transport: Transport, run: Run, now: float, *, kernel: bool, words: Sequence[str] = ()
) -> HostEvidence:
    """What the run's host says: its kernel log, and with `words` the run's log as it lies there.

    What cannot be had is a note where our copy of the log can be judged instead; else an error: HostCommandFailed,
    TransportTimeout, HostUnreachable.
    """
    notes = list[str]()
    said, log = KernelLog(), None
    try:
        log, said_there = remote_log(transport, run, words) if words else (None, [])
        notes += said_there
    except (HostCommandFailed, TransportTimeout) as error:
        if not has_log(run):
            raise
        notes.append(f"{error.message}; the local copy of the log was judged")
    try:
        said = kernel_log(transport, run, now) if kernel else said
    except (HostCommandFailed, TransportTimeout) as error:
        notes.append(f"the host's kernel log could not be read ({error.message})")
    return HostEvidence(kernel=said.lines, notes=(*notes, *said.notes), log=log)


def kernel_log(transport: Transport, run: Run, now: float) -> KernelLog:
    """Ask the host's kernel log. Raises HostCommandFailed, HostUnreachable; no permission is a note."""
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
    """What a diagnosis needs of the run's log on its host, chosen there, and notes on what could not be done.

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
    body, mark, end = output(transport, command).rpartition(b"END {")
    if not mark:
        raise HostCommandFailed(f"`{command.label}` on {transport.name} did not come to its end", where=transport.name)
    seen = document(transport, command, b"{" + end)
    if seen.get("missing"):
        raise HostCommandFailed(f"cannot read {path} on {transport.name}: {seen['missing']}", where=transport.name)
    kept = from_numbered(_rows(body), lines=seen["lines"], size=seen["bytes"], dropped=seen["dropped"])
    return kept, seen["notes"]


def _rows(body: bytes) -> Iterator[tuple[int, bytes]]:
    mask = Masker()
    for row in body.split(b"\n"):
        number, mark, text = row.partition(b":")
        if mark and number.isdigit():
            yield int(number), mask(text.decode("utf-8", "replace")).encode()
