"""A Report as GitLab code quality JSON (the Code Climate subset that GitLab reads)."""

from __future__ import annotations

import json
from typing import Any

from checks.vocabulary import Severity
from launcher.gate.outputs.sarif import fingerprint
from launcher.gate.outputs.words import remark_text
from launcher.gate.report import Remark, Report, Status

_SEVERITY = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}
_LEFT_OUT = (Status.EXPECTED, Status.ACCEPTED)


def codequality(report: Report) -> str:
    """Return a JSON list of issues with unique fingerprints, as GitLab requires."""
    counts: dict[str, int] = {}
    rows = []
    for item in report.remarks:
        if item.status not in _LEFT_OUT:
            mark = fingerprint(item)
            counts[mark] = counts.get(mark, 0) + 1
            rows.append(_issue(item, mark if counts[mark] == 1 else f"{mark}-{counts[mark]}"))
    return json.dumps(rows, indent=1) + "\n"


def _issue(item: Remark, mark: str) -> dict[str, Any]:
    return {
        "description": remark_text(item),
        "check_name": item.rule,
        "fingerprint": mark,
        "severity": "blocker" if item.status is Status.FAIL else _SEVERITY[item.severity],
        "location": {"path": item.place.path, "lines": {"begin": item.place.line}},
    }
