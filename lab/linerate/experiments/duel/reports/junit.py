# SPDX-License-Identifier: BSD-3-Clause
"""Reports in JUnit's XML for CI systems: one suite, with a case for each question.

Slower by more than the margin is a failure. No comparison is an error. An undecided question is
skipped: Jenkins and GitLab count errors with failures, and nothing was shown against the program;
the exit status decides whether it stops a pipeline.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from linerate.experiments.duel.reports.report import Outcome, Report

_SUITE = "linerate duel"
_CLASS = "linerate.duel"
_ELEMENTS: dict[Outcome, str] = {"failure": "failure", "error": "error", "skipped": "skipped"}
# All characters that XML 1.0 does not allow, escaped or not; a program may have printed them.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(reports: Sequence[Report]) -> str:
    """Return the whole document."""
    outcomes = [report.outcome for report in reports]
    counts = {
        "tests": str(len(reports)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
        "time": _seconds(sum(report.took_s for report in reports)),
    }
    root = ET.Element("testsuites", {"name": _SUITE, **counts})
    now = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
    suite = ET.SubElement(
        root, "testsuite",
        {"name": _SUITE, **counts, "timestamp": now, "hostname": _clean(platform.node())},
    )  # fmt: skip
    properties = ET.SubElement(suite, "properties")
    for report in reports:
        # A single case needs no link's name.
        of = f"{report.facts.get('link')}: " if len(reports) > 1 else ""
        for name, value in report.facts.items():
            ET.SubElement(properties, "property", {"name": of + name, "value": _clean(value)})
    for report in reports:
        _add_case(suite, report)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ET.Element, report: Report) -> None:
    case = ET.SubElement(
        suite, "testcase",
        {
            "classname": _CLASS,
            "name": _clean(report.question),
            "time": _seconds(report.took_s),
        },
    )  # fmt: skip
    if element := _ELEMENTS.get(report.outcome):
        why = {"message": _clean(report.sentence)}
        if report.outcome != "skipped":
            why["type"] = report.kind
        ET.SubElement(case, element, why).text = _clean(_words(report))
    ET.SubElement(case, "system-out").text = _clean(_words(report))


def _seconds(took: float) -> str:
    return f"{took:.3f}"


def _words(report: Report) -> str:
    """Return the whole report as text."""
    lines = [report.sentence, *(f"note: {note}" for note in report.notes)]
    return "\n".join([*lines, f"repeat: {report.repeat}"])


def _clean(text: str) -> str:
    return _NO_XML.sub("?", text)
