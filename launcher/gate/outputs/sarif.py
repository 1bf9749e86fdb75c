"""A Report as SARIF 2.1.0 for code scanning: each remark on its line, accepted and known ones as suppressed results."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import quote

from checks.vocabulary import Severity
from launcher.gate.outputs.words import remark_text, targets_text
from launcher.gate.report import Gate, Remark, Report, Status

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif(report: Report) -> str:
    """Return one SARIF log with one run. Fingerprints do not change when lines move."""
    remarks = [item for item in report.remarks if item.status is not Status.EXPECTED]
    rules = list(dict.fromkeys(item.rule for item in remarks))
    first = {item.rule: item for item in reversed(remarks)}
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "sglang-launcher gate",
                        "semanticVersion": _version(),
                        "rules": [_rule(first[name]) for name in rules],
                    }
                },
                "automationDetails": {"id": f"launch-gate/{report.tier}/"},
                "invocations": [
                    {"executionSuccessful": True, "exitCode": {Gate.PASS: 0, Gate.FAIL: 1}.get(report.verdict, 5)}
                ],
                "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the top folder of the repository"}}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(item, rules.index(item.rule)) for item in remarks],
            }
        ],
    }
    return json.dumps(log, indent=1) + "\n"


def fingerprint(item: Remark) -> str:
    """Return 32 hex digits that depend only on the rule, profile, subject and file of a remark."""
    text = "\0".join((item.rule, item.profile, item.subject, item.place.path))
    return hashlib.sha256(_bytes(text)).hexdigest()[:32]


def _bytes(text: str) -> bytes:
    """Encode a path as git does. Lone surrogates, which escapes in YAML can produce, become backslash escapes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _rule(item: Remark) -> dict[str, Any]:
    why = item.why or item.message
    return {
        "id": item.rule,
        "shortDescription": {"text": item.rule.replace("-", " ")},
        "fullDescription": {"text": why},
        "help": {"text": f"{why}\n\nFor details: `launch explain {item.rule}`"},
    }


def _result(item: Remark, index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": item.rule,
        "ruleIndex": index,
        "level": _level(item),
        "message": {"text": _message(item)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": quote(_bytes(item.place.path)), "uriBaseId": "SRCROOT",
                    },
                    "region": {"startLine": item.place.line, "startColumn": item.place.column},
                },
                **({"logicalLocations": [{"name": item.profile, "kind": "profile"}]} if item.profile else {}),
            }
        ],
        "partialFingerprints": {"launchGate/v1": fingerprint(item)},
        "properties": {"status": item.status, "targets": list(item.targets)},
    }  # fmt: skip
    if item.status in (Status.ACCEPTED, Status.KNOWN):
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": item.status}]
    return result


def _level(item: Remark) -> str:
    if item.status is Status.FAIL:
        return "error"
    level = _LEVELS[item.severity]
    return "warning" if level == "error" else level


def _message(item: Remark) -> str:
    where = targets_text(item.targets)
    parts = [item.message + (f" [{where}]" if where else ""), *(f"Remedy: {text}" for text in item.remedies)]
    return "\n".join(parts) or remark_text(item)


def _version() -> str:
    try:
        return version("sglang-launcher")
    except PackageNotFoundError:
        return "0.0.0"
