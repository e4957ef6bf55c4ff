# SPDX-License-Identifier: BSD-3-Clause
"""A session of experiment cloud before its first block: its budget, and what it continues with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cloud_data import DPDK, PART, XDP, design
from rich.console import Console
from simulated import KilledError, install_machine
from trials import made_trial

from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import Place
from linerate.experiments.cloud.design.plan import Room
from linerate.experiments.cloud.options import Options
from linerate.experiments.cloud.session import cell_run, plan
from linerate.experiments.cloud.session.plan import Cloud
from linerate.host.errors import BusyError, LabError
from linerate.host.exit_status import ExitStatus
from linerate.host.process import RunDirectory
from linerate.records.cells import Cell
from linerate.records.journal import Journal
from linerate.records.trial import RecordWriter, Trial, read
from linerate.runs.engine import engine, ledger
from linerate.runs.engine.engine import Engine
from linerate.runs.options import Preset
from linerate.runs.plans.quiet import RESTS_S
from linerate.runs.plans.steps import Announce, Attempts, Most, Record, Steps

NOTHING: Any = None
BLANK = {
    "experiment": "cloud", "seed": 1, "block": 0, "role": "self-test", "arm": "xdp-tx",
    "forwarder": "xdp-tx", "link": "veth", "size": 64, "load": "paced", "started_at": "",
}  # fmt: skip


class Session:
    """Two frameworks and two sizes; an attempt takes a minute of a simulated clock."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self._monkeypatch = monkeypatch
        self.counts = {"found": 0, "kept": 0}
        install_machine(monkeypatch, NOTHING, NOTHING)
        monkeypatch.setattr(ledger, "time", SimpleNamespace(monotonic=lambda: self.now))
        for name in ("Groups", "bridge"):
            monkeypatch.setattr(plan, name, lambda **_: nullcontext())
        monkeypatch.setattr(plan, "search_rate", lambda *_: self._step("found", 1000.0))
        monkeypatch.setattr(plan, "kept", lambda *_: self._step("kept", 1.0))
        asked = Options(preset=Preset("quick", 1, 1.0, 0, 0, ""), links=["veth"], hugepages="off")
        self.plan = Cloud(asked, design())
        self.writer = RecordWriter(path / "records.jsonl")
        self.journal = Journal(self.writer, [], 1)

    def _step(self, what: str, comes_to: float) -> Steps[float]:
        def run(attempt: int, record: Record) -> Trial:
            self.counts[what] += 1
            self.now += 60.0
            trial = made_trial(**BLANK, position=len(self.journal.trials))
            record(trial)
            return trial

        yield Attempts(due=lambda _: {}, run=run, most=Most(1), counts=False, fails=False)
        return comes_to

    def searches(self, run: RunDirectory, minutes: float) -> tuple[tuple[int, int], bool]:
        """Return how many own rates are searched within a budget, how many are tried beside
        tenants, and whether the session ended before its first block.
        """
        self.plan.minutes = minutes

        def blocks(*_: object) -> Steps[None]:
            raise KilledError
            yield Announce("")

        self._monkeypatch.setattr(self.plan, "_block", blocks)
        session = Engine(self.plan, run, self.journal, Console(quiet=True))
        with suppress(KilledError):
            session.measure()
        return (self.counts["found"], self.counts["kept"]), session.unfinished


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    found = Session(tmp_path, monkeypatch)
    yield found
    found.writer.close()


@pytest.mark.parametrize(
    ("minutes", "found", "kept"),
    [(0.5, 1, 0), (3, 3, 0), (7.5, 8, 0), (10, 8, 2), (11.5, 8, 4), (12.5, 8, 4)],
)
def test_searches_are_within_the_budget(
    tmp_path: Path, session: Session, minutes: float, found: int, kept: int
) -> None:
    with RunDirectory(tmp_path) as run:
        counts, unfinished = session.searches(run, minutes)
    assert counts == (found, kept)
    assert unfinished == (found + kept < 12)


def test_what_is_on_record_is_passed_without_a_budget(tmp_path: Path, session: Session) -> None:
    earlier = [made_trial(**BLANK, position=n) for n in range(12)]
    session.journal = Journal(session.writer, earlier, 2)
    with RunDirectory(tmp_path) as run:
        counts, unfinished = session.searches(run, 0.0)
    assert counts == (0, 0)
    assert len(session.journal.trials) == 12
    assert not unfinished


def own_core() -> CloudDesign:
    return design(replace(PART, cpus=("shared", "own")))


def test_a_session_without_the_tenants_core_is_refused(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be on the forwarder's core, in cells that are labelled otherwise."""
    session.plan.design = own_core()
    monkeypatch.setattr(Cloud, "room", Room(forwarder=1, spare=None))
    with pytest.raises(LabError, match=r"18 cells of this run .* no other core") as raised:
        session.plan.prepare()
    assert "when the run began" in str(raised.value)


# -- what is looked for again, and what all cells are offered --------------------------------------

SMALL, LARGE = 64, 1518
# The results of attempts, one after the other; the last one is repeated.
Script = dict[tuple[str, int], list[float | None]]


class Scripted:
    """A session on a machine with scripted results of attempts. A missing result, or one below what
    was asked for, is a void window: a compiler had the sender's CPU.
    """

    def __init__(
        self,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        rates: Script,
        kept: Script,
        keep_going: bool = False,
    ) -> None:
        self.rests: list[float] = []
        self.strangers = {"cc1": 0.46}
        self._left = {name: list(each) for name, each in rates.items()}
        self._kept = {name: list(each) for name, each in kept.items()}
        install_machine(monkeypatch, NOTHING, NOTHING)
        for name in ("Groups", "bridge"):
            monkeypatch.setattr(plan, name, lambda **_: nullcontext())
        monkeypatch.setattr(engine, "pause", self.rests.append)
        monkeypatch.setattr(plan, "search_rate", self._search)
        monkeypatch.setattr(plan, "kept", self._keep)
        asked = Options(
            preset=Preset("quick", 1, 1.0, 0, 0, ""), links=["veth"], hugepages="off",
            keep_going=keep_going,
        )  # fmt: skip
        self.plan = Cloud(asked, design())
        monkeypatch.setattr(self.plan, "_block", self._over)
        self.records = path / "records.jsonl"
        self.session = 0

    @staticmethod
    def _over(*_: object) -> Steps[None]:
        raise KilledError
        yield Announce("")

    def _search(self, framework: str, cell: Cell) -> Steps[float | None]:
        return self._attempt(self._left, framework, cell.size, 0.0)

    def _keep(
        self, site: object, setup: object, place: Place, ndr_pps: float, most: float
    ) -> Steps[float | None]:
        return self._attempt(self._kept, place.framework, place.size, most)

    def _attempt(
        self, script: Script, framework: str, size: int, asked: float
    ) -> Steps[float | None]:
        mine = script.get((framework, size), [1.0])
        found = mine.pop(0) if len(mine) > 1 else mine[0]
        if found is not None and asked:
            found = min(found, asked)
        void = found is None or found < asked

        def run(attempt: int, record: Record) -> Trial:
            trial = made_trial(
                **(BLANK | {"arm": framework, "forwarder": framework, "size": size}),
                **({"invalid": "it was late", "invalid_code": "late"} if void else {}),
            )
            trial.others = {"0": self.strangers} if void else {}
            trial.identity.session = self.session
            record(trial)
            return trial

        yield Attempts(
            due=lambda _: {"arm": framework, "size": size}, run=run, most=Most(1), counts=False,
            fails=False,
        )  # fmt: skip
        return found

    def measure(self) -> dict[tuple[str, int], float]:
        """Run a session until its first block, which decides what 100 % of each is."""
        self.session += 1
        earlier = read(self.records) if self.records.exists() else []
        writer = RecordWriter(self.records)
        try:
            with RunDirectory(self.records.parent) as run, suppress(KilledError):
                journal = Journal(writer, earlier, self.session)
                Engine(self.plan, run, journal, Console(quiet=True)).measure()
        finally:
            writer.close()
        return self.plan.full_rates


DPDK_NDR, XDP_NDR = 1000.0, 3000.0
FOUND: Script = {(DPDK, SMALL): [DPDK_NDR], (XDP, SMALL): [XDP_NDR], (XDP, LARGE): [2000.0]}


def test_all_sizes_are_offered_the_share_that_is_kept_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were a quarter at 64 B and seven tenths at 1518 B, and the page compared the two."""
    kept: Script = {(DPDK, SMALL): [0.7], (XDP, SMALL): [0.25]}
    lab = Scripted(tmp_path, monkeypatch, rates=FOUND, kept=kept)
    lab.strangers = {}
    assert lab.measure() == {
        (DPDK, SMALL): 250.0, (XDP, SMALL): 750.0, (DPDK, LARGE): 0.25, (XDP, LARGE): 500.0,
    }  # fmt: skip
    (warning,) = lab.plan.warnings
    assert "100 % is 25% of what each framework carries alone at each frame size" in warning
    assert "keeps no more of xdp-tx at 64 B" in warning
    assert not lab.rests


def test_a_share_is_tried_again_where_strangers_had_the_senders_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All attempts share one budget, so that this ends if the other processes stay."""
    kept: Script = {(XDP, SMALL): [0.25, None, 1.0]}
    lab = Scripted(tmp_path, monkeypatch, rates=FOUND, kept=kept)
    assert lab.measure()[XDP, SMALL] == XDP_NDR
    assert lab.rests == list(RESTS_S[:2])
    busy: Script = {(XDP, SMALL): [0.25], (DPDK, SMALL): [0.5], (XDP, LARGE): [0.5]}
    (tmp_path / "busy").mkdir()
    lab = Scripted(tmp_path / "busy", monkeypatch, rates=FOUND, kept=busy)
    assert lab.measure()[XDP, SMALL] == 0.25 * XDP_NDR
    assert lab.rests == list(RESTS_S)


def test_what_a_framework_carries_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One void flood of 0.3 s lost the reference, and with it every comparison of the study."""
    rates = FOUND | {(DPDK, SMALL): [None, None, DPDK_NDR]}
    lab = Scripted(tmp_path, monkeypatch, rates=rates, kept={})
    assert lab.measure()[DPDK, SMALL] == DPDK_NDR
    assert lab.rests == list(RESTS_S[:2])
    assert not lab.plan.warnings


def test_a_rate_is_searched_until_two_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = FOUND | {(XDP, SMALL): [0.5 * XDP_NDR, None, XDP_NDR, 0.95 * XDP_NDR]}
    lab = Scripted(tmp_path, monkeypatch, rates=rates, kept={})
    assert lab.measure()[XDP, SMALL] == XDP_NDR
    assert not lab.plan.warnings
    # A known rate is not waited for.
    assert not lab.rests


def test_a_rate_that_no_other_search_confirms_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One search of three found 1.5 times the rate of the others, on a quiet machine."""
    rates = FOUND | {(XDP, SMALL): [1.5 * XDP_NDR, 0.95 * XDP_NDR, XDP_NDR]}
    lab = Scripted(tmp_path, monkeypatch, rates=rates, kept={})
    assert lab.measure()[XDP, SMALL] == XDP_NDR
    assert not lab.plan.warnings


def test_rates_that_do_not_agree_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = FOUND | {(XDP, SMALL): [500.0, 1100.0, 2000.0, 3000.0]}
    lab = Scripted(tmp_path, monkeypatch, rates=rates, kept={})
    assert lab.measure()[XDP, SMALL] == XDP_NDR
    (warning,) = lab.plan.warnings
    assert "xdp-tx, 64 B: what it carries alone is not known, for searches found" in warning
    assert "0.5, 1.1, 2.0 and 3.0 kpps" in warning


@pytest.mark.parametrize("what", ["rates", "kept"])
def test_a_study_does_not_go_on_without_its_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    scripts: dict[str, Script] = {"rates": dict(FOUND), "kept": {}}
    scripts[what][DPDK, LARGE] = [None]
    lab = Scripted(tmp_path, monkeypatch, rates=scripts["rates"], kept=scripts["kept"])
    with pytest.raises(BusyError, match=r"the reference c-l2fwd, 1518 B: .*CPU 0: cc1 46%") as end:
        lab.measure()
    assert end.value.exit_code == ExitStatus.BUSY
    assert "--keep-going" in str(end.value)
    assert lab.rests == list(RESTS_S)
    # The next session has as many attempts, and repeats the recorded results in the same order.
    lab.rests.clear()
    again = Scripted(tmp_path, monkeypatch, rates=scripts["rates"], kept=scripts["kept"])
    again.session = 1
    with pytest.raises(BusyError):
        again.measure()
    assert again.rests == list(RESTS_S)


def test_a_study_goes_on_without_its_reference_where_it_is_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = FOUND | {(DPDK, SMALL): [None]}
    lab = Scripted(tmp_path, monkeypatch, rates=rates, kept={}, keep_going=True)
    found = lab.measure()
    assert (DPDK, SMALL) not in found
    assert found[XDP, SMALL] == XDP_NDR
    (warning,) = lab.plan.warnings
    assert warning.startswith("the reference c-l2fwd, 64 B: its rate alone was not found")
    assert "CPU 0: cc1 46%" in warning


def test_another_framework_that_is_lost_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = FOUND | {(XDP, SMALL): [None]}
    lab = Scripted(tmp_path, monkeypatch, rates=rates, kept={})
    first = lab.measure()
    assert (XDP, SMALL) not in first
    (warning,) = lab.plan.warnings
    assert warning.startswith("xdp-tx, 64 B: its rate alone was not found")
    # Recorded results are used without a pause, and lead to the same outcome.
    again = Scripted(tmp_path, monkeypatch, rates=rates, kept={})
    again.session = 1
    assert again.measure() == first
    assert not again.rests


def test_tenants_are_no_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the forwarder's CPU because the study gives it to them; nobody else may have the
    generator's.
    """

    @contextmanager
    def watched(_: object, trial: Trial, __: object) -> Iterator[None]:
        yield
        trial.others = {"0": {"cc1": 0.4}, "1": {"stress-ng-cpu": 0.7}}

    monkeypatch.setattr(cell_run, "watched", watched)
    setup: Any = None
    site: Any = SimpleNamespace(bench=SimpleNamespace(cores=SimpleNamespace(control=0)))
    (place, *_) = design().places
    trial = made_trial(**BLANK)
    with cell_run.CellRun(site, setup, place, 0, 1.0)._watched(trial):
        pass
    assert trial.others == {"0": {"cc1": 0.4}}
