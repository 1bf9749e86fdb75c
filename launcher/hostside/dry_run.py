"""Runs the engine's own argument resolution with the engine's interpreter on the host: no weights, no GPU memory.

ARGS: argv (flags of the engine), env. Prints one line that begins with MARK: {"ok": true, "effective": {...},
"warnings": [...]} or {"ok": false, "kind": "usage"|"refused"|"broken", "exception", "message", "frame", "condition"}.
"""

from __future__ import annotations

import json
import os
import sys
import time

from launcher.hostside.argument_resolution import EngineWarnings, error_report, json_values, resolve

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program
MARK = "sglang-launcher-dry-run:"


def main(args):
    os.environ.update(args["env"])
    sys.argv = ["sglang", *args["argv"]]
    started = time.monotonic()
    try:
        from sglang.srt import server_args as engine
    except BaseException as error:
        return {"ok": False, "kind": "broken", **error_report(error), "seconds": time.monotonic() - started}
    imported = time.monotonic() - started
    warnings = EngineWarnings()
    try:
        resolved = resolve(engine, args["argv"], warnings)
    except SystemExit as error:
        return {"ok": False, "kind": "usage", "message": str(error), "seconds": imported, "warnings": warnings.lines}
    except BaseException as error:
        return {"ok": False, "kind": "refused", **error_report(error), "seconds": imported, "warnings": warnings.lines}
    return {"ok": True, "effective": json_values(resolved), "warnings": warnings.lines, "seconds": imported,
            "resolve_seconds": time.monotonic() - started - imported}  # fmt: skip


if __name__ == "__main__":
    answer = main(ARGS)
    sys.stdout.flush()
    sys.stdout.write("\n" + MARK + json.dumps(answer, default=str) + "\n")
    sys.stdout.flush()
    os._exit(0)  # the engine's import may have left threads running
