"""The deeper stage: lm-eval or sgl-eval of this machine against the server under test, their results read back.

Optional: what is not installed is skipped with a hint. How they are called and judged is `checks.after.external_evals`.
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
# The key comes through standard input: words and environment of a command can be read by every user (ps).
_WITH_KEY = 'OPENAI_API_KEY=$(cat); export OPENAI_API_KEY; exec "$@" </dev/null'
_NAMES = {"sgl-eval": ("sgl-eval",), "lm-eval": ("lm-eval", "lm_eval")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where harnesses run. `local` is this machine; results stay under `folder`."""

    local: Transport
    folder: Path
    api_key: str = field(default="", repr=False)  # of the server under test
    path: str | None = None  # searched for the programs in place of $PATH and this interpreter's own folder


def deeper(bench: Bench, target: Target, tasks: Mapping[str, DeeperTask]) -> list[Verdict]:
    """One verdict a task, one task after the other."""
    path = bench.path
    where = path if path is not None else f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    found = {name: program for name in INSTALL if (program := _program(name, where))}
    verdicts = []
    for task, limits in tasks.items():
        wanted = (limits.program,) if limits.program else tuple(INSTALL)
        name = next((item for item in wanted if item in found), None)
        verdicts.append(_one(bench, target, (task, limits), (name, found[name])) if name else absent(task, wanted))
    return verdicts


def _one(bench: Bench, target: Target, wanted: tuple[str, DeeperTask], program: tuple[str, str]) -> Verdict:
    (task, limits), (name, path) = wanted, program
    out = bench.folder / f"{name}-{''.join(c if c.isalnum() else '-' for c in task)}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    words = (path, *command(name, task, limits.n, target, str(out.resolve())))
    # the address is this machine's, which no proxy may see; lm-eval's API models insist on a key, any key
    env = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    key = bench.api_key or "EMPTY"
    argv = ("/bin/sh", "-c", _WITH_KEY, name, *words)
    result = bench.local.run(Command(argv=argv, label=name, stdin=key.encode(), env=env, timeout=TIMEOUT))
    mask = Masker([bench.api_key])
    (out / "output.log").write_text(mask((result.stdout + result.stderr).decode("utf-8", "replace")), "utf-8")
    score = _score(name, task, out)
    if score is None or result.exit != 0:
        return broken(task, name, result.exit, mask(_said(result)))
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
    return next((found for word in _NAMES[name] if (found := shutil.which(word, path=path))), None)


def _said(result: Result) -> str:
    return (result.stderr or result.stdout).decode("utf-8", "replace")
