"""Runs under the engine's interpreter: resolves the arguments of many launches, each in a process of its own.

Reads {"jobs": [{"name", "argv"}], "seconds"} from standard input and prints one JSON line per launch: {"name", "kind":
accepted | usage | refused | broken, "exception", "message", "frame"}. Like the main process, it goes on to the model's
configuration after the arguments.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
from typing import Any


def main() -> None:
    asked = json.load(sys.stdin)
    from sglang.srt import server_args as engine
    from sglang.srt.configs import model_config

    for job in asked["jobs"]:
        answer = in_child(job["argv"], asked["seconds"], engine, model_config)
        sys.stdout.write(json.dumps({"name": job["name"], **answer}) + "\n")
        sys.stdout.flush()


def in_child(argv: list[str], seconds: float, engine: Any, model_config: Any) -> dict[str, Any]:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.chdir(tempfile.mkdtemp())
        try:
            text = json.dumps(resolved(argv, engine, model_config), default=str)
        except BaseException as error:
            text = json.dumps({"kind": "broken", "message": repr(error)})
        os.write(write, text.encode()[:60_000])
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], seconds)
    text = os.read(read, 65_536).decode() if ready else ""
    os.killpg(pid, signal.SIGKILL) if not ready else None
    os.waitpid(pid, 0)
    os.close(read)
    return json.loads(text) if text else {"kind": "broken", "message": f"no answer within {seconds} s"}


def resolved(argv: list[str], engine: Any, model_config: Any) -> dict[str, Any]:
    from launcher.hostside.argument_resolution import EngineWarnings, error_report, resolve

    quiet = os.open(os.devnull, os.O_WRONLY)
    errors = tempfile.TemporaryFile()  # noqa: SIM115 (the process ends with it)
    os.dup2(quiet, 1)
    os.dup2(errors.fileno(), 2)
    try:
        resolve(engine, argv, EngineWarnings())
        model_config.ModelConfig.from_server_args(engine.prepare_server_args(list(argv)))
    except SystemExit as error:
        sys.stderr.flush()
        errors.seek(0)
        lines = [line for line in errors.read().decode("utf-8", "replace").splitlines() if "error: " in line]
        return {"kind": "usage", "message": lines[-1] if lines else str(error)}
    except BaseException as error:
        return {"kind": "refused", **error_report(error)}
    return {"kind": "accepted"}


if __name__ == "__main__":
    main()
