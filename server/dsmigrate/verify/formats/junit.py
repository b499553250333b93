"""For CI systems that read JUnit reports: a case for each stage, and one for what is resumed."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from dsmigrate.verify.formats import text, words
from dsmigrate.verify.model import Verdict, Verification
from dsmigrate.visible import visible


def render(verification: Verification) -> str:
    """Return the report: what parts or fails is a failure, what could not be found out an error."""
    suite = ET.Element("testsuite", {"name": f"dsmigrate verify {verification.original.as_posix()}"})
    for verdict in verification.verdicts:
        _case(suite, verification, verdict)
    for name, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(name, str(sum(1 for _ in suite.iter(kind))))
    top = ET.Element("testsuites", {"name": "dsmigrate verify"})
    top.append(suite)
    ET.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + visible(ET.tostring(top, encoding="unicode")) + "\n"


def _case(suite: ET.Element, verification: Verification, verdict: Verdict) -> None:
    comparison = verdict.comparison
    seconds = comparison.converted.outcome.seconds
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": verification.original.as_posix(),
            "name": words.title(verification, verdict),
            "time": f"{seconds:.3f}",
            "file": verification.original.as_posix(),
        },
    )
    lines = "\n".join(words.plain(text.of_verdict(verification, verdict)))
    if verdict.agrees:
        ET.SubElement(case, "system-out").text = visible(lines)
        return
    kind = "error" if verdict.is_open else "failure"
    attributes = {"type": words.status(comparison), "message": visible(words.verdict_line(verdict))}
    ET.SubElement(case, kind, attributes).text = visible(lines)
