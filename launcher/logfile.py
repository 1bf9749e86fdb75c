"""A log file of any size as byte chunks: plain, .gz, .xz, .zst, or standard input. Only opening; see
`checks.during.log.scan`."""

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
    """The content of a file, unpacked; `-` is standard input. Raises UsageError when it cannot be read.

    The packing is told from the first bytes, not from the name. A packed file that ends too early gives what it holds.
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
            yield from _unpacked(raw, kind, name)
    except OSError as error:
        hint = "is a run meant? `diagnose run ID`" if "/" not in name and not path.exists() else ""
        raise UsageError(f"cannot read {name}: {error.strerror or error}", hint=hint) from error


def _unpacked(raw: IO[bytes], kind: str, name: str) -> Iterator[bytes]:
    if not kind:
        yield from _read(raw, name)
        return
    with _opener(raw, kind) as unpacked:
        yield from _read(unpacked, name)


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
    any_seen = False
    while True:
        try:
            chunk = stream.read(CHUNK_BYTES)
        except EOFError:  # cut while it was being packed: what came so far counts
            return
        except Exception as error:
            if any_seen:
                return
            raise UsageError(f"cannot unpack {name}: {error}") from error
        if not chunk:
            return
        any_seen = True
        yield chunk
