"""A Report as one JSON document. A contract: keys are only ever added."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from launcher.gate.report import Report

SCHEMA = 1


def document(report: Report) -> dict[str, Any]:
    """Return the report as plain JSON values."""
    return {"schema": SCHEMA, "verdict": report.verdict, **to_builtins(report)}
