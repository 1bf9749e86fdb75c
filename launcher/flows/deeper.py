"""The deeper stage: lm-eval or sgl-eval of this machine against the server under test, their results read back.

Optional: what is not installed is skipped with a hint. How they are called and judged is `checks.deeper`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checks.deeper import INSTALL, KEYS, Score, Target, absent, broken, command, judge, read_lm_eval, read_sgl_eval
from checks.model import Verdict
from checks.probe_context import ExpectError
from checks.yamlfile import did_you_mean
from launcher.transport.base import Command, Result, Transport

TIMEOUT = 6 * 3600.0  # seconds for one task
_NAMES = {"sgl-eval": ("sgl-eval",), "lm-eval": ("lm-eval", "lm_eval")}


def wishes(expect: Any) -> dict[str, Mapping[str, Any]]:
    """`expect.deeper`: task → {with, n, at_least}. Raises ExpectError."""
    if not isinstance(expect, Mapping):
        raise ExpectError("`deeper` is a mapping of tasks: {gsm8k: {n: 200, at_least: 0.8}}")
    found: dict[str, Mapping[str, Any]] = {}
    for task, part in expect.items():
        plain = {str(key).replace("-", "_"): value for key, value in (part or {}).items()}
        for key in plain:
            if key not in KEYS:
                raise ExpectError(f"unknown key `{key}` in `deeper`: {did_you_mean(key, KEYS)}")
        if plain.get("with", "lm-eval") not in INSTALL:
            raise ExpectError(f"`deeper`: {plain['with']} is not known: {', '.join(INSTALL)} are")
        found[str(task)] = plain
    return found


def deeper(
    local: Transport, target: Target, tasks: Mapping[str, Mapping[str, Any]], folder: Path, path: str | None = None
) -> list[Verdict]:
    """One verdict a task, one task after the other. `local` is this machine; results stay under `folder`.

    `path` is searched for the programs in place of $PATH and this interpreter's own folder.
    """
    where = path if path is not None else f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    found = {name: program for name in INSTALL if (program := _program(name, where))}
    verdicts = []
    for task, wish in tasks.items():
        wanted = (str(wish["with"]),) if "with" in wish else tuple(INSTALL)
        name = next((item for item in wanted if item in found), None)
        verdicts.append(
            _one(local, target, (task, wish), (name, found[name]), folder) if name else absent(task, wanted)
        )
    return verdicts


def _one(
    local: Transport, target: Target, wanted: tuple[str, Mapping[str, Any]], program: tuple[str, str], folder: Path
) -> Verdict:
    (task, wish), (name, path) = wanted, program
    out = folder / f"{name}-{''.join(c if c.isalnum() else '-' for c in task)}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    words = (path, *command(name, task, wish.get("n"), target, str(out.resolve())))
    # lm-eval's API models insist on a key; the address is this machine's, which no proxy may see
    env = {"OPENAI_API_KEY": "EMPTY", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    result = local.run(Command(argv=words, label=name, env=env, timeout=TIMEOUT))
    (out / "output.log").write_bytes(result.stdout + result.stderr)
    score = _score(name, task, out)
    if score is None or result.exit != 0:
        return broken(task, name, result.exit, _said(result))
    least = wish.get("at_least")
    return judge(task, name, score, None if least is None else float(least))


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
