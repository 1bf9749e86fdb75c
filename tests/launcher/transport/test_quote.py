"""Command lines, tested with every login shell that is installed."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.transport import quote
from launcher.transport.base import Command

SHELLS = ("sh", "dash", "bash", "zsh", "ksh", "csh", "tcsh", "fish")
NASTY = ("it's", "!!", "!x", "\\", "\\'", "a\nb", "$HOME", "`id`", "%d", "é漢", "^a^b", "#", "[a-z]*", "~", "\udcff")


def command(*argv: str, cwd: str = "") -> Command:
    return Command(argv=argv, label="test", cwd=cwd)


def run_in(shell: str, line: str) -> subprocess.CompletedProcess[bytes]:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return subprocess.run([path, "-c", line], capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=20)


@pytest.mark.parametrize("shell", SHELLS)
def test_words_survive_any_login_shell(shell: str) -> None:
    result = run_in(shell, quote.login_line(quote.script(command("printf", "%s\\0", *NASTY))))
    out = quote.Unwrap()
    words = out.feed(result.stdout).split(b"\0")[:-1]
    assert words == [word.encode("utf-8", "surrogateescape") for word in NASTY], result.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_long_lines_survive_any_login_shell(shell: str) -> None:
    word = "quoted ' and plain " * 400
    result = run_in(shell, quote.login_line(quote.script(command("printf", "%s", word))))
    assert quote.Unwrap().feed(result.stdout) == word.encode(), result.stderr


def test_line_contains_only_printable_ascii() -> None:
    line = quote.login_line(quote.script(command("echo", *NASTY)))
    assert line.isascii()
    assert line.isprintable()
    assert "!" not in line


@given(st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=30)))
@settings(max_examples=30, deadline=None)
def test_any_words_survive_sh(words: list[str]) -> None:
    result = run_in("sh", quote.login_line(quote.script(command("printf", "%s\\0", "first", *words))))
    assert quote.Unwrap().feed(result.stdout).split(b"\0")[1:-1] == [word.encode() for word in words]


def test_script_is_readable() -> None:
    text = quote.script(Command(argv=("nvidia-smi", "-q"), label="test", env={"LC_ALL": "C"}, cwd="/tmp"))
    assert text == "cd -- /tmp || exit 126; exec env -- LC_ALL=C nvidia-smi -q"


@pytest.mark.parametrize(("cwd", "entered"), [("-", "./-"), ("runs", "./runs"), ("/tmp", "/tmp")])
def test_directory_is_never_read_as_an_option_or_looked_up(cwd: str, entered: str) -> None:
    assert quote.script(command("true", cwd=cwd)).startswith(f"cd -- {entered} || ")


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_greeting_of_the_login_shell_is_removed_wherever_chunks_end(cut: int) -> None:
    data = b"Welcome!\n\x1esglang-launcher 4711\x1eanswer\x1esglang-launcher 1\x1e"
    out = quote.Unwrap()
    assert out.feed(data[:cut]) + out.feed(data[cut:]) == b"answer\x1esglang-launcher 1\x1e"
    assert (out.prelude, out.pid) == (b"Welcome!\n", 4711)


def test_no_mark_means_no_output_and_no_pid() -> None:
    out = quote.Unwrap()
    assert out.feed(b"This account is currently not available.\n") == b""
    assert out.pid == 0
    assert out.prelude.startswith(b"This account")


def test_endless_output_before_the_mark_does_not_fill_memory() -> None:
    out = quote.Unwrap()
    for _ in range(40):
        out.feed(b"x" * 100_000)
    assert len(out.prelude) <= 1 << 20
