"""Reserve a host for one gate at a time, with a lock on the host that is released when the connection ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from launcher.errors import HostCommandFailed, TransportTimeout
from launcher.transport.base import Command, Transport

# flock queues. Only the first line of the holder is shown, because a second one could read `held`.
# The dot per second needs a reader: without one the script ends, and its lock is released.
_HOLD = """\
command -v flock >/dev/null || exit 127
case $1 in "~"/*) cd || exit 74; place=${1#"~/"};; *) place=$1;; esac
mkdir -p "$place" && exec 9>>"$place/gate.lock" || exit 74
if ! flock -n 9; then
  { read -r holder <"$place/gate.holder"; } 2>/dev/null
  printf 'queued behind %s\\n' "$holder"
  flock -w "$2" 9 || exit 75
fi
printf '%s\\n' "$3" >"$place/gate.holder"
printf 'held\\n'
while printf '.\\n'; do sleep 1 9>&-; done
"""
TAKEN = 75


@contextmanager
def held(transport: Transport, work_dir: str, *, wait: float, who: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the gate's lock on the host while the block runs, after queueing for at most `wait` seconds.

    Raises TransportTimeout if another gate keeps the lock, and HostCommandFailed if the lock cannot be taken.
    """
    argv = ("sh", "-c", _HOLD, "sh", work_dir, str(max(1, int(wait))), who)
    stream = transport.stream(Command(argv=argv, label="gate_lock", timeout=30.0))
    try:
        buffer = b""
        for chunk in stream:
            buffer += chunk
            while b"\n" in buffer:
                line, _, buffer = buffer.partition(b"\n")
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
        message = f"another gate still uses {host} after {wait / 60:.0f} minutes"
        return TransportTimeout(message, where=host, hint="try again later, or raise `wait-minutes` in gate.yaml")
    hint = "check that flock is installed on the host (package util-linux)" if code == 127 else ""
    return HostCommandFailed(f"cannot take the gate's lock on {host} (exit {code})", where=host, hint=hint)
