"""For CI systems that read JUnit reports: a suite for each config, a case for each explanation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from dsmigrate.diff.changed import Outcome
from dsmigrate.diff.formats.places import line, place, url
from dsmigrate.diff.job import Compared
from dsmigrate.diff.model import Explained, Severity

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, whatever it is written as."""


def render(outcomes: Sequence[Outcome], fail_on: str) -> str:
    """Return the report; cases fail from the severity ``fail_on`` on, none with "never". A same config is one case."""
    top = ET.Element("testsuites", {"name": "dsmigrate diff"})
    for outcome in outcomes:
        suite = ET.SubElement(top, "testsuite", {"name": _text(outcome.title)})
        _cases(suite, outcome, fail_on)
        _count(suite, list(suite))
    _count(top, list(top.iter("testcase")))
    ET.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(top, encoding="unicode") + "\n"


def _cases(suite: ET.Element, outcome: Outcome, fail_on: str) -> None:
    compared = outcome.compared
    if compared is not None and compared.result.explained:
        for said in compared.result.explained:
            _said(suite, outcome, compared, said, fail_on)
        return
    case = _case(suite, outcome, "can be compared" if outcome.error else "same config")
    if outcome.error:
        ET.SubElement(case, "error", {"message": _text(outcome.error)})
    elif outcome.fails(fail_on):
        ET.SubElement(case, "failure", {"type": outcome.entry.status.value, "message": _text(outcome.verdict)})
    else:
        ET.SubElement(case, "system-out").text = _text(outcome.verdict)


def _said(suite: ET.Element, outcome: Outcome, compared: Compared, said: Explained, fail_on: str) -> None:
    spot = place(compared, said)[1]
    case = _case(suite, outcome, f"{said.code} {', '.join(said.paths)}")
    if spot is not None:
        case.set("line", str(line(compared.new, spot)))
    details = "\n".join(part for part in (said.message, said.advice and f"→ {said.advice}", url(said.code)) if part)
    if _fails(said, fail_on):
        failure = ET.SubElement(case, "failure", {"type": said.severity.value, "message": _text(said.message)})
        failure.text = _text(details)
    else:
        ET.SubElement(case, "system-out").text = _text(details)


def _fails(said: Explained, fail_on: str) -> bool:
    order = list(Severity)
    return fail_on != "never" and order.index(said.severity) <= order.index(Severity(fail_on))


def _case(suite: ET.Element, outcome: Outcome, name: str) -> ET.Element:
    path = _text(outcome.entry.path)
    return ET.SubElement(suite, "testcase", {"classname": path, "name": _text(name), "file": path})


def _count(element: ET.Element, cases: Sequence[ET.Element]) -> None:
    element.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error")):
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
