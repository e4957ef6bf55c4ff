# SPDX-License-Identifier: BSD-3-Clause
"""Runs of rfc2544 with another generator than the lab's."""

from __future__ import annotations

import json
from pathlib import Path

import by_schema
import pytest
from rfc2544_runs import Measured, arm, measured_in, run
from simulated import printed
from simulated_lab import (
    CEILING_PPS,
    SimulatedLab,
    options,
    quiet,
    resume,
    start,
)

from linerate.experiments.rfc2544 import presets
from linerate.experiments.rfc2544.plan import cells
from linerate.host.errors import Interrupted, LabError, UsageError
from linerate.records.trial import Trial
from linerate.traffic.other_generator import Named
from linerate.trial.search import latency

# Ports of a simulated setup.
NAMED = {
    "generator": Named("http://127.0.0.1:1"),
    "links": ["ports"],
    "generator_ports": ["10.0.0.9;1;1"],
    "forwarder_ports": ["tap:a"],
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measured_in(tmp_path_factory.mktemp("rfc2544") / "out")


def test_another_generator_is_not_asked_to_flood(tmp_path: Path) -> None:
    console = quiet()
    asked = {**NAMED, "line_rate": CEILING_PPS / 2, "blocks": 2, "tests": presets.THROUGHPUT}
    found = start(SimulatedLab(), tmp_path / "out", console, **asked)
    assert {trial.request.load for trial in found.trials} == {"paced"}
    tried = [trial for trial in found.trials if trial.role == "self-test"]
    assert [(t.arm, t.request.pps) for t in tried] == [("reflect", CEILING_PPS / 2)]
    cell = found.summary.cells[0]
    assert cell.ceiling is not None
    assert (cell.ceiling.pps, cell.ceiling.measured_mpps) == (CEILING_PPS / 2, {})
    # The peer is searched nevertheless, and reaches the end of the requested range.
    (peer,) = cell.references
    assert peer.arm == "reflect"
    assert peer.search is not None
    assert peer.search.goals[0].at_maximum == 2
    assert "100 % = 5.000 Mpps (--line-rate); books closed" in printed(console)
    kept = json.loads((tmp_path / "out" / "summary.json").read_text())
    by_schema.check(kept, "summary-1.json")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["design"]["generator"] == "http://127.0.0.1:1"


def test_latency_is_called_what_the_sender_measures(measured: Measured) -> None:
    asked = {**NAMED, "line_rate": CEILING_PPS / 2, "blocks": 1, "tests": ("throughput", "latency")}
    _, found = run(SimulatedLab(), **asked)
    definitions = []
    for summary in (measured.summary, found):
        figures = arm(summary, "c-l2fwd").search
        assert figures is not None
        definitions.append(figures.latency_definition)
    assert definitions == [latency.DEFINITION, latency.CUT_THROUGH]


def test_a_generator_that_does_not_send_100_per_cent_ends_the_run() -> None:
    lab = SimulatedLab(late=lambda _: 1.0)
    with pytest.raises(LabError, match=r"--generator does not send 100 %.*sent late") as caught:
        run(lab, **NAMED, line_rate=1e6)
    assert "--line-rate" in str(caught.value)
    assert lab.running == 0


def test_a_run_with_another_generator_goes_on_with_it(tmp_path: Path) -> None:
    lab = SimulatedLab()
    asked = {**NAMED, "line_rate": 3e6, "blocks": 1, "tests": presets.THROUGHPUT}

    def interrupt(trial: Trial) -> None:
        if trial.role == "search":
            raise Interrupted(2)

    lab.before_window = interrupt
    with pytest.raises(Interrupted):
        start(lab, tmp_path / "out", **asked)
    lab.before_window = lambda _: None
    found = resume(lab, tmp_path / "out")
    assert {trial.request.load for trial in found.trials} == {"paced"}
    assert {trial.session for trial in found.trials if trial.role == "self-test"} == {1}
    assert found.summary.interrupted is False


def test_the_100_per_cent_of_another_generator_is_asked_for() -> None:
    with pytest.raises(UsageError, match="--generator: its 100 % is not known"):
        cells(options(**NAMED))
