"""One command on a connection: its outputs behind any login shell, and how it ended."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.errors import HostCommandFailed
from launcher.transport.base import Command
from launcher.transport.ssh import SshTransport
from launcher.transport.ssh_session import STDERR_KEPT
from tests.support.ssh_logins import ECHO, target_of
from tests.support.sshd import Sshd

pytestmark = pytest.mark.sshd
StartSshd = Callable[..., Sshd]


def test_greeting_of_the_login_shell_is_not_part_of_the_output(start_sshd: StartSshd, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("echo Welcome; echo careful >&2\n")
    server = start_sshd("chatty", f"ForceCommand {_shell(tmp_path)}")
    transport = SshTransport(target_of(server))
    result = transport.run(Command(argv=("sh", "-c", "echo out; echo err >&2"), label="test"))
    stream = transport.stream(ECHO)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert b"".join(stream) == b"in\n"
    assert stream.result().exit == 0
    transport.close()


def test_message_of_an_account_without_a_shell_is_shown(start_sshd: StartSshd) -> None:
    server = start_sshd("nologin", "ForceCommand echo This account is not available.; exit 1")
    transport = SshTransport(target_of(server))
    with pytest.raises(HostCommandFailed, match="This account is not available"):
        transport.run(ECHO)
    with pytest.raises(HostCommandFailed, match="This account is not available"):
        transport.stream(ECHO).result()
    transport.close()


def test_silent_refusal_is_not_an_empty_output(start_sshd: StartSshd) -> None:
    transport = SshTransport(target_of(start_sshd("silent", "ForceCommand exit 0")))
    with pytest.raises(HostCommandFailed, match="login shell"):
        transport.run(ECHO)
    transport.close()


def test_signals_are_numbers_and_uncommon_ones_share_one(ssh_transport: SshTransport) -> None:
    """OpenSSH names only the common signals."""

    def ended_by(number: int) -> int:
        command = Command(argv=("sh", "-c", f"ulimit -c 0; kill -{number} $$; sleep 5"), label="test")
        results = (ssh_transport.run(command), ssh_transport.stream(command).result())
        assert results[0].exit == results[1].exit
        return results[0].exit

    assert [ended_by(number) for number in (signal.SIGINT, signal.SIGABRT, signal.SIGUSR1)] == [-2, -6, -10]
    assert ended_by(signal.SIGRTMIN) == ended_by(signal.SIGSTKFLT) == -64


def test_what_a_shell_prints_before_it_refuses_is_bounded_and_survives_other_bytes(start_sshd: StartSshd) -> None:
    server = start_sshd("loud", "ForceCommand head -c 9000 /dev/zero | tr '\\\\0' x; printf '\\\\377end'; exit 3")
    transport = SshTransport(target_of(server))
    with pytest.raises(HostCommandFailed) as caught:
        transport.run(ECHO)
    assert "(exit 3)" in caught.value.message
    assert len(caught.value.message) < 700
    assert "-c COMMAND" in caught.value.hint
    transport.close()


def test_only_the_end_of_a_long_error_output_of_a_stream_is_kept(ssh_transport: SshTransport) -> None:
    text = f"head -c {2 * STDERR_KEPT} /dev/zero >&2; echo last >&2"
    stderr = ssh_transport.stream(Command(argv=("sh", "-c", text), label="test")).result().stderr
    assert len(stderr) == STDERR_KEPT
    assert stderr.endswith(b"last\n")


def test_a_closed_stream_yields_nothing_more(ssh_transport: SshTransport) -> None:
    stream = ssh_transport.stream(Command(argv=("sh", "-c", "echo x; exec sleep 600"), label="test"))
    next(chunk for chunk in stream if chunk)
    stream.close()
    assert list(stream) == []


def test_input_that_nobody_reads_does_not_delay_the_end(ssh_transport: SshTransport) -> None:
    assert ssh_transport.run(Command(argv=("sh", "-c", "exit 5"), label="test", stdin=bytes(8 << 20))).exit == 5


def _shell(directory: Path) -> Path:
    """Write a login shell that reads a .bashrc, as Debian's bash does for ssh commands."""
    script = directory / "shell"
    script.write_text(f'#!/bin/sh\n. {directory / ".bashrc"}\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n')
    script.chmod(0o755)
    return script
