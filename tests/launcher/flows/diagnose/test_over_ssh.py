"""`diagnose run --remote` and `--host-evidence` through a real sshd: what travels, and what happens when it cannot."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from launcher.cli.app import DIAGNOSE
from launcher.cli.app import run as command
from launcher.errors import HostCommandFailed
from launcher.flows.diagnose.host_evidence import host_evidence, kernel_log, remote_log
from launcher.knowledge_cache import index
from launcher.run import remote
from launcher.run.store import Run
from launcher.transport import inventory
from launcher.transport.base import Command, Result
from launcher.transport.ssh import SshTransport
from launcher.transport.ssh_config import CONFIG_VARIABLE
from tests.support.bench import Bench, bench
from tests.support.paths import CORPUS
from tests.support.sshd import Sshd

pytestmark = pytest.mark.sshd

CRASH = (CORPUS / "0.5.11-h200" / "run-fraction-too-small.log").read_bytes()
ANSWER = b'[2026-11-29 15:16:18] INFO:     127.0.0.1:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
RESTRICTED = Path("/proc/sys/kernel/dmesg_restrict")


class Counting(SshTransport):
    """Counts what programs on the host print."""

    printed = 0

    def run(self, command: Command) -> Result:
        result = super().run(command)
        self.printed += len(result.stdout) + len(result.stderr)
        return result


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Sshd], Counting]]:
    made: list[Counting] = []

    def open_(box: Sshd) -> Counting:
        monkeypatch.setenv(CONFIG_VARIABLE, str(box.config))
        target = inventory.resolve(box.alias).ssh
        assert target is not None
        made.append(Counting(target))
        return made[-1]

    yield open_
    for transport in made:
        transport.close()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands under test look for runs, and a cache of their own."""
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def host(state: Path, sshd_server: Sshd, connect: Callable[[Sshd], Counting]) -> Iterator[Bench]:
    transport = connect(sshd_server)
    made = bench(state, transport)
    yield made
    for run in made.context.store.all():
        remote.stop(transport, run, drain=0.2)


def crashed(host: Bench) -> tuple[Run, Path]:
    """A run that crashed, and its log on the host."""
    run = host.launch("crash").run
    assert run is not None
    return run, host.folder / "work" / "runs" / run.id / "server.log"


def diagnosed(capsys: pytest.CaptureFixture[str], run: Run, *words: str) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    code = command("diagnose", DIAGNOSE, ["run", run.id, "--json", *words])
    out = capsys.readouterr().out
    return code, json.loads(out) if out else {}


def test_of_a_large_log_only_lines_that_matter_travel(host: Bench) -> None:
    run, log = crashed(host)
    with log.open("wb") as file:
        for part in range(40):
            file.write(b"".join(ANSWER % (part * 10_000 + row) for row in range(10_000)))
        file.write(CRASH)
    assert log.stat().st_size > 30_000_000
    assert isinstance(host.transport, Counting)
    before = host.transport.printed
    seen = remote_log(host.transport, run, index().words.texts)[0]
    assert host.transport.printed - before < 120_000
    assert seen.total_bytes == log.stat().st_size and seen.total_lines == 400_000 + CRASH.count(b"\n")


def test_the_log_on_the_host_is_diagnosed_where_ours_is_older(host: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    run, log = crashed(host)
    log.write_bytes(b"".join(ANSWER % row for row in range(20_000)) + CRASH)
    code, found = diagnosed(capsys, run, "--remote")
    cause = found["cause"]
    assert isinstance(cause, dict)
    assert (code, cause["id"]) == (1, "kv-pool-left-empty")
    assert cause["line"] > 20_000


def test_a_log_that_is_gone_is_said_and_ours_is_judged(host: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    run, log = crashed(host)
    here = diagnosed(capsys, run)[1]
    log.unlink()
    code, found = diagnosed(capsys, run, "--remote")
    assert (code, found["cause"]) == (1, here["cause"])
    assert any(f"cannot read {log}" in note and "No such file" in note for note in map(str, _notes(found)))


def test_a_log_that_is_neither_there_nor_here_is_an_error(host: Bench) -> None:
    run, log = crashed(host)
    log.unlink()
    run.log.unlink()
    with pytest.raises(HostCommandFailed, match="No such file"):
        host_evidence(host.transport, run, 0.0, kernel=False, words=("Error",))


def test_a_host_that_cannot_be_reached_leaves_our_copy(
    state: Path,
    start_sshd: Callable[..., Sshd],
    connect: Callable[[Sshd], Counting],
    capsys: pytest.CaptureFixture[str],
) -> None:
    box = start_sshd("lost-box")
    run, _ = crashed(bench(state, connect(box)))
    box.stop()
    code, found = diagnosed(capsys, run, "--remote", "--host-evidence")
    assert code == 1 and any("the host was not asked" in str(note) for note in _notes(found))
    run.log.unlink()
    assert diagnosed(capsys, run, "--remote")[0] == 4


def test_the_kernel_log_is_read_or_said_to_be_closed(host: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = crashed(host)
    code, found = diagnosed(capsys, run, "--host-evidence")
    closed = any("kernel log could not be read" in str(note) for note in _notes(found))
    assert code == 1 and closed is not _readable()


@pytest.mark.skipif(
    os.geteuid() != 0
    or not RESTRICTED.exists()
    or RESTRICTED.read_text().strip() != "1"
    or not shutil.which("setpriv"),
    reason="needs root here, and a kernel that closes its log to others",
)
def test_a_user_without_rights_is_told_why_the_kernel_log_is_closed(
    host: Bench, start_sshd: Callable[..., Sshd], connect: Callable[[Sshd], Counting]
) -> None:
    run, _ = crashed(host)
    with TemporaryDirectory(dir="/tmp") as bare:  # pytest's folders are closed to others; no journalctl in here
        Path(bare).chmod(0o755)
        for name in ("sh", "env", "python3"):
            (Path(bare) / name).symlink_to(f"/usr/bin/{name}")
        other = f"setpriv --reuid 65534 --clear-groups env PATH={bare} HOME=/"
        box = start_sshd("closed-box", f'ForceCommand {other} /bin/sh -c "$SSH_ORIGINAL_COMMAND"')
        found = kernel_log(connect(box), run, 0.0)
    assert found.lines == ()
    assert "/dev/kmsg: Operation not permitted" in found.notes[0] and "journalctl: not installed" in found.notes[0]


def _notes(found: dict[str, object]) -> list[object]:
    notes = found["notes"]
    assert isinstance(notes, list)
    return notes


def _readable() -> bool:
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
