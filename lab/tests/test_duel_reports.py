# SPDX-License-Identifier: BSD-3-Clause
"""Reports of duels for CI systems: JUnit and Markdown, without programs."""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from test_duel import NAMES, duel

from linerate.experiments.duel.programs import program_of
from linerate.experiments.duel.record import record_of
from linerate.experiments.duel.reports.junit import junit
from linerate.experiments.duel.reports.markdown import markdown
from linerate.experiments.duel.reports.report import Report, figures, of_duel, of_error
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.sentences import notes, sentence
from linerate.host.errors import MissingError, OutputError, UsageError
from linerate.records.output import OutputFile
from linerate.trial.starts.faults import FaultError

WORDS = ["./old {eal} -- -p {portmask}", "./new {eal} -- -p {portmask}"]
REPEAT = "linerate duel './old {eal} -- -p {portmask}' './new {eal} -- -p {portmask}' --seed 7"
# From the schemas of Jenkins (junit-10.xsd) and Ant: which elements, in which order, with which
# attributes; mandatory ones come first.
SHAPE: dict[str, tuple[list[str], set[str], set[str]]] = {
    "testsuites": (["testsuite"], set(),
                   {"name", "tests", "failures", "errors", "skipped", "time"}),
    "testsuite": (
        ["properties", "testcase"],
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
        set(),
    ),
    "properties": (["property"], set(), set()),
    "property": ([], {"name", "value"}, set()),
    "testcase": (["skipped", "error", "failure", "system-out"],
                 {"name", "classname", "time"}, set()),
    "failure": ([], {"message", "type"}, set()),
    "error": ([], {"message", "type"}, set()),
    "skipped": ([], {"message"}, set()),
    "system-out": ([], set(), set()),
}  # fmt: skip


def report(found: Duel) -> Report:
    told = [sentence(found, NAMES, Asked()), *notes(found, NAMES)]
    programs = [program_of(word, letter) for word, letter in zip(WORDS, "AB", strict=True)]
    record = record_of(found, WORDS, programs, "null2", Asked(), told, REPEAT, hugepages=False)
    return of_duel(record)


def faulty(kind: str = "ended", message: str = "forwarder was killed by signal 11") -> Duel:
    found = duel(0.9, 1)
    found.fault = FaultError(1, kind, message)  # type: ignore[arg-type]
    return found


def check_shape(element: ET.Element) -> None:
    children, needed, allowed = SHAPE[element.tag]
    assert needed <= set(element.keys()) <= needed | allowed, element.tag
    places = [children.index(child.tag) for child in element]
    assert places == sorted(places), element.tag
    for child in element:
        check_shape(child)


def case_of(found: Report) -> tuple[ET.Element, ET.Element]:
    """Return the suite and the case of a document with the right shape."""
    root = ET.fromstring(junit([found]))
    assert root.tag == "testsuites"
    check_shape(root)
    (suite,) = root
    assert suite.get("name") == "linerate duel"
    datetime.fromisoformat(suite.get("timestamp", ""))
    case = suite.find("testcase")
    assert case is not None
    marks = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert marks == [
        "1", *(str(len(case.findall(name))) for name in ("failure", "error", "skipped"))
    ]  # fmt: skip
    return suite, case


@pytest.mark.parametrize(
    ("found", "element", "words"),
    [
        (duel(0.9, 30), "failure", "B (new) is slower than A (old) by more than 2 %"),
        (duel(1.2, 30), None, "B (new) is faster than A (old)"),
        (duel(1.0, 30), None, "B (new) is as fast as A (old)"),
        (duel(0.995, 9, spread=0.03), "skipped", "Not decided: B (new)"),
        (duel(0.8, 40, margin=0.5, itself=0.2), "skipped", "No verdict: A (old) differed"),
        (faulty(), "error", "No comparison: B (new) ended: forwarder was killed by signal 11."),
        (faulty("start", "no device"), "error", "No comparison: B (new) does not start"),
    ],
)
def test_a_case_for_each_answer(found: Duel, element: str | None, words: str) -> None:
    _, case = case_of(report(found))
    assert str(case.get("name")).startswith("Is B (new) slower than A (old) by more than ")
    assert str(case.get("name")).endswith(" % on null2?")
    marks = [child for child in case if child.tag != "system-out"]
    assert [child.tag for child in marks] == ([element] if element else [])
    for child in marks:
        assert str(child.get("message")).startswith(words)
    said = case.findtext("system-out") or ""
    assert said.startswith(words)
    assert said.endswith(f"repeat: {REPEAT}")
    assert case.get("time") == f"{found.took_s:.3f}"


def test_notes_and_figures_are_in_the_report() -> None:
    suite, case = case_of(report(duel(0.9, 30)))
    assert "note: A (old) against itself: " in (case.findtext("system-out") or "")
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert properties["answer"] == "slower"
    assert float(properties["ratio"] or 0) == pytest.approx(0.9, abs=0.02)
    assert properties["link"] == "null2"


def test_what_a_program_printed_does_not_break_the_document() -> None:
    message = "\x1b[31m<Cause> & \x00 \ud800 ]]> \ufffe end"
    _, case = case_of(report(faulty("start", message)))
    error = case.find("error")
    assert error is not None
    assert "?[31m<Cause> & ? ? ]]> ? end" in str(error.get("message"))


def test_an_error_is_a_report_too() -> None:
    found = of_error(MissingError("B: no such program: ./fw", "did you mean ./fw2?"), "Is it?", "x")
    _, case = case_of(found)
    assert case.get("name") == "Is it?"
    assert "did you mean ./fw2?" in (case.findtext("error") or "")
    assert markdown([found]).startswith("No comparison: B: no such program: ./fw")


def table_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_markdown_has_a_sentence_a_table_and_how_to_repeat_it() -> None:
    found = duel(0.9, 30)
    text = markdown([report(found)])
    blocks = text.split("\n\n")
    assert blocks[0].startswith("B (new) is slower than A (old) by more than 2 %: 0.9")
    heads, rule, row = table_of(blocks[1])
    assert heads[:4] == ["", "A (old)", "B (new)", "B / A"]
    assert len(heads) == len(rule) == len(row) == 7
    assert row[0] == "M packets per CPU second"
    assert float(row[3]) == pytest.approx(float(row[2]) / float(row[1]), rel=0.2)
    assert row[3] == f"{found.verdict.ratio:.3f}"
    assert row[5:] == [str(len(found.rounds)), f"{found.took_s:.0f} s"]
    assert f"```sh\n{REPEAT}\n```" in text


def test_before_there_is_an_interval_the_rounds_stand_in_its_place() -> None:
    found = duel(0.9, 30)
    heads, _, row = table_of(markdown([report(found)]))
    assert heads[4] == "least and greatest round"
    low, high = found.verdict.range
    assert row[4] == f"{low:.3f} to {high:.3f}"
    heads, _, row = table_of(markdown([report(duel(1.0, 30))]))
    assert heads[4] == "99 % interval"


def test_records_of_before_have_the_median_of_the_starts() -> None:
    """The ticks of a report are the values from which the record's ratio was computed."""
    found = duel(0.9, 6)
    programs = [program_of(word, letter) for word, letter in zip(WORDS, "AB", strict=True)]
    record = record_of(
        found, WORDS, programs, "null2", Asked(), ["It is."], REPEAT, hugepages=False
    )
    now = figures(record, ("A", "B"))
    before = figures(record.model_copy(update={"of_starts": "median"}), ("A", "B"))
    assert now
    assert before
    assert now.ratios == pytest.approx([math.exp(ratio) for ratio in found.verdict.rounds])
    medians = [
        statistics.median(done.figures(1)) / statistics.median(done.figures(0))
        for done in found.rounds
    ]
    assert before.ratios == pytest.approx(medians, rel=1e-3)
    assert before.ratios != pytest.approx(now.ratios, rel=1e-6)
    old = record.model_dump(mode="json", by_alias=True)
    del old["of_starts"]
    assert type(record).model_validate(old).of_starts == "median"


def test_marks_and_fences_in_texts_stay_texts() -> None:
    found = faulty("start", "a | b `c` <img> **d** @someone\n# line")
    text = markdown([replace(report(found), repeat="linerate duel 'a ``` b' c")])
    assert r"a \| b \`c\` \<img\> \*\*d\*\* \@someone \# line." in text
    assert "````sh\nlinerate duel 'a ``` b' c\n````" in text
    assert not re.search(r"^#", text, re.MULTILINE)


# -- the files -------------------------------------------------------------------------------------


def test_files_that_cannot_be_written_are_refused_by_their_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, message in (
        (tmp_path / "nosuch" / "x.xml", r"cannot write to .*x.xml: No such file or directory"),
        (tmp_path / "file" / "x.xml", r"cannot write to .*x.xml: Not a directory"),
        (tmp_path, r"--junit .*: not a regular file"),
        (Path("/dev/null"), r"--junit /dev/null: not a regular file"),
    ):
        with pytest.raises(UsageError, match=message) as refused:
            OutputFile(path, "--junit")
        assert "--junit" in str(refused.value) or refused.value.hint == "name a file"
    assert {each.name for each in tmp_path.iterdir()} == {"file"}


def test_a_file_is_written_whole_or_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.md").symlink_to("real/x.md")
    file = OutputFile(tmp_path / "link.md", "--markdown")
    assert list((tmp_path / "real").iterdir()) == []
    file.write("one")
    assert (tmp_path / "real" / "x.md").read_text() == "one"
    assert (tmp_path / "link.md").is_symlink()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OutputError, match="another --markdown"):
            file.write("two")
    assert [each.read_text() for each in (tmp_path / "real").iterdir()] == ["one"]
    file.remove()
    file.remove()
    assert list((tmp_path / "real").iterdir()) == []
