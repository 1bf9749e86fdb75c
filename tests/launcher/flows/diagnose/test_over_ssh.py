"""`diagnose run --remote` and `--host-evidence` over a real sshd: what is transferred, and what happens on failure."""

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
    """Counts the bytes that programs on the host print."""

    printed = 0

    def run(self, command: Command) -> Result:
        result = super().run(command)
        self.printed += len(result.stdout) + len(result.stderr)
        return result


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Sshd], Counting]]:
    transports: list[Counting] = []

    def open_(box: Sshd) -> Counting:
        monkeypatch.setenv(CONFIG_VARIABLE, str(box.config))
        target = inventory.resolve(box.alias).ssh
        assert target is not None
        transports.append(Counting(target))
        return transports[-1]

    yield open_
    for transport in transports:
        transport.close()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder and working folder of the commands under test."""
    monkeypatch.setenv("SGLANG_LAUNCHER_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def host(state: Path, sshd_server: Sshd, connect: Callable[[Sshd], Counting]) -> Iterator[Bench]:
    transport = connect(sshd_server)
    created = bench(state, transport)
    yield created
    for run in created.context.store.all():
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


def test_only_relevant_lines_of_a_large_log_are_transferred(host: Bench) -> None:
    run, log = crashed(host)
    with log.open("wb") as file:
        for part in range(40):
            file.write(b"".join(ANSWER % (part * 10_000 + row) for row in range(10_000)))
        file.write(CRASH)
    assert log.stat().st_size > 30_000_000
    assert isinstance(host.transport, Counting)
    before = host.transport.printed
    filtered = remote_log(host.transport, run, index().words.texts)[0]
    assert host.transport.printed - before < 120_000
    assert filtered.total_bytes == log.stat().st_size and filtered.total_lines == 400_000 + CRASH.count(b"\n")


def test_the_log_on_the_host_replaces_an_older_local_copy(host: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    run, log = crashed(host)
    log.write_bytes(b"".join(ANSWER % row for row in range(20_000)) + CRASH)
    code, answer = diagnosed(capsys, run, "--remote")
    cause = answer["cause"]
    assert isinstance(cause, dict)
    assert (code, cause["id"]) == (1, "kv-pool-left-empty")
    assert cause["line"] > 20_000


def test_a_missing_remote_log_is_a_note_and_the_local_copy_is_judged(
    host: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    run, log = crashed(host)
    local = diagnosed(capsys, run)[1]
    log.unlink()
    code, answer = diagnosed(capsys, run, "--remote")
    assert (code, answer["cause"]) == (1, local["cause"])
    assert any(f"cannot read {log}" in note and "No such file" in note for note in map(str, _notes(answer)))


def test_a_missing_remote_log_without_a_local_copy_is_an_error(host: Bench) -> None:
    run, log = crashed(host)
    log.unlink()
    run.log.unlink()
    with pytest.raises(HostCommandFailed, match="No such file"):
        host_evidence(host.transport, run, 0.0, kernel=False, words=("Error",))


def test_an_unreachable_host_leaves_the_local_copy_to_judge(
    state: Path,
    start_sshd: Callable[..., Sshd],
    connect: Callable[[Sshd], Counting],
    capsys: pytest.CaptureFixture[str],
) -> None:
    box = start_sshd("lost-box")
    run, _ = crashed(bench(state, connect(box)))
    box.stop()
    code, answer = diagnosed(capsys, run, "--remote", "--host-evidence")
    assert code == 1 and any("host not reached" in str(note) for note in _notes(answer))
    run.log.unlink()
    assert diagnosed(capsys, run, "--remote")[0] == 4


def test_the_kernel_log_is_read_or_a_note_says_that_it_could_not_be(
    host: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = crashed(host)
    code, answer = diagnosed(capsys, run, "--host-evidence")
    closed = any("kernel log could not be read" in str(note) for note in _notes(answer))
    assert code == 1 and closed is not _readable()


@pytest.mark.skipif(
    os.geteuid() != 0
    or not RESTRICTED.exists()
    or RESTRICTED.read_text().strip() != "1"
    or not shutil.which("setpriv"),
    reason="needs root on this machine, and a kernel that restricts its log to root",
)
def test_a_note_says_why_a_user_cannot_read_the_kernel_log(
    host: Bench, start_sshd: Callable[..., Sshd], connect: Callable[[Sshd], Counting]
) -> None:
    run, _ = crashed(host)
    with TemporaryDirectory(dir="/tmp") as bare:  # other users cannot read pytest's folders; no journalctl in this one
        Path(bare).chmod(0o755)
        for name in ("sh", "env", "python3"):
            (Path(bare) / name).symlink_to(f"/usr/bin/{name}")
        other = f"setpriv --reuid 65534 --clear-groups env PATH={bare} HOME=/"
        box = start_sshd("closed-box", f'ForceCommand {other} /bin/sh -c "$SSH_ORIGINAL_COMMAND"')
        evidence = kernel_log(connect(box), run, 0.0)
    assert evidence.lines == ()
    assert (
        "/dev/kmsg: Operation not permitted" in evidence.notes[0] and "journalctl: not installed" in evidence.notes[0]
    )


def _notes(answer: dict[str, object]) -> list[object]:
    notes = answer["notes"]
    assert isinstance(notes, list)
    return notes


def _readable() -> bool:
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
