"""A host for one gate at a time: a lock that lives on the host and goes with the connection that holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from launcher.errors import HostCommandFailed, TransportTimeout
from launcher.transport.base import Command, Transport

# flock queues; the word a second proves that somebody still listens: without a reader it ends, and so does the lock.
_HOLD = """\
case $1 in "~"/*) cd || exit 74; place=${1#"~/"};; *) place=$1;; esac
mkdir -p "$place" && exec 9>>"$place/gate.lock" || exit 74
if ! flock -n 9; then
  printf 'queued behind %s\\n' "$(cat "$place/gate.holder" 2>/dev/null)"
  flock -w "$2" 9 || exit 75
fi
printf '%s\\n' "$3" >"$place/gate.holder"
printf 'held\\n'
while printf '.\\n'; do sleep 1 9>&-; done
"""
TAKEN = 75


@contextmanager
def held(transport: Transport, work_dir: str, *, wait: float, who: str, say: Callable[[str], None]) -> Iterator[None]:
    """The host is ours while the block runs. `wait`: seconds to queue. Raises TransportTimeout, HostCommandFailed."""
    argv = ("sh", "-c", _HOLD, "sh", work_dir, str(max(1, int(wait))), who)
    stream = transport.stream(Command(argv=argv, label="gate_lock", timeout=30.0))
    try:
        seen = b""
        for chunk in stream:
            seen += chunk
            while b"\n" in seen:
                line, _, seen = seen.partition(b"\n")
                if line == b"held":
                    yield
                    return
                if line.startswith(b"queued"):
                    say(f"the host is in use: {line.decode('utf-8', 'replace')}")
        raise _refused(stream.result().exit, transport.name, wait)
    finally:
        stream.close()


def _refused(code: int, host: str, wait: float) -> Exception:
    if code == TAKEN:
        return TransportTimeout(f"another gate holds {host} for longer than {wait / 60:.0f} minutes", where=host)
    missing = " (is flock there? it is in util-linux)" if code == 127 else ""
    return HostCommandFailed(f"the lock of the gate cannot be taken on {host} (exit {code}){missing}", where=host)
