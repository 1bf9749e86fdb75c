"""A Report as GitHub workflow commands: one annotation per remark, on its line in the pull request."""

from __future__ import annotations

from checks.vocabulary import Severity
from launcher.gate.outputs.words import targets_text
from launcher.gate.report import Place, Remark, Report, Status

# GitHub shows only ten annotations of each kind per step, so failures come first.
_ORDER = (Status.FAIL, Status.INCONCLUSIVE, Status.NOTE, Status.KNOWN)


def workflow_commands(report: Report) -> str:
    """Return the lines for the standard output of a step."""
    chosen = sorted((item for item in report.remarks if item.status in _ORDER), key=lambda i: _ORDER.index(i.status))
    return "".join(f"{_line(item)}\n" for item in chosen)


def annotation(kind: str, place: Place, title: str, message: str) -> str:
    """Return one workflow command. `kind` is error, warning or notice."""
    where = f"file={_property(place.path)},line={place.line},col={place.column},title={_property(title)}"
    return f"::{kind} {where}::{_data(message)}"


def _line(item: Remark) -> str:
    if item.status is Status.FAIL:
        kind = "error"
    else:
        kind = "notice" if item.severity is Severity.INFO or item.status is Status.KNOWN else "warning"
    where = targets_text(item.targets)
    parts = [item.message + (f" [{where}]" if where else ""), *(f"Remedy: {text}" for text in item.remedies[:2])]
    title = f"{item.rule}{f' ({item.profile})' if item.profile else ''}"
    return annotation(kind, item.place, title, "\n".join(parts))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
