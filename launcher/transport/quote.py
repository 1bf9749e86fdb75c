"""Turns a Command into shell text: the only module that quotes for a shell. Pure.

`script` returns POSIX sh. `login_line` wraps a script so that it survives a login shell that may be bash, zsh, csh or
fish and may print a greeting first; `Unwrap` removes that greeting from the output.
"""

from __future__ import annotations

import re
import shlex

from launcher.transport.base import Command

# Linux rejects a single argument of 128 KiB (MAX_ARG_STRLEN), and sshd passes the whole line to `$SHELL -c` as one.
LINE_LIMIT = 120_000
# csh limits the length of a word, so a script is sent in pieces.
PIECE = 900

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
"""The name of an environment variable that a shell can assign."""
# Bytes that mean the same inside single quotes in every shell. Excluded: `'` ends the quote, csh expands `!`, fish
# interprets `\\`, csh rejects a line break, and anything beyond ASCII depends on the locale.
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\!")
_MARK = re.compile(rb"\x1esglang-launcher ([0-9]+)\x1e")
_PRINT_MARK = r"printf '\036sglang-launcher %s\036' $$; printf '\036sglang-launcher %s\036' $$ >&2; "
_PRELUDE_LIMIT = 1 << 20


def script(command: Command) -> str:
    """Return POSIX sh text that enters `cwd` and `exec`s the program, so that pid and signals are the program's own.

    The text exits 126 when `cwd` cannot be entered and 127 when the program does not exist. Raises ValueError for
    arguments that Unix does not allow: NUL bytes, an invalid variable name, a line longer than one argument may be.
    """
    _check(command)
    words = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
    words += [shlex.quote(word) for word in command.argv]
    text = f"exec env -- {' '.join(words)}"
    if command.cwd:
        # `./` stops cd from reading `-` as the previous directory and from looking up a name in CDPATH
        folder = command.cwd if command.cwd.startswith("/") else f"./{command.cwd}"
        text = f"cd -- {shlex.quote(folder)} || exit 126; {text}"
    if len(login_line(text)) > LINE_LIMIT:
        raise ValueError(f"`{command.label}`: the command line is too long; pass large data on stdin")
    return text


def login_line(text: str) -> str:
    """Return one line that runs sh text under any login shell; the output begins with a mark that holds the pid."""
    data = (_PRINT_MARK + text).encode("utf-8", "surrogateescape")
    pieces = (data[at : at + PIECE] for at in range(0, len(data), PIECE))
    words = (
        "'" + "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in piece) + "'" for piece in pieces
    )
    return """exec sh -c 'eval "$(printf %b "$@")"' sh """ + " ".join(words)


class Unwrap:
    """Separates one output of a `login_line` command from what the login shell printed before it (`prelude`)."""

    def __init__(self) -> None:
        self.prelude = b""
        self.pid = 0  # of the program; 0 until the mark arrives: the login shell has not started it

    def feed(self, data: bytes) -> bytes:
        """Return the part of the next bytes that the program itself wrote."""
        if self.pid:
            return data
        self.prelude += data
        mark = _MARK.search(self.prelude)
        if mark is None:
            self.prelude = self.prelude[-_PRELUDE_LIMIT:]
            return b""
        output = self.prelude[mark.end() :]
        self.prelude = self.prelude[: mark.start()]
        self.pid = int(mark[1])
        return output


def _check(command: Command) -> None:
    if not command.argv or not command.argv[0]:
        raise ValueError(f"`{command.label}`: no program was given")
    if "=" in command.argv[0]:
        raise ValueError(
            f"`{command.label}`: env(1) would read the program {command.argv[0]!r} as a variable assignment"
        )
    for name in command.env:
        if not ENV_NAME.match(name):
            raise ValueError(f"`{command.label}`: invalid environment variable name {name!r}")
    for word in (*command.argv, *command.env.values(), command.cwd):
        if "\0" in word:
            raise ValueError(f"`{command.label}`: {word!r} contains a NUL byte")
