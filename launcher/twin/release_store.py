"""Keep the source of engine releases in the user's cache: fetched from the package index, or from a wheel or folder.

Compiled code and other large files are left out. The wheel of a recorded release must have the digest that
`wheels.json` lists.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct
from packaging.requirements import InvalidRequirement, Requirement

from checks import KNOWLEDGE
from launcher.errors import UsageError
from launcher.knowledge_cache import cache_folder
from launcher.transport.answers import last_line
from launcher.transport.base import Command, Transport

DIGESTS = KNOWLEDGE / "engines" / "wheels.json"
ORIGIN = "origin.json"
_MOST_BYTES = 300_000  # of a file that is not Python: the engine looks for the sources of its kernels
_DOWNLOAD = 600.0  # seconds
# One variant of each wheel is fetched, whatever runs here: its Python files are the same in all variants.
_VARIANT = (
    "--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--abi", "abi3", "--abi", "none",
    "--platform", "manylinux_2_34_x86_64", "--platform", "manylinux2014_x86_64", "--platform", "any",
)  # fmt: skip


class Release(Struct, frozen=True, kw_only=True):
    """The source of one release in the cache."""

    version: str
    folder: Path  # contains sglang/
    sha256: str  # of the wheel; of the names and sizes for a folder
    requirements: tuple[str, ...]  # as the release declares them

    def pin(self, distribution: str) -> str:
        """Return the version of a package that the release requires exactly; empty without a pin."""
        for requirement in self.parsed():
            if requirement.name == distribution:
                return next((item.version for item in requirement.specifier if item.operator == "=="), "")
        return ""

    def assumed(self) -> dict[str, str]:
        """Return the packages of an installation that was not measured: what the release requires, with a version."""
        return {
            item.name: next((clause.version for clause in item.specifier if clause.operator in ("==", ">=")), "99.0")
            for item in self.parsed()
        }

    def parsed(self) -> Iterator[Requirement]:
        """Yield the requirements that count without an option, and those of the runtime of old releases."""
        for text in self.requirements:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            extra = str(requirement.marker or "")
            if "extra ==" not in extra or '"srt"' in extra or "runtime-common" in extra:
                yield requirement


def stored(version: str) -> Release | None:
    """Return a release from the cache; None if it was not fetched."""
    folder = _folder(version)
    try:
        origin = json.loads((folder / ORIGIN).read_bytes())
        digest, requirements = str(origin["sha256"]), tuple(origin["requirements"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Release(version=version, folder=folder, sha256=digest, requirements=requirements)


def fetched() -> tuple[str, ...]:
    """Return the versions in the cache, in the order of their names."""
    places = cache_folder() / "twin" / "releases"
    return tuple(sorted(path.name for path in places.glob("*") if (path / ORIGIN).is_file()))


def fetch(transport: Transport, version: str) -> Release:
    """Download the wheel of a release and store its source. Raises UsageError if that fails or the digest differs."""
    with tempfile.TemporaryDirectory() as place:
        options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", *_VARIANT, "-d", place)
        command = (sys.executable, "-m", "pip", "download", *options, f"sglang=={version}")
        result = transport.run(Command(argv=command, label="pip download", timeout=_DOWNLOAD))
        wheels = list(Path(place).glob("*.whl"))
        if result.exit or not wheels:
            reason = last_line(result.stderr) or "pip found no wheel"
            raise UsageError(
                f"cannot download SGLang {version}: {reason}",
                hint=f"download the wheel elsewhere, then: launch engines fetch {version} --wheel FILE",
            )
        return store_wheel(wheels[0], version)


def store_wheel(wheel: Path, version: str) -> Release:
    """Store the source in a wheel file. Raises UsageError for a file that is not this release's wheel."""
    try:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        archive = zipfile.ZipFile(wheel)
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"cannot read the wheel: {error}", where=str(wheel)) from error
    expected = digests().get(wheel.name)
    if expected and expected != digest:
        raise UsageError(f"the SHA-256 of {wheel.name} is {digest}, expected {expected}", where=str(wheel))
    with archive:
        parts = (part for part in archive.infolist() if part.filename.startswith("sglang/"))
        names = [part.filename for part in parts if part.file_size <= _MOST_BYTES or part.filename.endswith(".py")]
        metadata = next((name for name in archive.namelist() if name.endswith(".dist-info/METADATA")), "")
        if not names or not metadata:
            raise UsageError("this wheel does not contain sglang", where=str(wheel))
        text = archive.read(metadata).decode("utf-8", "replace")
        found = _field(text, "Version")
        if version and found != version:
            raise UsageError(f"the wheel contains SGLang {found}, not {version}", where=str(wheel))
        with _replacing(found) as folder:
            for name in (*names, metadata):
                archive.extract(name, folder)
            _note_origin(folder, digest, text)
    return _stored(found)


def store_folder(source: Path, version: str) -> Release:
    """Store the source in a checkout (`python/sglang`), a site-packages folder or the package's own folder."""
    places = (source / "python" / "sglang", source / "sglang", source)
    package = next((place for place in places if (place / "srt" / "server_args.py").is_file()), None)
    if package is None:
        raise UsageError("no engine source here: srt/server_args.py is missing", where=str(source))
    metadata = next(package.parent.glob(f"sglang-{version}*.dist-info/METADATA"), None)
    known = stored(version)
    if metadata is None and known is None:
        raise UsageError(
            f"this folder does not say what SGLang {version} requires",
            where=str(source),
            hint=f"first `launch engines fetch {version}`, whose requirements are then used",
        )
    text = metadata.read_text("utf-8", "replace") if metadata else _as_metadata(known)
    digest = hashlib.sha256()
    with _replacing(version) as folder:
        small = (file for file in package.rglob("*") if file.is_file() and file.suffix not in (".pyc", ".so"))
        for file in sorted(file for file in small if file.suffix == ".py" or file.stat().st_size <= _MOST_BYTES):
            target = folder / "sglang" / file.relative_to(package)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
        _note_origin(folder, digest.hexdigest(), text)
    return _stored(version)


@cache
def digests() -> dict[str, str]:
    """Return file name of a wheel → SHA-256, for the recorded releases."""
    return dict(json.loads(DIGESTS.read_bytes()))


class _replacing:
    """Build the folder of a release under another name, and put it in its place when it is complete."""

    def __init__(self, version: str) -> None:
        self._final = _folder(version)
        self._partial = self._final.with_name(f".{version}.{os.getpid()}")

    def __enter__(self) -> Path:
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir(parents=True)
        return self._partial

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            shutil.rmtree(self._final, ignore_errors=True)
            self._partial.rename(self._final)
        else:
            shutil.rmtree(self._partial, ignore_errors=True)


def _note_origin(folder: Path, digest: str, metadata: str) -> None:
    needs = [line.partition(":")[2].strip() for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    (folder / ORIGIN).write_text(json.dumps({"sha256": digest, "requirements": needs}))


def _as_metadata(release: Release | None) -> str:
    return "".join(f"Requires-Dist: {text}\n" for text in (release.requirements if release else ()))


def _field(metadata: str, name: str) -> str:
    lines = (line for line in metadata.splitlines() if line.startswith(f"{name}:"))
    return next(lines, ":").partition(":")[2].strip()


def _folder(version: str) -> Path:
    return cache_folder() / "twin" / "releases" / version


def _stored(version: str) -> Release:
    release = stored(version)
    if release is None:
        raise UsageError(f"the stored source of SGLang {version} cannot be read", where=str(_folder(version)))
    return release
