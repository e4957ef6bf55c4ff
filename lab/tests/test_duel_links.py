# SPDX-License-Identifier: BSD-3-Clause
"""Duels on several links, of several builds, and kept in a directory, without a measurement."""

from __future__ import annotations

import html
import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import by_schema
import pytest
from conftest import Linerate
from test_duel import duel

from linerate.cli import duel_session
from linerate.cli.duel_command import worst
from linerate.cli.duel_session import DuelSession, _memory
from linerate.experiments.duel import choosing
from linerate.experiments.duel.choosing import Choice, choose
from linerate.experiments.duel.programs import Side, program_of, side_of
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.sentences import altogether, side_called
from linerate.forwarders import forwarder
from linerate.host.errors import BusyError, MachineError
from linerate.host.exit_status import BisectStatus, ExitStatus
from linerate.host.text import listed
from linerate.links import LINKS, Ports, link
from linerate.records.summary import Summary
from linerate.report.in_short import in_short
from linerate.trial.starts import ways
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.window import Slice, Window

OLD_RUN = Path(__file__).parent / "old_runs" / "simulated-overload-after.tar.xz"
SLOWER, FASTER, EQUAL = duel(0.9, 30), duel(1.1, 30), duel(1.0, 30)
Fight = Callable[[dict[str, Duel | BaseException]], None]


@pytest.fixture
def fights(monkeypatch: pytest.MonkeyPatch) -> Fight:
    """Set what the next duels find, by link: a duel, or an error."""

    def find(found: dict[str, Duel | BaseException]) -> None:
        def fight(bench: object, on: Any, *_: object) -> Duel:
            outcome = found[on.name]
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(duel_session, "fight", fight)

    monkeypatch.setattr(duel_session, "huge_room", lambda *_: None)
    return find


# -- several links ---------------------------------------------------------------------------------


def test_one_duel_on_each_link_and_a_sentence_about_all(
    tmp_path: Path, linerate: Linerate, fights: Fight
) -> None:
    fights({"null": FASTER, "null2": EQUAL})
    options = ("--link", "null,null2", "--junit", "d.xml", "--markdown", "d.md")
    done = linerate("duel", "rust-l2fwd", "rust-l2fwd-burst", *options)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[-1] == (
        "B (rust-l2fwd-burst) against A (rust-l2fwd): faster by more than 2 % on null; as fast, "
        "within 2 %, on null2."
    )
    assert lines[-3].startswith("On null: B (rust-l2fwd-burst) is faster")
    suite = ET.parse(tmp_path / "d.xml").find("testsuite")
    assert suite is not None
    assert suite.get("tests") == "2"
    names = [case.get("name", "") for case in suite.iter("testcase")]
    assert [name.rpartition(" on ")[2] for name in names] == ["null?", "null2?"]
    text = (tmp_path / "d.md").read_text()
    assert text.count("| B / A |") == 2
    assert text.count("Repeat it:") == 1


def test_json_of_several_links_is_what_a_directory_keeps(linerate: Linerate, fights: Fight) -> None:
    """This includes links on which there was no duel."""
    fights({"null": SLOWER, "null2": EQUAL, "nearfree2": MachineError("no room")})
    links = "null,null2,nearfree2"
    done = linerate("duel", "rust-l2fwd", "rust-l2fwd-burst", "--link", links, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    by_schema.check(found, "duels-1.json")
    assert [each["link"] for each in found["duels"]] == ["null", "null2"]
    assert found["failures"] == [{"link": "nearfree2", "message": "no room"}]


def test_an_error_on_one_link_leaves_the_others(
    tmp_path: Path, linerate: Linerate, fights: Fight
) -> None:
    fights({"null": MachineError("no room"), "null2": EQUAL})
    options = ("--link", "null,null2", "--out", "kept", "--junit", "d.xml")
    done = linerate("duel", "rust-l2fwd", "rust-l2fwd-burst", *options)
    assert done.returncode == 4
    assert "linerate: on null: no room" in done.stderr
    assert done.stdout.splitlines()[-1].endswith(
        "as fast, within 2 %, on null2; not compared on null."
    )
    kept = json.loads((tmp_path / "kept" / "duels.json").read_text())
    assert kept["failures"] == [{"link": "null", "message": "no room"}]
    assert "Not decided on 1 link" in (tmp_path / "kept" / "report.html").read_text()
    errors = ET.parse(tmp_path / "d.xml").findall("testsuite/testcase/error")
    assert len(errors) == 1


def test_the_page_has_the_answer_of_a_run_below(
    tmp_path: Path, linerate: Linerate, fights: Fight
) -> None:
    """Also if that run has no figures to show beside the published ones."""
    fights({"null": EQUAL})
    duels = ("duel", "rust-l2fwd", "rust-l2fwd-burst", "--out", "kept", "--link", "null")
    assert linerate(*duels).returncode == 0
    # Not by tarfile, whose filters Debian 12's Python does not have.
    shutil.unpack_archive(OLD_RUN, tmp_path / "unpacked")
    (run,) = (path.parent for path in (tmp_path / "unpacked").rglob("run.json"))
    run.rename(tmp_path / "kept" / "floods")
    assert linerate("report", "kept/floods").returncode == 0
    summary = Summary.model_validate_json((tmp_path / "kept/floods/summary.json").read_text())
    answer = in_short(summary)
    assert answer
    assert linerate("report", "kept").returncode == 0
    page = (tmp_path / "kept" / "report.html").read_text()
    assert f"<strong>{html.escape(answer, quote=False)}</strong>" in page
    assert page.index(html.escape(answer, quote=False)) < page.index("The whole report is in")


def test_cpus_that_stay_busy_are_waited_for_once(
    monkeypatch: pytest.MonkeyPatch, linerate: Linerate
) -> None:
    """With three links it took three times --wait, and ended as if a program were missing."""
    waits = []

    def busy(session: DuelSession, directory: object) -> Duel:
        waits.append(session.where.wait_s)
        raise BusyError("too few CPUs are free")

    monkeypatch.setattr(DuelSession, "run", busy)
    options = ("--link", "null,null2,frames2", "--wait", "10m")
    done = linerate("duel", "rust-l2fwd", "rust-l2fwd-burst", *options)
    assert (done.returncode, waits) == (ExitStatus.BUSY, [600, 1, 1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rust-l2fwd", "c-l2fwd", "--link", "null,null"), "--link null,null: names a link twice"),
        (("rust-l2fwd", "c-l2fwd", "--link", "null,nul2"), "did you mean null2?"),
        (("c-l2fwd,c-l2fwd", "rust-l2fwd"), "A, c-l2fwd,c-l2fwd: names a forwarder twice"),
        (("c-l2fwd,c-l2fw", "rust-l2fwd"), "A c-l2fw: no such forwarder"),
        (("af-packet-mmap,af-packet-mmsg", "rust-l2fwd"), "A (af-packet-mmap): "),
    ],
)
def test_what_is_wrong_is_refused_by_name(
    linerate: Linerate, fights: Fight, words: Sequence[str], message: str
) -> None:
    fights({})
    done = linerate("duel", *words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_the_worst_of_several_is_the_status() -> None:
    done, slower = ExitStatus.DONE, ExitStatus.SLOWER
    assert worst([done]) is done
    assert worst([ExitStatus.CANNOT_RUN, slower, ExitStatus.UNDECIDED]) is slower
    assert worst([done, ExitStatus.UNDECIDED]) is ExitStatus.UNDECIDED
    assert worst([ExitStatus.UNDECIDED, ExitStatus.CANNOT_RUN]) is ExitStatus.CANNOT_RUN
    assert worst([ExitStatus.UNDECIDED, ExitStatus.BUSY]) is ExitStatus.BUSY
    assert worst([ExitStatus.BUSY, ExitStatus.CANNOT_RUN]) is ExitStatus.CANNOT_RUN
    assert worst([BisectStatus.GOOD, BisectStatus.SKIP]) is BisectStatus.SKIP
    assert worst([BisectStatus.SKIP, BisectStatus.BAD]) is BisectStatus.BAD


def test_words_for_several() -> None:
    assert listed(["null"]) == "null"
    assert listed(["null", "frames", "memif"]) == "null, frames and memif"
    assert side_called(["c", "c-native"], "A") == "A (the fastest of 2 builds of c)"
    assert side_called(["c", "d"], "B") == "B (the fastest of c and d)"
    assert (
        altogether(["A", "B"], 0.02, {"null": "undecided"})
        == "B against A: not told apart on null."
    )


# -- several builds --------------------------------------------------------------------------------


def test_only_names_are_a_list() -> None:
    assert side_of("c-l2fwd,rust-l2fwd", "A").words == ("c-l2fwd", "rust-l2fwd")
    command = "./l3fwd {eal} -- -p {portmask} --config='(0,0,0),(1,0,0)'"
    assert side_of(command, "B").words == (command,)


def _side() -> Side:
    return side_of("c-l2fwd,rust-l2fwd,rust-l2fwd-burst", "A")


def _choosing(monkeypatch: pytest.MonkeyPatch, figures: list[list[float]]) -> Choice:
    """Return a choice with the rates of each build in each round, in packets per second."""
    rounds = iter(figures)

    class Context:
        def __init__(self, value: object) -> None:
            self.value = value

        def __enter__(self) -> Any:
            return self.value

        def __exit__(self, *_: object) -> None:
            return None

    class By:
        def started(self, order: Sequence[int]) -> Context:
            return Context(order)

        def measure(self, order: Sequence[int]) -> list[Window]:
            pps = [int(figure) for figure in next(rounds)]
            return [Window(at, (Slice((pps[at],), (pps[at],), 10**9),)) for at in order]

    monkeypatch.setattr(choosing, "opened", lambda *_: Context(By()))
    return choose(object(), link("null"), _side(), Asked(), lambda _: None)  # type: ignore[arg-type]


def test_the_fastest_is_chosen_within_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's speed changes twofold from round to round, and means nothing."""
    found = _choosing(monkeypatch, [[100e6, 110e6, 90e6], [52e6, 55e6, 45e6], [98e6, 111e6, 95e6]])
    assert found.chosen == 1
    assert found.shares[1] == 1.0
    assert found.shares[0] == pytest.approx(52 / 55, abs=0.04)


def test_a_build_at_fault_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FaultError, match=r"^rust-l2fwd: it received no packet") as caught:
        _choosing(monkeypatch, [[100e6, 0.0, 90e6]])
    assert caught.value.arm == 0


def test_the_chosen_one_is_in_record_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linerate: Linerate, fights: Fight
) -> None:
    fights({"null": FASTER})
    monkeypatch.setattr(choosing, "choose", lambda *_: Choice(1, (0.97, 1.0), "cpu"))
    words = ("c-l2fwd,rust-l2fwd", "rust-l2fwd-burst")
    done = linerate("duel", *words, "--link", "null", "--out", "kept")
    assert done.returncode == 0
    assert "A is rust-l2fwd, the fastest here: c-l2fwd 0.970, rust-l2fwd 1.000" in done.stdout
    assert "than A (rust-l2fwd) by more than 2 %" in done.stdout
    kept = json.loads((tmp_path / "kept" / "duels.json").read_text())
    by_schema.check(kept, "duels-1.json")
    (record,) = kept["duels"]
    assert [build["share"] for build in record["builds"]] == [0.97, 1.0]
    assert record["programs"][0]["name"] == "rust-l2fwd"
    page = (tmp_path / "kept" / "report.html").read_text()
    assert "the fastest build was chosen first" in page
    assert "the fastest of c-l2fwd and rust-l2fwd" in page


def test_all_builds_must_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for three programs is enough for two sides, but not for choosing among four."""
    two = side_of("rust-l2fwd", "B")
    monkeypatch.setattr(duel_session, "room", lambda *_: 4)
    assert _memory("no", [side_of("c-l2fwd", "A"), two], 4, link("null"), ())[1] == 2
    monkeypatch.setattr(duel_session, "room", lambda *_: 3)
    four = Side("A", ("a", "b", "c", "d"), (forwarder("c-l2fwd"),) * 4)
    with pytest.raises(MachineError, match="too little memory for 4 programs at once"):
        _memory("no", [four, two], 4, link("null"), ())


def test_each_start_has_the_frames_in_memory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in small pages, wherever the other memory is."""
    file = tmp_path / "frames.pcap"
    with file.open("wb") as sparse:
        sparse.truncate(100 << 20)
    sides = [side_of("c-l2fwd", "A"), side_of("rust-l2fwd", "B")]
    monkeypatch.setattr(ways, "hugepage_memory_mib", lambda: 1 << 20)
    monkeypatch.setattr(ways, "available_memory_mib", lambda: 1400)
    assert _memory("yes", sides, 4, link("frames2"), ())[1] == 4
    # Twice the file's bytes while it is read.
    assert _memory("yes", sides, 4, link("frames2"), (file,))[1] == 3
    monkeypatch.setattr(ways, "available_memory_mib", lambda: 700)
    with pytest.raises(MachineError, match="frames of --traffic: 200 MiB for each of 4 programs"):
        _memory("auto", sides, 4, link("frames2"), (file,))


# -- kept ------------------------------------------------------------------------------------------


def test_a_page_is_made_anew_from_the_record(
    tmp_path: Path, linerate: Linerate, fights: Fight
) -> None:
    fights({"null": FASTER, "null2": SLOWER})
    options = ("--link", "null,null2", "--out", "kept")
    linerate("duel", "rust-l2fwd", "rust-l2fwd-burst", *options)
    page = tmp_path / "kept" / "report.html"
    before = page.read_text()
    page.unlink()
    done = linerate("report", "kept")
    assert done.returncode == 0
    assert page.read_text() == before
    # The answer comes first on the page, and last on the screen.
    assert before.index('class="faster"') < before.index("The differences")
    assert done.stdout.splitlines()[-1].startswith("B (rust-l2fwd-burst) against A (rust-l2fwd): ")


def test_a_directory_is_not_used_twice(linerate: Linerate, fights: Fight) -> None:
    fights({"null": EQUAL})
    words = ("duel", "rust-l2fwd", "rust-l2fwd-burst", "--link", "null", "--out", "kept")
    assert linerate(*words).returncode == 0
    done = linerate(*words)
    assert (done.returncode, "kept already has a run (" in done.stderr) == (2, True)


def test_a_directory_without_a_duel_does_not_stay(
    tmp_path: Path, linerate: Linerate, fights: Fight
) -> None:
    fights({"null": MachineError("no room")})
    done = linerate("duel", "rust-l2fwd", "rust-l2fwd-burst", "--link", "null", "--out", "kept")
    assert done.returncode == 4
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [("{}", "question: Field required"), ("{", "kept/duels.json: Invalid JSON")],
)
def test_a_record_that_is_broken_is_named(
    tmp_path: Path, linerate: Linerate, content: str, message: str
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "duels.json").write_text(content)
    done = linerate("report", "kept")
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_duels_are_not_merged(tmp_path: Path, linerate: Linerate) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "duels.json").write_text("{}")
    done = linerate("report", "kept", "other")
    assert (done.returncode, "duels cannot be merged" in done.stderr) == (2, True)


# -- the page --------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "is-my-build-slower.md"


def rows() -> Iterator[tuple[list[str], str]]:
    """Return the names in the table of links, and the text of its last column."""
    section = PAGE.read_text().partition("\n## Which link?\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    assert "| `--link`" in lines.pop(0)
    for line in lines:
        first, *_, last = line.strip("|").split(" | ")
        yield re.findall(r"`([^`]+)`", first), last


def test_the_page_s_table_has_every_link() -> None:
    named = [name for names, _ in rows() for name in names]
    assert sorted(named) == sorted(set(LINKS) - {Ports.name})


def test_the_page_says_which_command_lines_a_link_takes() -> None:
    programs = {"{eal}": program_of("./fw {eal}", "A"), "{rx}": program_of("./fw {rx} {tx}", "A")}
    for names, last in rows():
        for name, (word, program) in itertools.product(names, programs.items()):
            assert (f"`{word}`" in last) is (program.misfit(link(name)) is None), (name, word)
