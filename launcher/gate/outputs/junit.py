"""A Report as JUnit XML: a test suite per profile, a test case per remark, one passing case without a remark."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from launcher.gate.outputs.words import remark_text
from launcher.gate.report import Remark, Report, Status

# Characters that XML 1.0 cannot represent, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> str:
    """Return one document. Accepted, known and expected remarks, and notes, are skipped cases: visible, not failing."""
    suites = Element("testsuites", name="launch gate", time=f"{report.seconds:.3f}")
    names = [item.name for item in report.affected]
    unaffected = sorted({item.profile for item in report.remarks} - set(names))
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for name in [*names, *unaffected]:
        suite = _suite(name, [item for item in report.remarks if item.profile == name])
        suites.append(suite)
        for key in totals:
            totals[key] += int(suite.get(key, "0"))
    for key, value in totals.items():
        suites.set(key, str(value))
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _suite(name: str, remarks: list[Remark]) -> Element:
    suite = Element("testsuite", name=_clean(name or "repository"))
    if not remarks:
        SubElement(suite, "testcase", classname=_clean(name or "repository"), name="gate")
    for item in remarks:
        _case(suite, item)
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    for tag, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(key, str(sum(1 for case in cases if case.find(tag) is not None)))
    return suite


def _case(suite: Element, item: Remark) -> None:
    case = SubElement(
        suite, "testcase", classname=_clean(item.profile or "repository"),
        name=_clean(f"{item.rule} {item.subject}".strip()), file=_clean(item.place.path), line=str(item.place.line),
    )  # fmt: skip
    text = _clean(remark_text(item))
    if item.status is Status.FAIL:
        SubElement(case, "failure", message=text, type=_clean(item.rule)).text = _detail(item)
    elif item.status is Status.INCONCLUSIVE:
        SubElement(case, "error", message=text, type=_clean(item.rule)).text = _detail(item)
    else:
        SubElement(case, "skipped", message=f"{item.status}: {text}")


def _detail(item: Remark) -> str:
    lines = [str(item.place), item.message, item.why, *(f"remedy: {text}" for text in item.remedies)]
    return _clean("\n".join(line for line in lines if line))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
