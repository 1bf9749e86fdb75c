"""Lets an imported engine resolve its arguments, and reports a refusal with the condition that guards it.

The statement that raised is looked up in the engine's source, so that even an assertion without a message is reported
with its condition.
"""

from __future__ import annotations

import ast
import logging
import traceback


class EngineWarnings(logging.Handler):
    """Collects the warnings that the engine logs while it resolves its arguments."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        try:
            text = record.getMessage()
        except Exception:  # arguments that do not fit the text; other handlers report that and go on
            text = str(record.msg)
        self.lines.append(text[:500])


def resolve(engine, argv, warnings):
    """Apply all argument rules of the release; returns the resolved values by name."""
    logging.getLogger().addHandler(warnings)
    record = engine.prepare_server_args(list(argv))
    logging.getLogger().addHandler(warnings)  # again, because 0.5.12 and later replace the root handlers while parsing
    if hasattr(record, "resolve_once"):
        record.resolve_once()
    record.check_server_args()
    if hasattr(record, "resolved_dict"):
        return record.resolved_dict()
    return dict(vars(record))


def error_report(error):
    """Return the exception, its innermost frame inside the engine, and the condition that guards that statement."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/sglang/" in frame.filename] or frames
    frame = inside[-1] if inside else None
    return {
        "exception": type(error).__name__,
        "message": str(error)[:2000],
        "frame": "%s:%s in %s" % (path_in_engine(frame.filename), frame.lineno, frame.name) if frame else "",
        "condition": condition(frame) if frame else "",
    }


def condition(frame):
    """Return the tests that guard the statement that raised, as source text, outermost first."""
    try:
        with open(frame.filename) as handle:
            tree = ast.parse(handle.read())
    except (OSError, SyntaxError):
        return ""
    guards = None
    for node, tests in nodes_with_tests(tree, ()):
        if isinstance(node, ast.stmt) and node.lineno <= frame.lineno <= (node.end_lineno or node.lineno):
            asserted = ("assert " + ast.unparse(node.test),) if isinstance(node, ast.Assert) else ()
            guards = (*tests, *asserted)
    return " and ".join(guards[-4:]) if guards else ""


def nodes_with_tests(node, tests):
    """Yield every node with the `if` tests that lead to it within its own function."""
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
            yield from nodes_with_tests(child, inner)


def path_in_engine(path):
    return path.rpartition("/sglang/")[2] or path


def json_values(values):
    return {name: value if isinstance(value, (str, int, float, bool, list, type(None))) else str(value)[:200]
            for name, value in values.items() if not name.startswith("_") and "api_key" not in name}  # fmt: skip
