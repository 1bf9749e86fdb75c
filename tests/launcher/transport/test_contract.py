"""The promises of every Transport, tested over /bin/sh and over a real sshd."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from launcher.errors import TransportTimeout
from launcher.transport.base import Command, Transport

MEGABYTES_16 = 16 << 20
# Any argument that Unix allows: text without NUL. Few examples, because over ssh each one is a round trip.
HOSTILE = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=40)
NASTY = ["", "'", '"', "it's", "$(id)", "`id`", "a\nb\n", "\n", "-n", "--", "*", "~", "\\", "\\n", "!!", "%s", "a\tb"]
NASTY += ["é漢🎉", "$HOME", ";", "\x1b[31m", "\x7f", "'\\''"]
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sh(text: str, *words: str, stdin: bytes = b"", timeout: float = 30) -> Command:
    return Command(argv=("sh", "-c", text, "sh", *words), label="test", stdin=stdin, timeout=timeout)


@pytest.mark.parametrize("code", [0, 1, 126, 127, 255])
def test_exit_code_is_returned(transport: Transport, code: int) -> None:
    assert transport.run(sh(f"exit {code}")).exit == code


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15), ("SEGV", 11)])
def test_signal_is_a_negative_exit_code(transport: Transport, name: str, number: int) -> None:
    assert transport.run(sh(f"ulimit -c 0; kill -{name} $$")).exit == -number


def test_outputs_are_kept_apart(transport: Transport) -> None:
    result = transport.run(sh("echo out; echo err >&2"))
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")


def test_missing_program_is_127(transport: Transport) -> None:
    result = transport.run(Command(argv=("no-such-program",), label="test"))
    assert result.exit == 127
    assert b"no-such-program" in result.stderr


def test_missing_directory_is_126_and_nothing_runs(transport: Transport) -> None:
    result = transport.run(Command(argv=("echo", "ran"), label="test", cwd="/no/such/place"))
    assert (result.exit, result.stdout) == (126, b"")


def test_commands_start_in_the_home_directory(transport: Transport) -> None:
    assert transport.run(sh("pwd")).stdout.decode().strip() == str(Path.home())


def test_large_input_and_both_large_outputs_do_not_deadlock(transport: Transport) -> None:
    data = os.urandom(MEGABYTES_16)
    result = transport.run(sh("tee /dev/stderr", stdin=data))
    assert hashlib.sha256(result.stdout).digest() == hashlib.sha256(data).digest()
    assert hashlib.sha256(result.stderr).digest() == hashlib.sha256(data).digest()


def test_every_byte_value_is_preserved(transport: Transport) -> None:
    data = bytes(range(256)) * 3
    assert transport.run(Command(argv=("cat",), label="test", stdin=data)).stdout == data


def test_input_is_closed_after_the_last_byte(transport: Transport) -> None:
    assert transport.run(sh("wc -c")).stdout.strip() == b"0"


def test_command_may_ignore_its_input(transport: Transport) -> None:
    assert transport.run(sh("exit 5", stdin=os.urandom(4 << 20))).exit == 5


def test_timeout_raises_and_ends_the_command(transport: Transport, lifeline: Lifeline) -> None:
    with pytest.raises(TransportTimeout, match="test"):
        transport.run(sh('exec 9>"$1"; echo up >&9; sleep 1000 & wait', lifeline.path, timeout=1))
    assert lifeline.was_held_and_is_cut()


def test_timeout_ends_a_child_that_holds_the_output_open(transport: Transport, lifeline: Lifeline) -> None:
    with pytest.raises(TransportTimeout, match="test"):
        transport.run(sh('exec 9>"$1"; echo up >&9; sleep 1000 & exit 0', lifeline.path, timeout=1))
    assert lifeline.was_held_and_is_cut()


def test_a_process_that_a_command_detaches_survives(transport: Transport, lifeline: Lifeline) -> None:
    text = 'exec 9>"$1"; echo up >&9; sleep 1000 </dev/null >/dev/null 2>&1 & echo $!'
    pid = int(transport.run(sh(text, lifeline.path)).stdout)
    os.kill(pid, signal.SIGKILL)  # raises if the process is gone
    assert lifeline.was_held_and_is_cut()


def test_stream_yields_output_before_the_end(transport: Transport, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    stream = transport.stream(sh('echo first; cat "$1"; echo last; exit 3', str(gate)))
    output = b""
    for chunk in stream:
        output += chunk
        if output == b"first\n":
            gate.write_bytes(b"middle\n")
            output += b"|"
    assert output == b"first\n|middle\nlast\n"
    assert stream.result().exit == 3


def test_stream_yields_empty_chunks_while_there_is_no_output(transport: Transport, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    stream = transport.stream(sh('cat "$1"', str(gate)))
    chunks = iter(stream)
    assert [next(chunks), next(chunks)] == [b"", b""]
    gate.write_bytes(b"x")
    assert b"".join(chunks) == b"x"


def test_stream_keeps_errors_for_the_result(transport: Transport) -> None:
    stream = transport.stream(sh("echo out; echo err >&2; exit 9"))
    assert b"".join(stream) == b"out\n"
    result = stream.result()
    assert (result.exit, result.stdout, result.stderr) == (9, b"", b"err\n")


def test_stream_takes_input(transport: Transport) -> None:
    assert b"".join(transport.stream(sh("cat", stdin=b"given"))) == b"given"


def test_closed_stream_ends_its_command(transport: Transport, lifeline: Lifeline) -> None:
    stream = transport.stream(sh('exec 9>"$1"; echo up >&9; echo x; exec sleep 1000', lifeline.path))
    next(chunk for chunk in stream if chunk)
    stream.close()
    stream.close()
    assert lifeline.was_held_and_is_cut()


def test_closed_stream_ends_a_command_that_ignores_term(transport: Transport, lifeline: Lifeline) -> None:
    text = 'trap "" TERM; exec 9>"$1"; echo up >&9; echo x; while :; do sleep 1000; done'
    stream = transport.stream(sh(text, lifeline.path))
    next(chunk for chunk in stream if chunk)
    stream.close()
    assert lifeline.was_held_and_is_cut()


def test_more_streams_than_sessions_one_after_another(transport: Transport) -> None:
    for _ in range(12):
        stream = transport.stream(sh("echo x; exec sleep 1000"))
        next(chunk for chunk in stream if chunk)
        stream.close()
    assert transport.run(sh("echo still here")).stdout == b"still here\n"


def test_refused_port_raises_connection_refused(transport: Transport, unused_port: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        transport.connect("127.0.0.1", unused_port, 5)


def test_connection_carries_bytes_both_ways(transport: Transport) -> None:
    data = os.urandom(1 << 20)
    with _echo_server() as port:
        stream = transport.connect("127.0.0.1", port, 5)
        stream.settimeout(20)
        stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: stream.recv(65536), b""))
        stream.close()
    assert received == data


def test_connection_times_out_when_no_bytes_arrive(transport: Transport) -> None:
    with _echo_server() as port:
        stream = transport.connect("127.0.0.1", port, 5)
        stream.settimeout(0.05)
        with pytest.raises(TimeoutError):
            stream.recv(1)
        stream.close()


def test_closing_twice_is_allowed() -> None:
    from launcher.transport.local import LocalTransport

    transport = LocalTransport()
    transport.close()
    transport.close()


@pytest.mark.parametrize("word", NASTY)
def test_words_with_shell_syntax_arrive_unchanged(transport: Transport, word: str) -> None:
    command = Command(argv=("printf", "%s\\0", word), label="test", env={"WORD": word})
    assert transport.run(command).stdout == word.encode() + b"\0"


@FEW
@given(words=st.lists(HOSTILE, max_size=4), value=HOSTILE)
@example(words=NASTY, value="\n")
def test_any_words_and_environment_arrive_unchanged(transport: Transport, words: list[str], value: str) -> None:
    text = 'printf "%s\\0" "$VALUE" "$@"'
    command = Command(argv=("sh", "-c", text, "sh", *words), label="test", env={"VALUE": value})
    assert transport.run(command).stdout.split(b"\0")[:-1] == [word.encode() for word in [value, *words]]


@FEW
@given(name=HOSTILE.filter(lambda text: "/" not in text and text not in {"", ".", ".."} and len(text.encode()) < 200))
@example(name="-")
@example(name="--help")
@example(name="new\nline\n")
def test_any_directory_can_be_entered(
    transport: Transport, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.mktemp("cwd", numbered=True) / name
    folder.mkdir()
    assert transport.run(Command(argv=("pwd", "-P"), label="test", cwd=str(folder))).stdout == f"{folder}\n".encode()


@pytest.mark.parametrize(
    "command",
    [
        Command(argv=("a\0b",), label="test"),
        Command(argv=("true",), label="test", env={"X": "\0"}),
        Command(argv=("true",), label="test", env={"X=1; id": ""}),
        Command(argv=("true",), label="test", env={"": "x"}),
        Command(argv=("true",), label="test", cwd="/\0"),
        Command(argv=("A=1",), label="test"),
        Command(argv=(), label="test"),
        Command(argv=("true", "x" * 200_000), label="test"),
    ],
)
def test_arguments_that_unix_does_not_allow_are_a_value_error(transport: Transport, command: Command) -> None:
    with pytest.raises(ValueError, match="test"):
        transport.run(command)


def test_program_name_that_begins_with_a_dash_is_not_an_option(transport: Transport) -> None:
    assert transport.run(Command(argv=("--version",), label="test")).exit == 127


class Lifeline:
    """A FIFO that processes hold open: its end of file proves that all of them are gone, without a fixed wait."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def was_held_and_is_cut(self) -> bool:
        output = b""
        while select.select([self._reader], [], [], 10)[0]:
            data = os.read(self._reader, 100)
            if not data:
                return output == b"up\n"
            output += data
        return False

    def close(self) -> None:
        os.close(self._reader)


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    line = Lifeline(tmp_path / "lifeline")
    yield line
    line.close()


@contextmanager
def _echo_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)
