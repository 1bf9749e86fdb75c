"""A recorded Run as a Transport: the same flow plays again what a host once answered, without the host.

Facts, start, log, processes' end and the server's identity come from the run's folder. Nothing is computed here and
no probe is answered: the verdicts of a replayed run are the recorded ones. The log comes at once, not in real time.
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
    """Answers by a command's label. A label that the run holds nothing for fails as an unreachable program would."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "run.json").exists():
            raise UsageError(
                f"{folder} is no run: it has no run.json", hint="`launch runs` lists runs and their folders"
            )
        self._folder = folder
        self._info = _read(folder, "run") or {}

    @property
    def name(self) -> str:
        return f"{PREFIX}{self._folder}"

    def run(self, command: Command) -> Result:
        """The recorded answer. Raises HostCommandFailed for what was not recorded."""
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
            raise HostCommandFailed(f"the recorded run holds no answer to `{command.label}`", where=self.name)
        return Result(exit=0, stdout=json.dumps(answer).encode(), stderr=b"", seconds=0.0)

    def stream(self, command: Command) -> ReplayStream:
        """The recorded log as frames of `follow`; for other commands their answer."""
        if command.label != "follow":
            return ReplayStream(iter([self.run(command).stdout + b"\n"]))
        return ReplayStream(self._frames())

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:  # noqa: ARG002  one server, no network
        """A server that says /health and who it is. Raises ConnectionRefusedError when the run never got ready."""
        if not self._was_ready():
            raise ConnectionRefusedError(f"{host}:{port}: the recorded run never listened")
        ours, theirs = socket.socketpair()
        threading.Thread(target=_serve, args=(theirs, _read(self._folder, "server_info") or {}), daemon=True).start()
        return ours

    def close(self) -> None:
        """Nothing is held open."""

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
        quiet = threading.Event()
        while True:
            quiet.wait(0.2)
            yield b""


class ReplayStream:
    """Recorded output."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if self._closed:
                return
            yield chunk

    def result(self) -> Result:
        """It always went well: how the run itself ended is in the frames."""
        return Result(exit=0, stdout=b"", stderr=b"", seconds=0.0)

    def close(self) -> None:
        """Stop."""
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
