# SPDX-License-Identifier: BSD-3-Clause
"""Whatever is in files of others and in answers of others' programs: a reader takes it or says what
is wrong with it, in bounded time, and what it prints never steers a terminal.

Each test draws changes from a seed for some seconds. `FUZZ_SECONDS` and `FUZZ_SEED` look longer and
elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
import re
import shutil
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import simulated
import simulated_cloud
from conftest import TelemetryServer
from mutations import changed_bytes, changed_json, until_time_is_over
from probed import plain_answers, probed_answers
from simulated import Simulation
from test_duel import duel
from test_duel_reports import REPEAT, WORDS
from test_telemetry_nearfree import honest as nearfree_answers

from linerate.cli import duels_report
from linerate.cli.compare_screen import show
from linerate.cli.console import SafeConsole
from linerate.experiments.cloud.design import design_file
from linerate.experiments.duel import baseline, inspection, kept
from linerate.experiments.duel.inspection import differences
from linerate.experiments.duel.programs import program_of
from linerate.experiments.duel.record import record_of
from linerate.experiments.duel.rounds import Asked
from linerate.forwarders import files
from linerate.host.builds import elf
from linerate.host.errors import LabError, TelemetryError
from linerate.records import run_file
from linerate.records.output import DUELS
from linerate.records.run_file import RUN, made_of
from linerate.records.trial import RECORDS
from linerate.runs.compare import compare
from linerate.runs.kept import rebuild
from linerate.runs.kept.stored import joined, stored
from linerate.runs.registry import find
from linerate.telemetry import hdr
from linerate.telemetry.client import Telemetry
from linerate.telemetry.top import figures
from linerate.telemetry.top.discover import Program
from linerate.telemetry.top.sample import Sample, Sampler
from linerate.telemetry.top.screen import render
from linerate.traffic import frame_files
from linerate.trial.starts.faults import FaultError

OLD = Path(__file__).with_name("old_runs")


class Paper(SafeConsole):
    """Output as printed without a terminal."""

    def __init__(self) -> None:
        super().__init__(width=200)
        self.file = io.StringIO()

    def check(self) -> None:
        """Check that there are only lines of characters that do not move the cursor."""
        assert isinstance(self.file, io.StringIO)
        text = self.file.getvalue()
        assert all(each.isprintable() or each == "\n" for each in text), repr(text[:500])


def old(name: str, to: Path) -> Path:
    # Not by tarfile, because Debian 12's Python lacks its filters.
    shutil.unpack_archive(OLD / f"{name}.tar.xz", to)
    return to / name.removeprefix("simulated-")


def changed_run(source: random.Random, files: dict[str, bytes], directory: Path) -> None:
    """One of its files, or both."""
    directory.mkdir(exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    if source.random() < 0.6:
        (directory / RUN).write_bytes(changed_json(source, files[RUN].decode()))
        return
    lines = files[RECORDS].splitlines(keepends=True)
    at = source.randrange(len(lines))
    if source.random() < 0.1:
        found = changed_bytes(source, files[RECORDS])
    elif source.random() < 0.2:
        lines.insert(source.randrange(len(lines) + 1), lines[at])
        found = b"".join(lines)
    else:
        # The same field of some trials: a single one is often not read.
        number = source.randrange(1 << 30)
        for each in range(at, min(at + source.choice((1, 1, 40)), len(lines))):
            lines[each] = changed_json(random.Random(number), lines[each].decode()) + b"\n"
        found = b"".join(lines)
    (directory / RECORDS).write_bytes(found)


@pytest.mark.parametrize(
    "name",
    ["overload-before", "simulated-rfc2544", "simulated-graph", "simulated-l3fwd",
     "simulated-latency", "simulated-paths"],
)  # fmt: skip
def test_runs(tmp_path: Path, name: str) -> None:
    """Reported, compared with the unchanged run, and printed on a terminal."""
    good = old(name, tmp_path)
    content = {each: (good / each).read_bytes() for each in (RUN, RECORDS)}
    bad = tmp_path / "bad"

    def check(source: random.Random) -> None:
        changed_run(source, content, bad)
        paper = Paper()
        with contextlib.suppress(LabError):
            rebuild.report([bad], None, paper)
        with contextlib.suppress(LabError):
            show(compare(stored(good), stored(bad), 0.02), paper)
        paper.check()

    until_time_is_over(check)


def test_a_run_that_is_resumed(tmp_path: Path, simulation: Simulation) -> None:
    simulated.start(tmp_path / "run")
    content = {each: (tmp_path / "run" / each).read_bytes() for each in (RUN, RECORDS)}
    number = iter(range(1 << 30))

    def check(source: random.Random) -> None:
        bad = tmp_path / str(next(number))
        changed_run(source, content, bad)
        paper = Paper()
        with contextlib.suppress(LabError):
            simulated.resume(bad, paper)
        paper.check()
        shutil.rmtree(bad)

    until_time_is_over(check)


def test_runs_beside_tenants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of `cloud`: reported, merged with the unchanged run, and resumed in various places."""
    windows = simulated_cloud.install(monkeypatch)
    good, other, killed = (tmp_path / name for name in ("good", "other", "killed"))
    for each in (good, other):
        simulated_cloud.start(each)
    with simulated.killed_at(windows, len(windows.ran) + len(windows.ran) // 4):
        simulated_cloud.start(killed)
    whole, half = (
        {name: (each / name).read_bytes() for name in (RUN, RECORDS)} for each in (good, killed)
    )
    number = iter(range(1 << 30))

    def check(source: random.Random) -> None:
        bad = tmp_path / str(next(number))
        what = source.randrange(3)
        changed_run(source, half if what == 2 else whole, bad)
        paper = Paper()
        with contextlib.suppress(LabError):
            if what == 0:
                rebuild.report([bad], None, paper)
            elif what == 1:
                rebuild.report([other, bad], tmp_path / "merged", paper)
            else:
                simulated_cloud.resume(bad, paper)
        with contextlib.suppress(LabError):
            show(compare(stored(good), stored(bad), 0.02), paper)
        paper.check()
        for each in (bad, tmp_path / "merged"):
            shutil.rmtree(each, ignore_errors=True)

    until_time_is_over(check)


def test_files_of_runs_beside_tenants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files read and merged without making a page: some thousand in a few seconds."""
    simulated_cloud.install(monkeypatch)
    good, other, bad = (tmp_path / name for name in ("good", "other", "bad"))
    for each in (good, other):
        simulated_cloud.start(each, blocks=1)
    content = {name: (good / name).read_bytes() for name in (RUN, RECORDS)}
    theirs = stored(other)
    refused = 0

    def check(source: random.Random) -> None:
        nonlocal refused
        changed_run(source, content, bad)
        try:
            with made_of(bad):
                found = stored(bad)
                joined([theirs, found])
        except LabError as error:
            refused += 1
            assert_names(error.message, bad)
        with contextlib.suppress(LabError), made_of(bad):
            run = run_file.load(bad)
            find(run.experiment).effective_values(run.options)

    assert until_time_is_over(check) > refused > 0


def assert_names(message: str, run: Path) -> None:
    """Check that a message about a run's file names it, and the line of the records."""
    if message.startswith("the runs have different options"):
        return
    assert str(run) in message, message
    if RECORDS in message and "has no" not in message:
        assert re.search(rf"{RECORDS}(, line \d+|: larger)|nothing can be made", message), message


@pytest.mark.parametrize("where", ["run", "run/more-1"])
def test_blocks_that_were_added(tmp_path: Path, simulation: Simulation, where: str) -> None:
    """A run with more blocks in a subdirectory: reported, and resumed for more blocks."""
    asked = {"forwarders": ["c-l2fwd", "rust-l2fwd"], "probe": False}
    simulated.start(tmp_path / "run", blocks=6, **asked)
    more: dict[str, Any] = {"--blocks": 8}
    simulated.resume(tmp_path / "run", **more)
    content = {each: (tmp_path / where / each).read_bytes() for each in (RUN, RECORDS)}
    number = iter(range(1 << 30))

    def check(source: random.Random) -> None:
        place = tmp_path / str(next(number))
        shutil.copytree(tmp_path / "run", place / "run")
        changed_run(source, content, place / where)
        paper = Paper()
        with contextlib.suppress(LabError):
            if source.random() < 0.5:
                rebuild.report([place / "run"], None, paper)
            else:
                simulated.resume(place / "run", paper, **more | {"--blocks": 9})
        paper.check()
        shutil.rmtree(place)

    until_time_is_over(check)


def test_definitions_designs_and_configurations(tmp_path: Path) -> None:
    """TOML and YAML files: a value in a wrong place is tested like arbitrary bytes."""
    folder = Path(files.__file__).parent / "definitions"
    texts = [each.read_bytes() for each in sorted(folder.glob("*.toml"))]
    designs = [design_file.text_of(name).encode() for name in design_file.names()]
    configuration = json.dumps(
        {
            "ports": [{"name": "a", "location": "x"}, {"name": "b", "location": "y"}],
            "flows": [
                {"name": "f", "tx_rx": {"choice": "port", "port": {"tx_name": "a"}}},
                {"name": "g", "tx_rx": {"choice": "port", "port": {"tx_name": "b"}}},
            ],
        }
    )
    path = tmp_path / "x.toml"

    def check(source: random.Random) -> None:
        path.write_bytes(changed_bytes(source, source.choice(texts)))
        with contextlib.suppress(LabError):
            files.read(path)
        path.write_bytes(changed_bytes(source, source.choice(designs)))
        with contextlib.suppress(LabError):
            design_file.read(str(path))
        path.write_bytes(changed_json(source, configuration))
        with contextlib.suppress(LabError):
            frame_files._of_configuration(str(path), 2, tmp_path, 1518)

    until_time_is_over(check)


def test_baselines_and_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = Path("fw")
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    given = "./fw {eal} -- -p {portmask}"
    baseline.keep(Path("base.json"), given, program_of(given, "A"))
    text, code = Path("base.json").read_text(), program.read_bytes()

    def check(source: random.Random) -> None:
        Path("base.json").write_bytes(changed_json(source, text))
        with contextlib.suppress(LabError):
            baseline.restore(Path("base.json"))
        Path("other").write_bytes(changed_bytes(source, code[:1024]) + code[1024:])
        for read in (elf.read, elf.loaded_digest):
            with contextlib.suppress(elf.UnreadableError):
                read(Path("other"))

    until_time_is_over(check)


def test_duels(tmp_path: Path) -> None:
    programs = [program_of(word, letter) for word, letter in zip(WORDS, "AB", strict=True)]
    told = ["B is slower than A."]
    records = [
        record_of(duel(0.9, 1), WORDS, programs, link, Asked(), told, REPEAT, hugepages=False)
        for link in ("null2", "memif2")
    ]
    text = kept.dump(
        kept.Duels(
            question="Is B slower?", answer="Yes.", began_at="2026-01-01T00:00:00+00:00",
            repeat=REPEAT, machine=simulated.MACHINE, versions={"linerate": "0"}, duels=records,
            failures=[kept.Failure(link="veth", message="none")],
        )
    )  # fmt: skip

    def check(source: random.Random) -> None:
        (tmp_path / DUELS).write_bytes(changed_json(source, text))
        paper = Paper()
        with contextlib.suppress(LabError):
            duels_report.report([tmp_path], None, paper)
        paper.check()

    until_time_is_over(check)


class Liar:
    """A program whose answers are changed as a random source says."""

    def __init__(self, path: Path) -> None:
        self.source = random.Random(0)
        self.honest: dict[str, Any] = {}
        # How many of the answers are changed.
        self.share = 0.15
        self.server = TelemetryServer(path, self)  # type: ignore[arg-type]

    def get(self, request: str) -> object:
        """The request handler of the server."""
        answer = self.honest.get(request)
        answer = answer() if callable(answer) else answer
        if self.source.random() >= self.share:
            return answer
        text = json.dumps({request.split(",", maxsplit=1)[0]: answer})
        # A longer answer would not fit into the socket.
        return changed_json(self.source, text)[: 1 << 16] or b"x"


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[Liar]:
    made = Liar(tmp_path / "socket")
    yield made
    made.server.close()


def test_answers_of_programs(liar: Liar) -> None:
    """Two samples and the screen made of them, by `linerate top`."""
    program = Program("x", liar.server.path, 1, "x")

    def taken(sampler: Sampler) -> Sample | None:
        with contextlib.suppress(TelemetryError):
            return sampler.take()
        return None

    def check(source: random.Random) -> None:
        liar.source = source
        liar.honest = source.choice((plain_answers, probed_answers))()
        with Telemetry(liar.server.path, timeout_s=1) as telemetry:
            sampler = Sampler(telemetry)
            samples = [taken(sampler), taken(sampler)]
            before, now = samples
            if before is None or now is None:
                return
            found = figures.compare(program, telemetry.version, before, now, datetime.now(UTC))
        json.loads(figures.dump(found))
        assert figures.dump(found).isascii()
        for ascii_only in (False, True):
            paper = Paper()
            paper.print(render(found, 120, ascii_only))
            paper.check()

    until_time_is_over(check)


def test_answers_about_frames(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs with net_nearfree, one of which lies about its frames, are compared."""
    monkeypatch.setattr(inspection, "_LOOK_S", 0.01)

    def check(source: random.Random) -> None:
        liar.source, liar.honest = random.Random(0), nearfree_answers()
        liar.share = 0.0
        with Telemetry(liar.server.path, timeout_s=1) as telemetry:
            one = inspection._look(telemetry, 1)
            liar.source, liar.share = source, 0.15
            with contextlib.suppress(TelemetryError, FaultError):
                other = inspection._look(telemetry, 1)
                inspection._refuse_other_flows(one, other, telemetry)
                inspection.refuse_unknown(1, other)
                inspection.refuse_wrong(1, other)
                assert all(isinstance(each, str) for each in differences(one, other, telemetry))

    until_time_is_over(check)


def test_histograms() -> None:
    honest = "".join(probed_answers()["/linerate/probe/latency"]()[0]["hdr"])

    def check(source: random.Random) -> None:
        content = zlib.decompress(base64.b64decode(honest)[8:])
        packed = zlib.compress(changed_bytes(source, content))
        head = base64.b64decode(honest)[:4] + len(packed).to_bytes(4, "big")
        for text in (
            base64.b64encode(head + packed),
            base64.b64encode(changed_bytes(source, head + packed)),
            changed_bytes(source, honest.encode()),
        ):
            with contextlib.suppress(ValueError):
                found = hdr.decode(text.decode("latin-1"))
                assert found.total >= 0
                assert hdr.difference(found, found) == hdr.Histogram()

    until_time_is_over(check)
