"""`make bench`: measures the figures that this project promises on this machine. Prints a Markdown table with methods.

Whole processes are timed from outside: the median of REPEATS runs after one warm-up. Launches use the stand-in engine
of the tests over a real sshd on loopback, so that only the launcher's own cost is measured.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from launcher.run.events import Event  # noqa: E402
from launcher.transport import inventory  # noqa: E402
from launcher.transport.base import Transport  # noqa: E402
from launcher.transport.local import LocalTransport  # noqa: E402
from launcher.transport.ssh import SshTransport  # noqa: E402
from launcher.transport.ssh_config import CONFIG_VARIABLE  # noqa: E402
from tests.support import sshd  # noqa: E402
from tests.support.bench import Witness  # noqa: E402
from tests.support.bench import bench as make_bench  # noqa: E402

REPEATS = 9
BIN = Path(sys.executable).parent


class Row(Struct, frozen=True):
    """A measured figure, in milliseconds, with the promised limit and the method."""

    what: str
    milliseconds: float
    limit: str
    method: str


def main() -> int:
    rows = [*processes(), *scanning(), *launches()]
    print("| figure | measured | promised | method |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.milliseconds:.0f} ms | {row.limit} | {row.method} |")
    return 0


def processes() -> Iterator[Row]:
    """Measure the commands that need no host."""
    logs = sorted((ROOT / "tests" / "corpus").rglob("*.log"), key=lambda path: path.stat().st_size)
    small = min(logs, key=lambda path: abs(path.stat().st_size - 30_000))
    with tempfile.TemporaryDirectory() as folder:
        big = Path(folder) / "big.log"
        big.write_bytes((small.read_bytes() * 4)[:100_000])
        case = Path(folder) / "case.json"
        case.write_text(json.dumps({"engine_version": "0.5.10", "flags": {"tp": "8"}, "gpu": {"sm": 120, "count": 8}}))
        commands = (
            ("bare python", [sys.executable, "-c", "pass"], "-"),
            ("launch --help", [BIN / "launch", "--help"], "≤ 150 ms"),
            ("launch runs", [BIN / "launch", "runs"], "≤ 130 ms"),
            ("launch check --case", [BIN / "launch", "check", "--case", case, "--json"], "≤ 500 ms"),
            ("diagnose log, 30 kB", [BIN / "diagnose", "log", small, "--json"], "≤ 300 ms"),
            ("diagnose log, 100 kB", [BIN / "diagnose", "log", big, "--json"], "≤ 350 ms"),
        )
        for name, words, limit in commands:
            yield Row(name, median(lambda words=words: run(words)), limit, f"whole process, median of {REPEATS}")


def scanning() -> Iterator[Row]:
    """Measure the check of 200 profiles in one process, and the scan of a long log with every signature."""
    from checks.before.rules import check
    from checks.during.diagnosis import diagnose_chunks
    from checks.facts.launch_evidence import Launch
    from launcher.knowledge_cache import index, rules

    flags = {"tp-size": "8", "model-path": "/m", "attention-backend": "triton", "page-size": "16"}
    loaded = rules()
    began = time.perf_counter()
    for number in range(200):
        launch = Launch(engine="0.5.10", flags={**flags, "port": str(30000 + number)}, gpu={"name": "H100", "count": 8})
        check(launch, loaded)
    yield Row("200 profiles checked offline", (time.perf_counter() - began) * 1000, "≤ 2000 ms", "one process, once")
    healthy = max((ROOT / "tests" / "corpus").rglob("*normal*.log"), key=lambda path: path.stat().st_size).read_bytes()
    serving = "".join(map(served, range(5000))).encode()
    for what, first, repeated in (
        ("a start, then serving", healthy, serving),
        ("starts over and over", healthy, healthy),
    ):
        count = (256 << 20) // len(repeated)
        judge = index()
        began = time.process_time()
        diagnose_chunks((first if number == 0 else repeated for number in range(count)), judge)
        seconds = time.process_time() - began
        speed = count * len(repeated) / 1e6 / seconds
        yield Row(
            f"scan of 256 MB, {what}: {speed:.0f} MB/s", seconds * 1000, "≥ 350 MB/s", "CPU time of one core, once"
        )


def served(number: int) -> str:
    """Return two log lines as a busy server writes them."""
    head = f"[2026-11-29 15:{number // 60 % 60:02d}:{number % 60:02d}"
    rate = 900 + number * 37 % 411
    return (
        f"{head} TP0] Decode batch, #running-req: {number % 40}, #token: {number * 13 % 90000}, "
        f"token usage: 0.{number % 90:02d}, cuda graph: True, gen throughput (token/s): {rate}.{number % 97:02d}, "
        "#queue-req: 0\n"
        f'{head}] INFO:     127.0.0.1:{40000 + number % 20000} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    )


def launches() -> Iterator[Row]:
    """Measure the launcher's own share of a launch: local, over ssh, and over ssh with a 100 ms round trip."""
    if reason := sshd.missing():
        print(f"no figures for launches: {reason}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        server = sshd.start(place / "sshd", "bench-box", [f"SetEnv HOME={place}"])
        os.environ[CONFIG_VARIABLE] = str(server.config)
        target = inventory.resolve("bench-box").ssh
        assert target is not None
        try:
            yield from launch_figures(place / "local", "local", LocalTransport())
            yield from launch_figures(place / "ssh", "ssh", SshTransport(target))
            with delayed(server.port, 0.05) as port:
                with server.known_hosts.open("a") as known:
                    known.write(f"[127.0.0.1]:{port} {server.host_key}\n")
                far = SshTransport(replace(target, port=port))
                yield from launch_figures(place / "far", "ssh, 100 ms round trip", far, "≤ 4000 ms")
        finally:
            server.stop()


@contextmanager
def delayed(port: int, seconds: float) -> Iterator[int]:
    """Yield a loopback port that forwards to `port` and delays every byte by `seconds` in each direction."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", port))
            for source, sink in ((near, far), (far, near)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                late: queue.Queue[tuple[float, bytes]] = queue.Queue()
                threading.Thread(target=take, args=(source, late), daemon=True).start()
                threading.Thread(target=give, args=(sink, late), daemon=True).start()

    def take(source: socket.socket, late: queue.Queue[tuple[float, bytes]]) -> None:
        while data := source.recv(1 << 16):
            late.put((time.perf_counter() + seconds, data))
        late.put((time.perf_counter() + seconds, b""))

    def give(sink: socket.socket, late: queue.Queue[tuple[float, bytes]]) -> None:
        while True:
            due, data = late.get()
            time.sleep(max(0.0, due - time.perf_counter()))
            if not data:
                return sink.shutdown(socket.SHUT_WR)
            sink.sendall(data)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def launch_figures(folder: Path, name: str, transport: Transport, limit: str = "≤ 2000 ms") -> Iterator[Row]:
    folder.mkdir()
    overheads, exits, starts = [], [], []
    for number in range(5):
        made = make_bench(folder / str(number), transport)
        made.folder.mkdir()
        times: dict[str, float] = {}
        made = replace(made, context=replace(made.context, observer=Stopwatch(times=times)))
        began = time.perf_counter()
        outcome = made.launch("crash")
        exits.append((time.perf_counter() - times["Exited"]) * 1000)
        starts.append((times["Started"] - began) * 1000)
        assert outcome.run is not None
        overheads.append((time.perf_counter() - began) * 1000 - engine_milliseconds(made.folder))
    method = f"stand-in engine, {name}, median of 5"
    yield Row(f"process exit seen → diagnosis ({name})", statistics.median(exits), "≤ 1000 ms", method)
    yield Row(f"command → engine started ({name})", statistics.median(starts), "-", method)
    yield Row(f"whole launch minus the engine's own time ({name})", statistics.median(overheads), limit, method)
    transport.close()


class Stopwatch(Witness, kw_only=True):
    """An Observer that records when the first event of each kind is reported."""

    times: dict[str, float]

    def event(self, event: Event) -> None:
        self.times.setdefault(type(event).__name__, time.perf_counter())


def engine_milliseconds(folder: Path) -> float:
    """Return how long the stand-in engine ran, in milliseconds: from its pid file to its exit code."""
    run = next((folder / "work" / "runs").iterdir())
    return ((run / "rc").stat().st_mtime - (run / "pid").stat().st_mtime) * 1000


def run(words: list[object]) -> None:
    subprocess.run([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def median(action: Callable[[], None]) -> float:
    action()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
