"""Pack one Run into an evidence bundle, an archive without secrets, and unpack it into a folder again.

`NAME.tar.gz` contains one folder, named after the run's id, with its documents and `bundle.json` (format, digests).
Unpacking trusts nothing: it accepts only plain files with the names of a run's files, up to a total size.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from launcher.errors import RunNotFound, UsageError
from launcher.gate.redact import redact, redact_data
from launcher.run.store import Run
from launcher.secrets import Masker

FORMAT = 1
SUFFIX = ".tar.gz"
DOCUMENTS = (
    "run", "plan", "profile", "facts", "launch", "findings", "effective", "server_info", "validation", "diagnosis",
    "trial",
)  # fmt: skip
TEXTS = ("launch.sh", "server.log", "events.jsonl")
NAMES = frozenset((*(f"{name}.json" for name in DOCUMENTS), *TEXTS, "bundle.json"))
LARGEST = 4 << 30  # bytes of an unpacked bundle
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}\Z")


def write(run: Run, path: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Pack a run into the file `path`, and return `path`.

    Values of the plan's secrets are masked too if this environment contains them. Paths of home folders are kept.
    """
    source = os.environ if environ is None else environ
    names = (run.read("plan") or {}).get("secret_env") or ()
    masker = Masker(source[name] for name in names if source.get(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed:
            _fill(packed, run, masker)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


@contextmanager
def opened(path: Path) -> Iterator[Run]:
    """Open a run's folder, or a bundle, which stays unpacked while the block runs. Raises RunNotFound, UsageError."""
    if path.is_dir():
        if not (path / "run.json").exists():
            raise RunNotFound(f"{path} is not a run: run.json is missing", hint="`launch runs` lists the runs")
        yield Run(id=path.resolve().name, folder=path)
        return
    if not path.exists():
        raise RunNotFound(f"no such run or bundle: {path}", hint="`launch runs` lists the runs")
    with tempfile.TemporaryDirectory(prefix="bundle-") as scratch:
        yield unpack(path, Path(scratch))


def unpack(path: Path, folder: Path) -> Run:
    """Unpack a bundle into `folder`. Raises UsageError for an archive with anything that `write` does not pack."""
    try:
        with path.open("rb") as raw, tarfile.open(fileobj=raw, mode="r|gz") as archive:
            return _extract(archive, path, folder)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UsageError(f"cannot unpack {path}: {error}", hint="`launch bundle RUN` writes a bundle") from error


def _extract(archive: tarfile.TarFile, path: Path, folder: Path) -> Run:
    top, total = "", 0
    for member in archive:
        run, _, name = member.name.partition("/")
        if not member.isreg() or name not in NAMES or not _ID.match(run) or run != (top or run):
            message = f"{path} is not a bundle: it contains `{member.name}`"
            raise UsageError(message, hint="no file of it was kept; `launch bundle RUN` writes a bundle")
        top, total = run, total + member.size
        if total > LARGEST:
            raise UsageError(f"{path} exceeds {LARGEST >> 30} GiB when unpacked")
        target = folder / run / name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        source = archive.extractfile(member)
        assert source is not None  # a regular file, see above
        with target.open("xb") as out:
            while chunk := source.read(1 << 20):
                out.write(chunk)
    if not top or not (folder / top / "run.json").exists():
        raise UsageError(f"{path} is not a bundle: run.json is missing", hint="`launch bundle RUN` writes a bundle")
    _verify(folder / top, path)
    return Run(id=top, folder=folder / top)


def _verify(folder: Path, path: Path) -> None:
    manifest = folder / "bundle.json"
    if not manifest.exists():
        raise UsageError(f"{path} is truncated: bundle.json, its last file, is missing")
    listed = json.loads(manifest.read_bytes())
    if listed.get("format") != FORMAT:
        raise UsageError(f"{path} has bundle format {listed.get('format')}; this launcher reads format {FORMAT}")
    for name, digest in dict(listed.get("files") or {}).items():
        if name not in NAMES or not (folder / name).exists() or _digest(folder / name) != digest:
            raise UsageError(f"{path} is damaged: {name} does not match its digest in bundle.json")


def _fill(packed: gzip.GzipFile, run: Run, masker: Masker) -> None:
    digests: dict[str, str] = {}
    with tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name in DOCUMENTS:
            data = run.read(name)
            if data is not None:
                text = masker(json.dumps(redact_data(data), indent=1, ensure_ascii=False)) + "\n"
                digests[f"{name}.json"] = _add(archive, f"{run.id}/{name}.json", io.BytesIO(text.encode()))
        for name in TEXTS:
            path = run.folder / name
            if path.exists():
                with tempfile.TemporaryFile() as clean:
                    _clean(path, clean, masker)
                    digests[name] = _add(archive, f"{run.id}/{name}", clean)
        manifest = json.dumps({"format": FORMAT, "run": run.id, "files": digests}, indent=1) + "\n"
        _add(archive, f"{run.id}/bundle.json", io.BytesIO(manifest.encode()))


def _clean(path: Path, out: IO[bytes], masker: Masker) -> None:
    """Copy a text of any size, line by line, without its secrets. Bytes that are not UTF-8 stay unchanged."""
    with path.open("rb") as lines:
        for line in lines:
            text = line.decode("utf-8", "surrogateescape")
            out.write(redact(masker(text)).encode("utf-8", "surrogateescape"))


def _add(archive: tarfile.TarFile, name: str, data: IO[bytes]) -> str:
    """Add a file and return its sha256. Owner, mode and time are the same in every bundle."""
    member = tarfile.TarInfo(name)
    member.size = data.seek(0, io.SEEK_END)
    member.mode = 0o644
    data.seek(0)
    digest = hashlib.file_digest(data, "sha256").hexdigest()  # type: ignore[arg-type]
    data.seek(0)
    archive.addfile(member, data)
    return digest


def _digest(path: Path) -> str:
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
