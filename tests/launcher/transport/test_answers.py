"""The output of a program on a host: the document at its end, or an error that says what was printed."""

from __future__ import annotations

from typing import Any

import pytest

from launcher.errors import HostCommandFailed
from launcher.transport.answers import ask, document, failed, last_line, output
from launcher.transport.base import Command
from launcher.transport.local import LocalTransport

HOST = LocalTransport("box")


def sh(text: str) -> Command:
    return Command(argv=("sh", "-c", text), label="probe")


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('{"a": "é"}', {"a": "é"}),
        ("[]", []),
        ('[{"a": 1}]\n', [{"a": 1}]),
        ('Welcome!\n{"a": [1]}', {"a": [1]}),
        ('motd{"a": 1}', {"a": 1}),
        ('[box] Welcome {eva}\n{"a": 1}', {"a": 1}),
        ("see [1]\n[2, 3]", [2, 3]),
        ('{\n "a": {\n  "b": 1\n }\n}\n', {"a": {"b": 1}}),
    ],
)
def test_the_document_is_found_behind_a_greeting(printed: str, expected: Any) -> None:
    assert document(HOST, sh(""), printed.encode()) == expected


@pytest.mark.parametrize(
    "printed", ["", "no document", '{"a": [1, 2', '{"a": [1]', '{"a": {"b": 1}', "{} and more", "\x1b["]
)
def test_output_without_a_whole_document_is_quoted(printed: str) -> None:
    """A part of a document that was cut off is not the document."""
    with pytest.raises(HostCommandFailed) as caught:
        document(HOST, sh(""), printed.encode())
    assert caught.value.message == f"`probe` on `box` printed {printed!r} instead of JSON"
    assert caught.value.where == "box"


def test_a_quotation_is_bounded_and_survives_bytes_that_are_not_text() -> None:
    with pytest.raises(HostCommandFailed) as caught:
        document(HOST, sh(""), b"\xff" * 10_000)
    assert len(caught.value.message) < 300


def test_a_program_that_succeeds_is_asked_for_its_output() -> None:
    assert output(HOST, sh("echo out; echo err >&2")) == b"out\n"
    assert ask(HOST, sh("echo '{\"a\": 1}'")) == {"a": 1}


def test_a_program_that_fails_is_named_with_its_last_words() -> None:
    with pytest.raises(HostCommandFailed) as caught:
        ask(HOST, sh("echo '{}'; echo Traceback >&2; printf 'KeyError: \\377\\n\\n' >&2; exit 3"))
    assert caught.value.message == "`probe` failed on `box` (exit 3): KeyError: \N{REPLACEMENT CHARACTER}"


def test_a_program_that_a_signal_ended_is_not_a_success() -> None:
    with pytest.raises(HostCommandFailed, match=r"exit -9\): no error message"):
        output(HOST, sh("kill -KILL $$"))


def test_a_host_without_python_is_told_which_setting_names_one() -> None:
    error = failed(HOST, sh(""), 127, b"sh: 1: python3: not found")
    assert "no python3 was found on `box`" in error.message
    assert "hosts.yaml" in error.hint


@pytest.mark.parametrize(
    ("stderr", "line"), [(b"", "no error message"), (b" \n\n", "no error message"), (b"a\nb\r\n", "b")]
)
def test_the_last_line_is_that_with_words(stderr: bytes, line: str) -> None:
    assert last_line(stderr) == line
