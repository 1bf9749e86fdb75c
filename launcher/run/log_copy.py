"""A run's frames, whatever happens to the connection: read in a thread, resumed by offset, copied into the Run.

The copy is masked line by line. `log.offset` remembers how far the host's log and our copy correspond, so that a
killed launcher or a lost link continues without a gap or a repetition.
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
    """The connection broke; another try follows. The last one ends the frames."""

    def __init__(self, reason: str, final: bool) -> None:
        self.reason = reason
        self.final = final


Item = Frame | Lost


class LogCopy:
    """Our copy of the server's log: complete lines, masked. Lines are handed on as they are written."""

    def __init__(self, run: Run, masker: Masker) -> None:
        self._run = run
        self._mask = masker
        self._pending = b""
        run.log.touch()
        self.offset = self._resume()

    @property
    def seen(self) -> int:
        """Bytes of the host's log that have arrived, an unfinished line included."""
        return self.offset + len(self._pending)

    def _resume(self) -> int:
        """Where the host's log continues; whatever our copy holds beyond that point is dropped."""
        mark = self._run.read("log.offset") or {"remote": 0, "local": 0}
        if self._run.log.stat().st_size < mark["local"]:
            mark = {"remote": 0, "local": 0}
        with self._run.log.open("r+b") as copy:
            copy.truncate(mark["local"])
        return int(mark["remote"])

    def feed(self, piece: LogBytes) -> list[str]:
        """Append; the lines that are now complete."""
        data = self._pending + piece.data
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        self._pending = data[cut:]
        return self._append(data[:cut], piece.offset + len(piece.data) - len(self._pending))

    def finish(self) -> list[str]:
        """The last line, when the log ends without a newline."""
        data, self._pending = self._pending, b""
        return self._append(data, self.offset + len(data)) if data else []

    def restart(self) -> None:
        """The log was replaced on the host: begin again."""
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
    """Frames of a run from a background thread. `close` ends it; the run itself is not touched."""

    def __init__(self, transport: Transport, run: Run, offset: int) -> None:
        self._transport, self._run = transport, run
        self._offset = offset
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._work, name="tail", daemon=True)
        self._thread.start()

    def next(self, timeout: float) -> Item | None:
        """The next frame, or None when there is none within `timeout` seconds."""
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

    def _work(self) -> None:
        for pause in (*RETRY_SECONDS, None):
            reason = "the stream ended without a word"
            try:
                if self._read() or self._closed.is_set():
                    return
            except LauncherError as error:
                reason = error.message
            except Exception as error:  # the thread must never die silently
                reason = f"{type(error).__name__}: {error}"
            self._items.put(Lost(reason, final=pause is None))
            if pause is None or self._closed.wait(pause):
                return

    def _read(self) -> bool:
        """Read one stream to its end; True when the run itself ended."""
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
            raise HostUnreachable(f"the follower ended with {result.exit}: {last_line(result.stderr)}")
        return False
