"""A Command as shell text: the only place that quotes for a shell. Pure.

`script` is POSIX sh. `login_line` carries a script through a login shell that may be bash, zsh, csh or fish, and may
print before it obeys; `Unwrap` takes that print off again.
"""

from __future__ import annotations

import re
import shlex

from launcher.transport.base import Command

# Linux refuses a single argument of 128 KiB (MAX_ARG_STRLEN), and sshd hands the whole line to `$SHELL -c` as one.
LINE_LIMIT = 120_000
# csh knows limits for a word, so a script travels in pieces.
PIECE = 900

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
"""The name of an environment variable that a shell can assign."""
# Single quotes mean the same everywhere but for these: `'` ends them, csh expands `!`, fish reads `\\`, csh allows no
# line break, and anything beyond ASCII is at the mercy of the locale.
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\!")
_MARK = re.compile(rb"\x1esglang-launcher ([0-9]+)\x1e")
_SAY_MARK = r"printf '\036sglang-launcher %s\036' $$; printf '\036sglang-launcher %s\036' $$ >&2; "
_PRELUDE_LIMIT = 1 << 20


def script(command: Command) -> str:
    """POSIX sh text that becomes the command: it starts in `cwd` and `exec`s, so pid and signals are the program's.

    Exits 126 when `cwd` cannot be entered, 127 when there is no such program. Raises ValueError for what no Unix
    program can be given: NUL bytes, an environment name that is none, more than fits into one argument.
    """
    _check(command)
    words = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
    words += [shlex.quote(word) for word in command.argv]
    text = f"exec env -- {' '.join(words)}"
    if command.cwd:
        # `./` keeps cd from reading `-` as the previous directory, and from looking a name up in CDPATH
        place = command.cwd if command.cwd.startswith("/") else f"./{command.cwd}"
        text = f"cd -- {shlex.quote(place)} || exit 126; {text}"
    if len(login_line(text)) > LINE_LIMIT:
        raise ValueError(f"`{command.label}`: command line too long; hand large data over on stdin")
    return text


def login_line(text: str) -> str:
    """One line that runs sh text under any login shell; the program's output begins after a mark with its pid."""
    data = (_SAY_MARK + text).encode("utf-8", "surrogateescape")
    pieces = (data[at : at + PIECE] for at in range(0, len(data), PIECE))
    words = (
        "'" + "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in piece) + "'" for piece in pieces
    )
    return """exec sh -c 'eval "$(printf %b "$@")"' sh """ + " ".join(words)


class Unwrap:
    """One output of a command sent by `login_line`: what the login shell wrote first is kept apart."""

    def __init__(self) -> None:
        self.prelude = b""
        self.pid = 0  # 0 until the mark has come: the program has not been reached

    def feed(self, data: bytes) -> bytes:
        """The part of the next bytes that the program itself wrote."""
        if self.pid:
            return data
        self.prelude += data
        mark = _MARK.search(self.prelude)
        if mark is None:
            self.prelude = self.prelude[-_PRELUDE_LIMIT:]
            return b""
        rest = self.prelude[mark.end() :]
        self.prelude = self.prelude[: mark.start()]
        self.pid = int(mark[1])
        return rest


def _check(command: Command) -> None:
    if not command.argv or not command.argv[0]:
        raise ValueError(f"`{command.label}`: no program given")
    if "=" in command.argv[0]:
        raise ValueError(f"`{command.label}`: env(1) would take the program {command.argv[0]!r} for a variable")
    for name in command.env:
        if not ENV_NAME.match(name):
            raise ValueError(f"`{command.label}`: {name!r} is no name of an environment variable")
    for word in (*command.argv, *command.env.values(), command.cwd):
        if "\0" in word:
            raise ValueError(f"`{command.label}`: a NUL byte in {word!r}")
