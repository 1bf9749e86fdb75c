"""Reads a run's frames in a thread, resumes by offset after a lost connection, and copies the log into the Run.

Secrets are masked line by line. `log.offset` records up to where the host's log and the copy correspond, so that
after a killed launcher or a lost connection the copy continues without a gap or a repetition.
"""

from __future__ import annotations

import queue
import threading

from launcher.errors import HostUnreachable, LauncherError
from launcher.run.frames import Ended, Frame, FrameReader, LogBytes, Replaced, Sample
from launcher.run.remote import follow_command
from launcher.run.store import Run
from launcher.secrets import Masker
from launcher.transport.answers import last_line
from launcher.transport.base import Stream, Transport

RETRY_SECONDS = (0.5, 1, 2, 5, 10, 15, 30, 30, 30)


class Lost:
    """The connection was lost. Another attempt follows unless `final` is set."""

    def __init__(self, reason: str, final: bool) -> None:
        self.reason = reason
        self.final = final


Item = Frame | Lost


class LogCopy:
    """The local copy of the server's log: complete lines, with secrets masked. Each line written is also returned."""

    def __init__(self, run: Run, masker: Masker) -> None:
        self._run = run
        self._mask = masker
        self._pending = b""
        run.log.touch()
        self.offset = self._resume()

    @property
    def seen(self) -> int:
        """Number of bytes of the host's log that have arrived, including an unfinished line."""
        return self.offset + len(self._pending)

    def _resume(self) -> int:
        """Truncate the copy to the recorded position; return the offset at which the host's log continues."""
        mark = self._run.read("log.offset") or {"remote": 0, "local": 0}
        if self._run.log.stat().st_size < mark["local"]:
            mark = {"remote": 0, "local": 0}
        with self._run.log.open("r+b") as copy:
            copy.truncate(mark["local"])
        return int(mark["remote"])

    def feed(self, piece: LogBytes) -> list[str]:
        """Append a piece of the log; return the lines that it completes."""
        data = self._pending + piece.data
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        self._pending = data[cut:]
        return self._append(data[:cut], piece.offset + len(piece.data) - len(self._pending))

    def finish(self) -> list[str]:
        """Append and return the last line, when the log ends without a newline."""
        data, self._pending = self._pending, b""
        return self._append(data, self.offset + len(data)) if data else []

    def restart(self) -> None:
        """Empty the copy: the log was replaced on the host."""
        self._pending = b""
        self.offset = 0
        self._run.log.write_bytes(b"")

    def _append(self, data: bytes, remote: int) -> list[str]:
        if not data:
            return []
        text = self._mask(data.decode("utf-8", "surrogateescape"))
        with self._run.log.open("ab") as copy:
            copy.write(text.encode("utf-8", "surrogateescape"))
            local = copy.tell()
        self.offset = remote
        self._run.write("log.offset", {"remote": remote, "local": local})
        return [line for line in text.replace("\r", "\n").split("\n") if line]


class Tail:
    """Reads the frames of a run in a background thread. `close` ends the thread, not the run."""

    def __init__(self, transport: Transport, run: Run, offset: int) -> None:
        self._transport, self._run = transport, run
        self._offset = offset
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._read_with_retries, name="tail", daemon=True)
        self._thread.start()

    def next(self, timeout: float) -> Item | None:
        """Return the next frame, or None when none arrives within `timeout` seconds."""
        try:
            return self._items.get(timeout=timeout)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stop reading."""
        self._closed.set()
        if self._stream is not None:
            self._stream.close()
        self._thread.join(timeout=5)

    def _read_with_retries(self) -> None:
        for pause in (*RETRY_SECONDS, None):
            reason = "the log stream ended unexpectedly"
            try:
                if self._read_stream() or self._closed.is_set():
                    return
            except LauncherError as error:
                reason = error.message
            except Exception as error:  # the thread must never die silently
                reason = f"{type(error).__name__}: {error}"
            self._items.put(Lost(reason, final=pause is None))
            if pause is None or self._closed.wait(pause):
                return

    def _read_stream(self) -> bool:
        """Read one stream to its end; return whether the run itself ended. Raises LauncherError."""
        frames = FrameReader()
        self._stream = self._transport.stream(follow_command(self._run, self._offset))
        for chunk in self._stream:
            if self._closed.is_set():
                return True
            for frame in frames.feed(chunk):
                self._items.put(frame)
                match frame:
                    case LogBytes():
                        self._offset = frame.offset + len(frame.data)
                    case Replaced():
                        self._offset = 0
                    case Ended():
                        return True
                    case Sample():
                        pass
        result = self._stream.result()
        if result.exit != 0:
            raise HostUnreachable(
                f"the program that follows the log exited with {result.exit}: {last_line(result.stderr)}"
            )
        return False
