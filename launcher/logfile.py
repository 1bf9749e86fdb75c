"""Opens a log file of any size and yields its bytes in chunks: plain, .gz, .xz, .zst, or standard input.

The bytes are not interpreted; `checks.during.log.scan` does that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

from launcher.errors import UsageError

CHUNK_BYTES = 1 << 20
_MAGIC = ((b"\x1f\x8b", "gz"), (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zst"))


def chunks(name: str) -> Iterator[bytes]:
    """Yield the decompressed content of a file; `-` is standard input. Raises UsageError when it cannot be read.

    The compression is recognised by the first bytes, not by the name. A truncated archive yields its content up to the
    cut.
    """
    if name == "-":
        yield from _read(sys.stdin.buffer, "standard input")
        return
    path = Path(name)
    try:
        with path.open("rb") as raw:
            start = raw.read(8)
            raw.seek(0)
            kind = next((kind for magic, kind in _MAGIC if start.startswith(magic)), "")
            yield from _decompressed(raw, kind, name)
    except OSError as error:
        hint = "to diagnose a run: `diagnose run ID`" if "/" not in name and not path.exists() else ""
        raise UsageError(f"cannot read `{name}`: {error.strerror or error}", hint=hint) from error


def _decompressed(raw: IO[bytes], kind: str, name: str) -> Iterator[bytes]:
    if not kind:
        yield from _read(raw, name)
        return
    with _opener(raw, kind) as stream:
        yield from _read(stream, name)


def _opener(raw: IO[bytes], kind: str) -> AbstractContextManager[Any]:
    match kind:
        case "gz":
            import gzip

            return gzip.GzipFile(fileobj=raw)
        case "xz":
            import lzma

            return lzma.LZMAFile(raw)
        case _:
            import zstandard

            return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)


def _read(stream: Any, name: str) -> Iterator[bytes]:
    any_chunk = False
    while True:
        try:
            chunk = stream.read(CHUNK_BYTES)
        except EOFError:  # a truncated archive: the content up to the cut counts
            return
        except Exception as error:
            if any_chunk:
                return
            raise UsageError(f"cannot decompress `{name}`: {error}") from error
        if not chunk:
            return
        any_chunk = True
        yield chunk
