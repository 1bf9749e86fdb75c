"""Runs the argument code of one release of the engine for many launches, without its host: the engine's twin.

ARGS: folder (to work in), release (folder with sglang/), packages_folder, kept (distributions), gpus, cuda, machine (cpus, numa_nodes,
memory_bytes; empty if unknown), packages, env, limits, jobs: [{name, argv, models: path
→ {file: document}}]. Prints one line per job that begins with MARK: {"name", "kind", "stage", …}, where kind is
`accepted` (with `effective`), `usage` or `refused` (with exception, message, frame, condition), or `unknown`. It imports
the engine once and answers each job in a process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback

from launcher.hostside.argument_resolution import EngineWarnings, error_report, json_values, resolve
from launcher.hostside.simulated_host import assume_paths, confine, simulate_cpus, simulate_gpus, tolerate
from launcher.hostside.stand_ins import Doubts, simulate_packages

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program
MARK = "sglang-launcher-twin:"
# Errors of a release's own checks. Any other type may come from something that is not simulated.
REFUSALS = ("ValueError", "AssertionError", "NotImplementedError", "ImportError", "ModuleNotFoundError", "RuntimeError")


def main(args):
    folder = os.path.realpath(args["folder"])
    prepare(args, folder)
    began = time.monotonic()
    try:
        from sglang.srt import server_args as engine
        from sglang.srt.configs import model_config
    except BaseException as error:
        report = {"kind": "unknown", "stage": "import", **error_report(error)}
        for job in args["jobs"]:
            tell({"name": job["name"], **report, "doubts": ["the release cannot be imported here"]})
        return
    if args["machine"]:
        simulate_cpus(folder, args["machine"])
    preload(args["jobs"])
    imported = time.monotonic() - began
    for job in args["jobs"]:
        tell({**in_child(job, args, folder, engine, model_config), "import_seconds": imported})


def prepare(args, folder):
    """Set the paths, the environment and the simulated host, before anything of the engine is imported."""
    sys.dont_write_bytecode = True
    sys.path[:0] = [args["release"], args["packages_folder"]]
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    os.environ.clear()  # variables of whoever runs this are not those of the launch
    os.environ.update(kept)
    os.environ.update(args["env"])
    os.environ.update({
        "HOME": folder, "TMPDIR": folder, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HOME": folder,
        "PATH": folder + os.pathsep + os.environ.get("PATH", ""), "TOKENIZERS_PARALLELISM": "false",
        "SGLANG_DISABLE_TQDM": "1", "TRITON_CACHE_DIR": folder, "FLASHINFER_WORKSPACE_BASE": folder,
        "TORCHINDUCTOR_CACHE_DIR": folder, "XDG_CACHE_HOME": folder,
    })  # fmt: skip
    tempfile.tempdir = folder
    os.chdir(folder)
    simulate_packages(args["packages"], args["kept"])
    import torch

    tolerate(torch)
    simulate_gpus(torch, args["gpus"], args["env"].get("CUDA_VISIBLE_DEVICES"), args["cuda"], folder)


def preload(jobs):
    """Import the configuration classes of the jobs' models once, because each process would import them again."""
    from transformers import AutoConfig

    kinds = {d.get("model_type") for job in jobs for files in job["models"].values() for d in files.values()
             if isinstance(d, dict)}  # fmt: skip
    for kind in kinds:
        try:
            AutoConfig.for_model(str(kind))
        except Exception:
            continue  # a model of the engine's own, or remote code


def in_child(job, args, folder, engine, model_config):
    """Return the answer to a job from a process of its own, or `unknown` if it ends without one."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        answer = {"kind": "unknown", "doubts": ["the process died"]}
        try:
            answer = answer_of(job, args, folder, engine, model_config)
        finally:
            with os.fdopen(write, "wb") as stream:
                stream.write(json.dumps(answer, default=str).encode())
            os._exit(0)
    os.close(write)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.alarm(args["limits"]["seconds"])
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    signal.alarm(0)
    os.waitpid(pid, 0)
    try:
        return {"name": job["name"], **json.loads(text)}
    except ValueError:
        doubt = "it did not end within %d s, or was killed" % args["limits"]["seconds"]
        return {"name": job["name"], "kind": "unknown", "doubts": [doubt]}


def answer_of(job, args, folder, engine, model_config):
    limits = args["limits"]
    began = time.monotonic()
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    errors = open(os.path.join(folder, "stderr"), "w+b")
    os.dup2(errors.fileno(), 2)
    own = tempfile.mkdtemp(dir=folder)
    places = {path: write_model(own, number, files) for number, (path, files) in enumerate(job["models"].items())}
    argv = [replaced(word, places) for word in job["argv"]]
    resource.setrlimit(resource.RLIMIT_CPU, (limits["seconds"], limits["seconds"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
    resource.setrlimit(resource.RLIMIT_DATA, (limits["bytes"], limits["bytes"]))
    doubts = Doubts()
    assume_paths([value for word in argv for value in values_of(word) if value not in places.values()], doubts)
    answer: dict = {"stage": "arguments"}
    warnings = EngineWarnings()
    confine(folder, doubts)
    try:
        resolved = resolve(engine, argv, warnings)
        answer.update(kind="accepted", effective=json_values(resolved))
        answer["stage"] = "model"
        after_arguments(engine, model_config, argv)
    except SystemExit as error:
        sys.stderr.flush()
        errors.seek(0)
        answer.update(kind="usage", message=usage(errors.read()) or str(error))
    except BaseException as error:
        answer.update(judged(error, doubts))
    answer.update(doubts=doubts.texts, warnings=warnings.lines, seconds=time.monotonic() - began)
    return json.loads(restored(json.dumps(answer, default=str), places))


def after_arguments(engine, model_config, argv):
    """Do what the main process does next and needs no tokenizer: the model's configuration, the names of templates."""
    arguments = engine.prepare_server_args(list(argv))
    model_config.ModelConfig.from_server_args(arguments)


def judged(error, doubts):
    """Return whether an exception is the release's own refusal, or rests on something that is not simulated."""
    report = error_report(error)
    last = error
    while last.__cause__ is not None:
        last = last.__cause__
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if isinstance(last, (OSError, MemoryError, KeyboardInterrupt)) or was_denied(error):
        doubts.add("%s: %s" % (type(last).__name__, str(last)[:200]))
    elif doubts.touched and in_import(error):
        doubts.add("%s while a module was imported" % type(error).__name__)
    elif doubts.touched and not set(kinds) & set(REFUSALS):
        doubts.add("%s may come from a kernel package, which is not simulated" % type(error).__name__)
    return {"kind": "unknown" if doubts.texts else "refused", **report}


def was_denied(error):
    """Whether an error came up while the engine dealt with something that is not allowed here."""
    while error is not None:
        if isinstance(error, PermissionError):
            return True
        error = error.__context__
    return False


def in_import(error):
    """Whether the code of a module raised an error while the module was imported."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.filename == "<frozen importlib._bootstrap>" for frame in frames)


def values_of(word):
    """Return the absolute paths in a word of the command line: the word itself, or what follows `=`."""
    return [text for text in (word, word.partition("=")[2]) if text.startswith("/")]


def usage(text):
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return next((line for line in reversed(lines) if "error: " in line), "")


def write_model(folder, number, files):
    """Write the files of a model's folder that decide arguments; a text is written as it is, others as JSON."""
    place = os.path.join(folder, "model-%d" % number)
    os.mkdir(place)
    for name, document in files.items():
        with open(os.path.join(place, os.path.basename(name)), "w") as handle:
            handle.write(document if isinstance(document, str) else json.dumps(document))
    return place


def replaced(word, places):
    """Return a word of the command line with the path of a model replaced by its folder here."""
    name, equals, value = word.partition("=")
    return places.get(word) or (name + equals + places[value] if equals and value in places else word)


def restored(text, places):
    for path, place in places.items():
        text = text.replace(place, path)
    return text


def tell(answer):
    sys.stdout.write("\n" + MARK + json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(ARGS)
    sys.stdout.flush()
    os._exit(0)  # the engine's import may have left threads running
