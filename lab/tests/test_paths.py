# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `paths` on a simulated link: its measurements, statements, and resuming."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import by_schema
import pytest
from simulated import Simulation, install, killed_at, printed, quiet
from simulated_paths import WAYS, Wire, options, resume, start
from test_resume import without_sessions
from trials import changed, made_trial

from linerate.experiments.paths import available as here
from linerate.experiments.paths import published
from linerate.experiments.paths.options import PATHS, PRESETS, Options
from linerate.experiments.paths.plan import cells
from linerate.experiments.paths.summarise import path_figures
from linerate.experiments.paths.table import band_line, lost_by
from linerate.forwarders import FORWARDERS
from linerate.host.errors import LabError, MissingError, UsageError
from linerate.records import run_file
from linerate.records import trial as records
from linerate.records.summary import Comparison, Summary
from linerate.records.trial import RECORDS
from linerate.report.in_short import in_short
from linerate.runs.plans.steps import Steps
from linerate.runs.registry import find
from linerate.verdict.metrics import COMMON_HIGH_LATENCY


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return Wire().install(install(monkeypatch))


def simulation_of(wire: Wire) -> Simulation:
    assert wire.simulation
    return wire.simulation


def of(summary: Summary, arm: str, metric: str, load: float | None = None) -> Comparison:
    (found,) = [
        each
        for each in summary.comparisons
        if (each.arm, each.metric, each.load_share) == (arm, metric, load)
    ]
    return found


# -- what is measured ----------------------------------------------------------------------------


def test_all_get_the_same_rates(tmp_path: Path, wire: Wire) -> None:
    """Shares of what the slowest path carried, so that cost and latency can be compared."""
    found = start(tmp_path / "run", blocks=2)
    (cell,) = found.summary.cells
    assert cell.common_pps
    assert cell.common_pps == pytest.approx(WAYS["xdp-redirect"].capacity_pps, rel=0.05)
    paced = [t for t in found.trials if t.request.load == "paced"]
    rates = {(t.request.load_share, round(t.request.pps or 0)) for t in paced}
    assert rates == {(share, round(share * cell.common_pps)) for share in (0.25, 0.5, 0.75)}
    for share in (0.25, 0.5, 0.75):
        arms = {t.arm for t in paced if t.request.load_share == share}
        assert arms == {"c-l2fwd", "c-l2fwd-again", "af-packet-read-write", "xdp-redirect"}


def test_the_common_rate_can_be_given(tmp_path: Path, wire: Wire) -> None:
    found = start(tmp_path / "run", blocks=1, line_rate=40e3)
    asked = {t.request.pps for t in found.trials if t.request.load == "paced"}
    assert asked == {10e3, 20e3, 30e3}


def test_nothing_that_came_back_leaves_no_load_to_offer(tmp_path: Path, wire: Wire) -> None:
    wire.ways = {name: replace(way, capacity_pps=0.0) for name, way in WAYS.items()}
    found = start(tmp_path / "run", blocks=1)
    assert not [t for t in found.trials if t.request.load == "paced"]
    (cell,) = found.summary.cells
    assert cell.common_pps is None
    assert cell.arms[0].path
    # A path that carried nothing has no cost per packet, not a cost of 0.
    assert cell.arms[0].path.cpu_ns_per_packet is None
    assert any("no rate that all carry" in warning for warning in found.summary.warnings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"links": ["memif"]}, "--link memif: not supported; run paths compares"),
        ({"links": ["null"]}, "--link null"),
        ({"sizes": [63]}, "--sizes 63"),
        ({"blocks": 0}, "--blocks 0"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, list[str]], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cells(Options(preset=PRESETS["quick"], **given))  # type: ignore[arg-type]


def test_the_default_is_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is missing, or does not work on a link, is named."""

    def missing() -> None:
        raise MissingError("testpmd is not installed", "make setup")

    for name in PATHS:
        monkeypatch.setattr(FORWARDERS[name], "prepare", lambda: None)
    assert here.available(["veth"]) == (list(PATHS), [])
    names, left_out = here.available(["veth", "veth1"])
    assert "kernel-route" not in names
    assert "kernel-route is left out: it does not work on link veth1" in left_out
    monkeypatch.setattr(FORWARDERS["af-packet-mmap"], "prepare", missing)
    names, left_out = here.available(["veth"])
    assert "af-packet-mmap" not in names
    assert len(left_out) == 1
    assert left_out[0].startswith("af-packet-mmap is left out: testpmd is not installed")


def test_what_is_left_out_stays_known(tmp_path: Path, wire: Wire) -> None:
    found = start(tmp_path / "run", blocks=1, left_out=["kernel-route is left out: no"])
    assert "kernel-route is left out: no" in found.summary.warnings


# -- statements ----------------------------------------------------------------------------------


def test_who_carries_more_and_who_is_cheaper(tmp_path: Path, wire: Wire) -> None:
    summary = start(tmp_path / "run").summary
    rate = of(summary, "xdp-redirect", "received_pps")
    assert (rate.verdict, rate.primary) == ("slower", True)
    assert rate.ratio == pytest.approx(0.4, rel=0.03)
    cost = of(summary, "xdp-redirect", "cpu_ns_per_packet", 0.5)
    # The reference polls: its process has the whole core at any rate.
    (cell,) = summary.cells
    assert cell.common_pps
    polls = 1e9 / (0.5 * cell.common_pps)
    assert cost.ratio == pytest.approx(900 / polls, rel=0.03)
    assert (cost.verdict, cost.primary) == ("faster", False)
    assert "is cheaper than c-l2fwd" in cost.sentence
    assert "less CPU time per packet at 50 % of the common rate" in cost.sentence
    late = of(summary, "af-packet-read-write", "common_latency_p99_us", 0.75)
    assert late.ratio == pytest.approx(4.0, rel=0.03)
    assert late.verdict == "slower"


def test_figures_of_a_path(tmp_path: Path, wire: Wire) -> None:
    (cell,) = start(tmp_path / "run").summary.cells
    flood = next(arm for arm in cell.arms if arm.arm == "af-packet-read-write").path
    assert flood
    assert flood.process_ns
    assert flood.process_ns.median == pytest.approx(3000, rel=0.02)
    assert flood.napi_ns
    assert flood.napi_ns.median == pytest.approx(1600, rel=0.02)
    assert flood.cpus == {"process": [1], "napi": [1], "softirq": [1]}
    assert flood.lost == pytest.approx({"forwarder port 0 imissed": 5 / 7}, rel=0.02)
    load = next(e for e in cell.lower_load if (e.arm, e.load_share) == ("xdp-redirect", 0.5))
    assert load.path
    assert load.path.own_share == pytest.approx(0.5, rel=0.03)
    assert load.path.core_share
    assert load.path.core_share.median == pytest.approx(70e3 * 900e-9, rel=0.03)
    assert not load.path.lost
    # The 99.9 % quantile needs 2995 frames.
    assert set(load.path.latency_us) == {"0.5", "0.9", "0.99", "0.999"}
    low = next(e for e in cell.lower_load if (e.arm, e.load_share) == ("xdp-redirect", 0.25))
    assert low.path
    assert set(low.path.latency_us) == {"0.5", "0.9", "0.99"} | (
        {"0.999"} if 0.25 * (cell.common_pps or 0) * 0.1 >= 2995 else set()
    )


def test_what_no_valid_trial_tells_is_absent() -> None:
    """It is neither "nothing" lost, nor a dash that could mean no loss."""
    trial = made_trial(
        experiment="paths", seed=1, block=0, position=0, role="measure", arm="a", forwarder="a",
        link="veth", size=64, load="flood", started_at="", attempted=100, accepted=100,
        received=100,
    )  # fmt: skip
    assert (path_figures([trial]).lost, lost_by(path_figures([trial]))) == ({}, "nothing")
    void = changed(trial, invalid="void")
    assert (path_figures([void]).lost, lost_by(path_figures([void]))) == (None, "-")


@pytest.mark.parametrize(("frames", "told"), [(298, None), (299, 7.0)])
def test_a_quantile_of_too_few_frames_is_neither_told_nor_compared(
    tmp_path: Path, wire: Wire, frames: int, told: float | None
) -> None:
    paced = next(t for t in start(tmp_path / "run", blocks=1).trials if t.frames.latency)
    assert paced.frames.latency
    few = paced.frames.latency.model_copy(
        update={"count": frames, "quantiles_ns": {"0.99": 7000.0}}
    )
    trial = changed(paced, latency=few)
    assert COMMON_HIGH_LATENCY.value(trial) == told
    assert set(path_figures([trial]).latency_us) == ({"0.99"} if told else set())


def test_where_the_sender_is_the_limit_the_cost_leads(tmp_path: Path, wire: Wire) -> None:
    wire.sender_pps = 300e3
    summary = start(tmp_path / "run").summary
    (cell,) = summary.cells
    limited = {arm.arm for arm in cell.arms if arm.limited_by}
    assert limited == {"c-l2fwd", "c-l2fwd-again"}
    assert {arm.limited_by for arm in cell.arms if arm.limited_by} == {"generator"}
    assert cell.ceiling
    assert cell.ceiling.pps == pytest.approx(300e3)
    primary = {each.metric for each in summary.comparisons if each.primary}
    assert primary == {"cpu_ns_per_packet"}
    rate = of(summary, "xdp-redirect", "received_pps")
    assert rate.limited_by == "generator"
    text = quiet()
    again = start(tmp_path / "again")
    again.show(text)
    assert " ".join(printed(text).split()).count(in_short(again.summary) or "no answer") == 1
    assert "limited by the generator, not by the path: c-l2fwd" in printed(text)


def test_a_common_rate_below_the_slowest_path_is_explained(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(cell: object, arm: object, flooded_pps: float, load: float) -> Steps[float | None]:
        yield from ()
        return flooded_pps / 2

    monkeypatch.setattr("linerate.experiments.paths.plan.kept_rate", half)
    summary = start(tmp_path / "run").summary
    (warning,) = [each for each in summary.warnings if "on time" in each]
    (cell,) = summary.cells
    assert cell.common_pps
    assert cell.common_pps == pytest.approx(70e3, rel=0.02)
    kept = f"{cell.common_pps / 1e3:.1f} kpps"
    assert warning.startswith(f"veth 64 B: the sender is on time at {kept}, not at the 1")


def test_loss_at_a_load_takes_only_what_is_compared_there(tmp_path: Path, wire: Wire) -> None:
    wire.lossy = {"af-packet-read-write": 0.03}
    summary = start(tmp_path / "run").summary
    lossy = of(summary, "af-packet-read-write", "cpu_ns_per_packet", 0.25)
    assert lossy.verdict == "invalid"
    assert "lost 3.0% of the frames at this load" in lossy.reason
    assert of(summary, "xdp-redirect", "cpu_ns_per_packet", 0.25).verdict != "invalid"
    assert of(summary, "af-packet-read-write", "received_pps").verdict != "invalid"


# -- published results ---------------------------------------------------------------------------


def test_ours_stands_beside_the_published_ratio(tmp_path: Path, wire: Wire) -> None:
    summary = start(tmp_path / "run").summary
    band = {each.path: each for each in summary.bands}
    ours = band["XDP_REDIRECT"]
    assert (ours.ratio, ours.low, ours.high) == pytest.approx((0.39, 0.2925, 0.4875))
    assert (ours.arm, ours.baseline, ours.ours_in_band) == ("xdp-redirect", "c-l2fwd", "inside")
    assert "inside that band" in band_line(ours)
    none = band["Linux forwarding"]
    assert none.ours is None
    assert "this run has not kernel-route" in none.note
    assert "ours: none" in band_line(none)


@pytest.mark.parametrize(
    ("capacity", "where"), [(60e3, "outside"), (300e3, "outside"), (102e3, "partly")]
)
def test_a_band_says_where_ours_lies(
    tmp_path: Path, wire: Wire, capacity: float, where: str
) -> None:
    wire.ways["xdp-redirect"] = replace(WAYS["xdp-redirect"], capacity_pps=capacity)
    (band,) = [b for b in start(tmp_path / "run").summary.bands if b.path == "XDP_REDIRECT"]
    assert band.ours_in_band == where


def test_no_band_beside_another_reference(tmp_path: Path, wire: Wire) -> None:
    found = start(tmp_path / "run", forwarders=["af-packet-read-write", "xdp-redirect"])
    (band,) = [b for b in found.summary.bands if b.path == "XDP_REDIRECT"]
    assert band.ours is None
    assert band.note == "the reference of this run is not a program on DPDK"


def test_a_ratio_that_the_sender_bounds_is_in_no_band(tmp_path: Path, wire: Wire) -> None:
    wire.sender_pps = 300e3
    (band,) = [b for b in start(tmp_path / "run").summary.bands if b.path == "XDP_REDIRECT"]
    assert band.ours is not None
    assert band.ours_in_band is None
    assert band.note == "the generator held back c-l2fwd: the ratio may be lower"


def test_published_figures_are_as_published() -> None:
    assert {each.path: each.ratio for each in published.RATIOS} == {
        "XDP_TX": 0.77, "XDP_REDIRECT": 0.39, "Linux forwarding": 0.08,
    }  # fmt: skip


# -- resuming ------------------------------------------------------------------------------------


def test_files_are_by_their_schemas(tmp_path: Path, wire: Wire) -> None:
    start(tmp_path / "run", preset="full", sizes=[64, 512], blocks=2)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    by_schema.check(summary, "summary-1.json")
    assert {cell["size"] for cell in summary["cells"]} == {64, 512}
    for line in (tmp_path / "run" / RECORDS).read_text().splitlines():
        by_schema.check(json.loads(line), "trial-2.json")


@pytest.mark.parametrize("after", [1, 5, 8, 9, 14, 25])
def test_killed_after_any_trial(tmp_path: Path, wire: Wire, after: int) -> None:
    start(tmp_path / "whole", blocks=2)
    simulation = simulation_of(wire)
    expected = (tmp_path / "whole" / RECORDS).read_text().splitlines()
    simulation.ran.clear()
    with killed_at(simulation, after):
        start(tmp_path / "run", blocks=2)
    resume(tmp_path / "run")
    found = (tmp_path / "run" / RECORDS).read_text().splitlines()
    assert [without_sessions(line) for line in found] == [
        without_sessions(line) for line in expected
    ]
    assert len(simulation.ran) == len(expected)


def test_a_record_that_was_cut_is_run_again(tmp_path: Path, wire: Wire) -> None:
    """In the floods, and in the fixed loads, whose rates follow from the floods."""
    start(tmp_path / "run", blocks=1)
    path = tmp_path / "run" / RECORDS
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for kept in (2, len(lines) - 3):
        kept_bytes = b"".join(lines[:kept])
        path.write_bytes(kept_bytes + lines[kept][:40])
        run = json.loads((tmp_path / "run" / "run.json").read_text())
        for each in run["sessions"]:
            each.pop("end", None)
            each.pop("ended_at", None)
        (tmp_path / "run" / "run.json").write_text(json.dumps(run))
        simulation_of(wire).ran.clear()
        console = quiet()
        resume(tmp_path / "run", console)
        assert "cut off in the middle (40 bytes)" in printed(console)
        assert path.read_bytes().startswith(kept_bytes)
        assert len(simulation_of(wire).ran) == len(lines) - kept
        assert len(records.read(path)) == len(lines)


def test_two_runs_compare_by_rates_and_costs(tmp_path: Path, wire: Wire) -> None:
    found = start(tmp_path / "run")
    compared = find("paths").comparable(run_file.load(tmp_path / "run"), found.trials)
    metrics = {(each.metric, each.load_share) for each in compared.samples}
    assert metrics == {
        ("received_pps", None), *(("cpu_ns_per_packet", share) for share in (0.25, 0.5, 0.75)),
    }  # fmt: skip
    design = find("paths").design(options())
    merged = find("paths").merged([design, {**design, "seed": 2}])
    assert merged["cells"][0]["blocks"] == 18
    with pytest.raises(LabError, match="loads"):
        find("paths").merged([design, {**design, "loads": [0.5]}])
