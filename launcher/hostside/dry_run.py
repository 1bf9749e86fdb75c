"""The engine's own argument resolution, run by the engine's interpreter on the host: no weights, no GPU memory.

ARGS: argv (flags of the engine), env. Prints one line that begins with MARK: {"ok": true, "effective": {...},
"warnings": [...]} or {"ok": false, "kind": "usage"|"refused"|"broken", "exception", "message", "frame", "condition"}.
What raises is looked up in the engine's own source, so that even an assertion without a message says what it wanted.
"""

from __future__ import annotations

import ast
import json
import logging
import os
import sys
import time
import traceback

ARGS = {}  # put in front of the text when it is sent
MARK = "sglang-launcher-dry-run:"


def main(args):
    os.environ.update(args["env"])
    sys.argv = ["sglang", *args["argv"]]
    begin = time.monotonic()
    try:
        from sglang.srt import server_args as engine
    except BaseException as error:
        return {"ok": False, "kind": "broken", **what(error), "seconds": time.monotonic() - begin}
    imported = time.monotonic() - begin
    notes = Notes()
    try:
        resolved = resolve(engine, args["argv"], notes)
    except SystemExit as error:
        return {"ok": False, "kind": "usage", "message": str(error), "seconds": imported, "warnings": notes.lines}
    except BaseException as error:
        return {"ok": False, "kind": "refused", **what(error), "seconds": imported, "warnings": notes.lines}
    return {"ok": True, "effective": plain(resolved), "warnings": notes.lines, "seconds": imported,
            "resolve_seconds": time.monotonic() - begin - imported}  # fmt: skip


class Notes(logging.Handler):
    """Every warning the engine logs while it resolves."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage()[:500])


def resolve(engine, argv, notes):
    """All argument rules of the release; the resolved values by name."""
    logging.getLogger().addHandler(notes)
    record = engine.prepare_server_args(list(argv))
    logging.getLogger().addHandler(notes)  # 0.5.12 and later replace the root handlers while parsing
    if hasattr(record, "resolve_once"):
        record.resolve_once()
    record.check_server_args()
    if hasattr(record, "resolved_dict"):
        return record.resolved_dict()
    return dict(vars(record))


def what(error):
    """The exception, its innermost frame inside the engine, and the condition that guards it there."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/sglang/" in frame.filename] or frames
    frame = inside[-1] if inside else None
    return {
        "exception": type(error).__name__,
        "message": str(error)[:2000],
        "frame": "%s:%s in %s" % (short(frame.filename), frame.lineno, frame.name) if frame else "",
        "condition": condition(frame) if frame else "",
    }


def condition(frame):
    """The tests around the statement that raised, as source text, outermost first."""
    try:
        with open(frame.filename) as handle:
            tree = ast.parse(handle.read())
    except (OSError, SyntaxError):
        return ""
    best = None
    for node, tests in walk(tree, ()):
        if isinstance(node, ast.stmt) and node.lineno <= frame.lineno <= (node.end_lineno or node.lineno):
            own = ("assert " + ast.unparse(node.test),) if isinstance(node, ast.Assert) else ()
            best = (*tests, *own)
    return " and ".join(best[-4:]) if best else ""


def walk(node, tests):
    """Every node with the `if` tests that lead to it inside its own function."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            inner = tests
            if isinstance(node, ast.If) and name in ("body", "orelse"):
                text = ast.unparse(node.test)
                inner = (*tests, text if name == "body" else "not (%s)" % text)
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = ()
            yield child, inner
            yield from walk(child, inner)


def short(path):
    return path.rpartition("/sglang/")[2] or path


def plain(values):
    return {name: value if isinstance(value, (str, int, float, bool, list, type(None))) else str(value)[:200]
            for name, value in values.items() if not name.startswith("_") and "api_key" not in name}  # fmt: skip


if __name__ == "__main__":
    answer = main(ARGS)
    sys.stdout.flush()
    sys.stdout.write("\n" + MARK + json.dumps(answer, default=str) + "\n")
    sys.stdout.flush()
    os._exit(0)  # the engine's import may have left threads behind
