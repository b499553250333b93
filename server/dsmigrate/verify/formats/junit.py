"""For CI systems that read JUnit reports: a case for each stage, and one for what is resumed."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from dsmigrate.verify.formats import text, words
from dsmigrate.verify.model import Verdict, Verification
from dsmigrate.verify.request import Request
from dsmigrate.visible import visible


def render(verification: Verification) -> str:
    """Return the report: what parts or fails is a failure, what could not be found out an error."""
    suite = _suite(verification)
    for verdict in verification.verdicts:
        _case(suite, verification, verdict)
    return _document(suite)


def unmade(request: Request, reason: str) -> str:
    """Return the report of a verification that could not be made: one case, with an error."""
    suite = _suite(request)
    case = _named(suite, request, words.pair(request), 0.0)
    attributes = {"type": "unmade", "message": visible(reason.partition("\n")[0])}
    ET.SubElement(case, "error", attributes).text = visible(reason)
    return _document(suite)


def _suite(one: Verification | Request) -> ET.Element:
    return ET.Element("testsuite", {"name": f"dsmigrate verify {one.original.as_posix()}"})


def _document(suite: ET.Element) -> str:
    for name, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(name, str(sum(1 for _ in suite.iter(kind))))
    top = ET.Element("testsuites", {"name": "dsmigrate verify"})
    top.append(suite)
    ET.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + visible(ET.tostring(top, encoding="unicode")) + "\n"


def _named(suite: ET.Element, one: Verification | Request, name: str, seconds: float) -> ET.Element:
    file = one.original.as_posix()
    return ET.SubElement(suite, "testcase", {"classname": file, "name": name, "time": f"{seconds:.3f}", "file": file})


def _case(suite: ET.Element, verification: Verification, verdict: Verdict) -> None:
    comparison = verdict.comparison
    case = _named(suite, verification, words.title(verification, verdict), comparison.converted.outcome.seconds)
    lines = "\n".join(words.plain(text.of_verdict(verification, verdict)))
    if verdict.agrees:
        ET.SubElement(case, "system-out").text = visible(lines)
        return
    kind = "error" if verdict.is_open else "failure"
    attributes = {"type": words.status(comparison), "message": visible(words.verdict_line(verdict))}
    ET.SubElement(case, kind, attributes).text = visible(lines)
