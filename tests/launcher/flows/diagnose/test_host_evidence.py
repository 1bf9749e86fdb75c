"""Evidence on a run from its host: the log there, filtered, and the kernel log."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.during.diagnosis import diagnose
from checks.during.log.scan import scan
from checks.during.reading import read
from launcher import hostside
from launcher.flows.diagnose.host_evidence import KernelLog, kernel_log, remote_log
from launcher.hostside import filter_log
from launcher.knowledge_cache import index
from launcher.run import remote
from launcher.run.store import Run
from launcher.transport.base import Command, Result, Transport
from launcher.transport.local import LocalTransport
from tests.support.bench import Bench, bench

SITE = "/opt/venv/lib/python3.12/site-packages/sglang/srt"
QUIET = b"[2026-11-29 15:16:18 TP0] Decode batch, #running-req: 2, #token: 25, cuda graph: True, #queue-req: 0\n"
CRASH = f"""[2026-11-29 15:20:17 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "{SITE}/model_executor/model_runner.py", line 512, in load_model
    self.model = get_model()
RuntimeError: Cannot find any model weights with `/data/models/m`
""".encode()
BIG = b"[2026-11-29 15:16:00] server starts\n" + QUIET * 4000 + CRASH + QUIET * 4000


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Bench]:
    transport = LocalTransport()
    created = bench(tmp_path, transport)
    yield created
    for run in created.context.store.all():
        remote.stop(transport, run, drain=0.2)


def crashed(host: Bench) -> Run:
    run = host.launch("crash").run
    assert run is not None
    return run


def test_only_relevant_lines_are_transferred_and_keep_their_numbers(host: Bench) -> None:
    run = crashed(host)
    (host.folder / "work" / "runs" / run.id / "server.log").write_bytes(BIG)
    words = index().words
    filtered_log = remote_log(host.transport, run, words.texts)[0]
    assert filtered_log.total_lines == BIG.count(b"\n") and filtered_log.total_bytes == len(BIG)
    assert len(filtered_log.lines) < 600
    assert [line.number for line in filtered_log.lines if "Cannot find any model" in line.text] == [4005]
    local = diagnose(read(scan([BIG], words), index()))
    remote_diagnosis = diagnose(read(filtered_log, index()))
    assert local.cause is not None and remote_diagnosis.cause == local.cause


def test_equal_hits_are_transferred_only_a_few_times(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(b"[2026-11-29 15:16:18] Error %d of many\n" % row for row in range(5000)))
    arguments = {
        "path": str(log), "words": ["Error"], "lead": 12, "follow": 60, "same": 20, "edge": 400, "most": 1 << 20,
    }  # fmt: skip
    filter_log.main(arguments)
    rows = capfd.readouterr().out.splitlines()
    assert len(rows) < 60
    end = json.loads(rows[-1].removeprefix("END "))
    assert end["lines"] == 5000 and end["dropped"] == 4980


def filtered(log: Path, capfd: pytest.CaptureFixture[str], most: int = 1 << 20) -> tuple[list[str], dict[str, int]]:
    """What the program on the host prints for a log: the lines, and the totals at the end."""
    filter_log.main({
        "path": str(log), "words": ["Error", "server_args="], "lead": 12, "follow": 60, "same": 20, "edge": 400,
        "most": most,
    })  # fmt: skip
    *rows, end = capfd.readouterr().out.splitlines()
    return rows, json.loads(end.removeprefix("END "))


def test_equal_hits_are_counted_for_each_start_anew(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "server.log"
    start = b"[2026-11-29 15:16:18] server_args=ServerArgs(tp_size=1)\n"
    log.write_bytes((start + b"[2026-11-29 15:16:18] Error 1 of many\n" * 30) * 40)
    rows, end = filtered(log, capfd)
    assert sum("server_args=" in row for row in rows) == 40
    assert end["dropped"] == 40 * 10


def test_beyond_the_limit_the_latest_hits_are_transferred(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "server.log"
    words = ("".join(chr(97 + number // 26**place % 26) for place in range(3)) for number in range(3000))
    log.write_text("".join(f"[2026-11-29 15:16:18] Error {word}\n" for word in words))
    rows, end = filtered(log, capfd, most=8000)
    numbers = [int(row.partition(":")[0]) for row in rows]
    assert numbers[0] == 1 and numbers[-1] == 3000 and numbers == sorted(numbers)
    assert sum(map(len, rows)) < 14_000 and end["dropped"] > 2000
    assert sum(number > 2800 for number in numbers) > 80


def test_the_real_kernel_log_can_be_read(host: Bench) -> None:
    run = crashed(host)
    evidence = kernel_log(host.transport, run, host.context.clock.now().timestamp())
    assert isinstance(evidence, KernelLog)
    assert all(line.startswith("[20") and "] kernel: " in line for line in evidence.lines)


class Closed:
    """A host whose kernel log the user is not permitted to read."""

    name = "closed-box"

    def run(self, command: Command) -> Result:
        assert command.stdin == hostside.bundle("kernel_log", json.loads(_arguments(command)))
        notes = ["/dev/kmsg: Operation not permitted", "journalctl: not installed"]
        answer = {"source": "", "lines": [], "notes": notes, "oom_kills": 2}
        return Result(exit=0, stdout=b"motd\n" + json.dumps(answer).encode(), stderr=b"", seconds=0.1)


def _arguments(command: Command) -> str:
    line = next(row for row in command.stdin.decode().splitlines() if row.startswith("ARGS = "))
    return line.removeprefix("ARGS = ").replace("'", '"')


def test_a_missing_permission_is_a_note(host: Bench) -> None:
    run = crashed(host)
    transport: Transport = Closed()  # type: ignore[assignment]
    evidence = kernel_log(transport, run, 0.0)
    assert evidence.lines == ()
    assert "Operation not permitted" in evidence.notes[0] and "killed 2 processes" in evidence.notes[1]
