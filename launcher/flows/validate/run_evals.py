"""Run the deeper stage: lm-eval or sgl-eval, installed on this machine, against the server under test.

The stage is optional: a harness that is not installed is skipped with a hint. `checks.after.external_evals` builds its
command line and judges its results.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from checks.after.external_evals import (
    INSTALL,
    Score,
    Target,
    absent,
    broken,
    command,
    judge,
    read_lm_eval,
    read_sgl_eval,
)
from checks.after.probes.expect import DeeperTask
from checks.vocabulary import Verdict
from launcher.secrets import Masker
from launcher.transport.base import Command, Result, Transport

TIMEOUT = 6 * 3600.0  # seconds for one task
# The key arrives through standard input: every user can read the arguments and environment of a command (ps).
_WITH_KEY = 'OPENAI_API_KEY=$(cat); export OPENAI_API_KEY; exec "$@" </dev/null'
_NAMES = {"sgl-eval": ("sgl-eval",), "lm-eval": ("lm-eval", "lm_eval")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where harnesses run: `local` is this machine, and `folder` keeps their results."""

    local: Transport
    folder: Path
    api_key: str = field(default="", repr=False)  # of the server under test
    path: str | None = None  # search path for the programs; None: this interpreter's own folder, then $PATH


def deeper(bench: Bench, target: Target, tasks: Mapping[str, DeeperTask]) -> list[Verdict]:
    """Run the tasks one after another. Returns one verdict per task, `skip` for a task without an installed harness."""
    path = bench.path
    if path is None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    installed = {name: program for name in INSTALL if (program := _program(name, path))}
    verdicts = []
    for task, limits in tasks.items():
        allowed = (limits.program,) if limits.program else tuple(INSTALL)
        name = next((item for item in allowed if item in installed), None)
        verdicts.append(
            _run_task(bench, target, (task, limits), (name, installed[name])) if name else absent(task, allowed)
        )
    return verdicts


def _run_task(bench: Bench, target: Target, evaluation: tuple[str, DeeperTask], program: tuple[str, str]) -> Verdict:
    (task, limits), (name, path) = evaluation, program
    out = bench.folder / f"{name}-{''.join(c if c.isalnum() else '-' for c in task)}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    words = (path, *command(name, task, limits.n, target, str(out.resolve())))
    # the address is local and must not go through a proxy; lm-eval's API models require some key, whatever its value
    env = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    key = bench.api_key or "EMPTY"
    argv = ("/bin/sh", "-c", _WITH_KEY, name, *words)
    result = bench.local.run(Command(argv=argv, label=name, stdin=key.encode(), env=env, timeout=TIMEOUT))
    mask = Masker([bench.api_key])
    (out / "output.log").write_text(mask((result.stdout + result.stderr).decode("utf-8", "replace")), "utf-8")
    score = _score(name, task, out)
    if score is None or result.exit != 0:
        return broken(task, name, result.exit, mask(_output(result)))
    return judge(task, name, score, limits.at_least)


def _score(name: str, task: str, out: Path) -> Score | None:
    pattern = "metrics.json" if name == "sgl-eval" else "results*.json"
    files = sorted(out.rglob(pattern), key=lambda path: path.stat().st_mtime)
    if not files:
        return None
    try:
        data = json.loads(files[-1].read_text("utf-8"))
    except ValueError:
        return None
    return read_sgl_eval(data) if name == "sgl-eval" else read_lm_eval(data, task)


def _program(name: str, path: str) -> str | None:
    return next((program for word in _NAMES[name] if (program := shutil.which(word, path=path))), None)


def _output(result: Result) -> str:
    return (result.stderr or result.stdout).decode("utf-8", "replace")
