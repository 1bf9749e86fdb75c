"""The Transport for a recorded Run: it replays what a host answered, so that the same flow runs without the host.

Facts, start, log, process exit and the server's identity come from the run's folder. Nothing is computed and no probe
is answered: the verdicts of a replayed run are the recorded ones. The log is delivered immediately, not in real time.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launcher.errors import HostCommandFailed, UsageError
from launcher.transport.base import Command, Result

PREFIX = "replay:"


class ReplayTransport:
    """Answers commands by their label. A label without a recorded answer raises HostCommandFailed."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "run.json").exists():
            raise UsageError(
                f"`{folder}` is not a run folder: it has no run.json", hint="list runs and their folders: `launch runs`"
            )
        self._folder = folder
        self._info = _read(folder, "run") or {}

    @property
    def name(self) -> str:
        return f"{PREFIX}{self._folder}"

    def run(self, command: Command) -> Result:
        """Return the recorded answer. Raises HostCommandFailed when there is none."""
        answer: Any
        match command.label:
            case "host_facts":
                answer = _read(self._folder, "facts")
            case "start":
                answer = {"started": {key: self._info.get(key, 0) for key in ("pid", "start", "boot")}}
            case "look":
                answer = [self._look()]
            case "stop_tree":
                answer = {"state": "exited", "code": self._info.get("exit"), "forced": "", "survivors": [],
                          "port_free": True, "gpu_pids": []}  # fmt: skip
            case _:
                answer = None
        if answer is None:
            raise HostCommandFailed(f"the recorded run contains no answer to `{command.label}`", where=self.name)
        return Result(exit=0, stdout=json.dumps(answer).encode(), stderr=b"", seconds=0.0)

    def stream(self, command: Command) -> ReplayStream:
        """Return the recorded log as frames of `follow`; for any other command, its recorded answer."""
        if command.label != "follow":
            return ReplayStream(iter([self.run(command).stdout + b"\n"]))
        return ReplayStream(self._frames())

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:  # noqa: ARG002  one server, no network
        """Open a stream to a server that answers /health and /server_info.

        Raises ConnectionRefusedError when the recorded server never became ready.
        """
        if not self._was_ready():
            raise ConnectionRefusedError(f"{host}:{port}: the recorded server never became ready")
        ours, theirs = socket.socketpair()
        threading.Thread(target=_serve, args=(theirs, _read(self._folder, "server_info") or {}), daemon=True).start()
        return ours

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _was_ready(self) -> bool:
        return "ready" in self._info or self._info.get("state") in ("ready", "validated")

    def _look(self) -> dict[str, Any]:
        log = self._folder / "server.log"
        return {"run": self._folder.name, "state": "running", "code": None, "pid": self._info.get("pid"),
                "log_bytes": log.stat().st_size if log.exists() else 0, "listening": True}  # fmt: skip

    def _frames(self) -> Iterator[bytes]:
        log = self._folder / "server.log"
        data = log.read_bytes() if log.exists() else b""
        yield json.dumps({"log": len(data), "at": 0}).encode() + b"\n" + data
        code = self._info.get("exit")
        if not self._was_ready():
            yield json.dumps({"end": "exited" if code is not None else "vanished", "code": code}).encode() + b"\n"
            return
        pause = threading.Event()
        while True:
            pause.wait(0.2)
            yield b""


class ReplayStream:
    """Recorded output as a Stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if self._closed:
                return
            yield chunk

    def result(self) -> Result:
        """Return success: the frames report how the run itself ended."""
        return Result(exit=0, stdout=b"", stderr=b"", seconds=0.0)

    def close(self) -> None:
        """End the iteration."""
        self._closed = True


def _serve(stream: socket.socket, info: dict[str, Any]) -> None:
    """Answer requests on one connection until it closes."""
    with stream:
        while True:
            request = b""
            while b"\r\n\r\n" not in request:
                chunk = stream.recv(65536)
                if not chunk:
                    return
                request += chunk
            path = request.split(b" ", 2)[1]
            body = {b"/health": b"", b"/server_info": json.dumps(info).encode()}.get(path)
            status = b"404 Not Found" if body is None else b"200 OK"
            stream.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body or b""), body or b""))


def _read(folder: Path, name: str) -> Any:
    try:
        return json.loads((folder / f"{name}.json").read_text())
    except FileNotFoundError:
        return None
