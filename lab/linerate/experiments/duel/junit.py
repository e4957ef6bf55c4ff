# SPDX-License-Identifier: BSD-3-Clause
"""A report in JUnit's XML, as CI systems read it: one suite with one case, the question.

Slower by more than the margin is a failure. No comparison is an error. Not decided is skipped:
Jenkins and GitLab count errors with failures, and nothing was shown against the program; whether it
stops a pipeline is decided by the exit status.
"""

from __future__ import annotations

import platform
import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from linerate.experiments.duel.reports import Outcome, Report

_SUITE = "linerate duel"
_CLASS = "linerate.duel"
_ELEMENTS: dict[Outcome, str] = {"failure": "failure", "error": "error", "skipped": "skipped"}
# All that XML 1.0 does not allow, escaped or not; a program may have printed it.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> str:
    """The whole document."""
    seconds = f"{report.took_s:.3f}"
    counts = {
        "tests": "1",
        "failures": str(int(report.outcome == "failure")),
        "errors": str(int(report.outcome == "error")),
        "skipped": str(int(report.outcome == "skipped")),
        "time": seconds,
    }
    root = ET.Element("testsuites", {"name": _SUITE, **counts})
    now = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
    suite = ET.SubElement(
        root, "testsuite",
        {"name": _SUITE, **counts, "timestamp": now, "hostname": _clean(platform.node())},
    )  # fmt: skip
    properties = ET.SubElement(suite, "properties")
    for name, value in report.facts.items():
        ET.SubElement(properties, "property", {"name": name, "value": _clean(value)})
    case = ET.SubElement(
        suite, "testcase",
        {"classname": _CLASS, "name": _clean(report.question), "time": seconds},
    )  # fmt: skip
    if element := _ELEMENTS.get(report.outcome):
        why = {"message": _clean(report.sentence)}
        if report.outcome != "skipped":
            why["type"] = report.kind
        ET.SubElement(case, element, why).text = _clean(_words(report))
    ET.SubElement(case, "system-out").text = _clean(_words(report))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _words(report: Report) -> str:
    """All of it, as text."""
    lines = [report.sentence, *(f"note: {note}" for note in report.notes)]
    return "\n".join([*lines, f"repeat: {report.repeat}"])


def _clean(text: str) -> str:
    return _NO_XML.sub("?", text)
