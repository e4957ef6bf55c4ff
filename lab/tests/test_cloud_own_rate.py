# SPDX-License-Identifier: BSD-3-Clause
"""What a framework carries alone, looked for over sessions: no record of a search is lost."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from linerate.experiments.cloud.session import own_rate
from linerate.host.cpus import Cores
from linerate.host.process import RunDirectory
from linerate.links.eal import Memory
from linerate.records.journal import Journal
from linerate.records.trial import RECORDS, RecordWriter, Trial, read
from linerate.trial.search.bed_device import Asked, outcome_of
from linerate.trial.search.device import Outcome
from linerate.trial.trial import Bench

CARRIES, FLOODED = 700_000.0, 1_000_000.0


def window(role: str, pps: float, seconds: float) -> Trial:
    intended = round(pps * seconds)
    received = min(intended, round(CARRIES * seconds))
    return Trial.model_validate(
        {
            "experiment": "cloud", "seed": 1, "block": 0, "position": 0, "role": role,
            "arm": "xdp-tx", "forwarder": "xdp-tx", "link": "veth", "size": 64, "load": "paced",
            "started_at": "", "intended": intended, "received": received, "duration_s": seconds,
        }
    )  # fmt: skip


class Device:
    """Takes the place of `BedDevice`."""

    def __init__(self, *_: object, max_pps: float, record: Any, **__: object) -> None:
        self.max_pps = max_pps
        self.test, self.void = "throughput", 0
        self._record = record

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        trial = window("search", pps, seconds)
        trial.test, trial.attempt, trial.maximum_pps = "throughput", 1, self.max_pps
        Asked(pps, seconds, latency=latency).enter(trial)
        self._record(trial)
        return outcome_of(trial)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None: ...


def searched(path: Path, session: int) -> tuple[float | None, Journal]:
    earlier = read(path / RECORDS) if session > 1 else []
    writer = RecordWriter(path / RECORDS)
    journal = Journal(writer, earlier, session)

    def record(trial: Trial) -> None:
        trial.session, trial.position = session, len(journal.trials)
        journal.add(trial)

    def bed(**_: object) -> Any:
        shown = SimpleNamespace(link=SimpleNamespace(name="veth"))
        shown.context = SimpleNamespace(size=64)
        return nullcontext(shown)

    bench = Bench(
        run=cast(RunDirectory, None), cores=Cores(0, 1, shared_core=False),
        memory=Memory(hugepages=False), experiment="cloud", seed=1, window_s=1.0,
    )  # fmt: skip
    try:
        return own_rate.search_rate(bench, journal, "xdp-tx", 64, bed=bed, record=record), journal
    finally:
        writer.close()


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def flood(*_: object) -> Trial:
        trial = window("self-test", FLOODED, 0.3)
        trial.received = round(FLOODED * 0.3)
        return trial

    monkeypatch.setattr(own_rate, "BedDevice", Device)
    monkeypatch.setattr(own_rate, "run_trial", flood)


@pytest.mark.usefixtures("simulated")
def test_a_search_that_had_no_more_time_is_passed_by_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records end where those of the next greatest load begin, of the same forwarder."""
    monkeypatch.setattr(own_rate, "LIMIT_S", 1e-9)
    none, first = searched(tmp_path, 1)
    assert none is None
    tops = {trial.maximum_pps for trial in first.trials if trial.role == "search"}
    assert tops == {share * FLOODED for share in own_rate.TOPS}
    monkeypatch.undo()
    monkeypatch.setattr(own_rate, "BedDevice", Device)
    _, again = searched(tmp_path, 2)
    assert [each.session for each in again.trials[: len(first.trials)]] == [1] * len(first.trials)


@pytest.mark.usefixtures("simulated")
def test_a_search_is_the_same_wherever_it_was_interrupted(tmp_path: Path) -> None:
    whole, made = searched(tmp_path, 1)
    assert whole is not None
    assert whole == pytest.approx(CARRIES, rel=0.03)
    lines = (tmp_path / RECORDS).read_text().splitlines(keepends=True)
    for kept in range(1, len(lines) + 1):
        (tmp_path / RECORDS).write_text("".join(lines[:kept]))
        found, again = searched(tmp_path, 2)
        assert found == whole
        assert len(again.trials) == len(made.trials)
