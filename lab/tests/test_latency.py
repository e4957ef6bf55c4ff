# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `latency` on a simulated machine, from the command line's options to its files."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import by_schema
import pytest
import simulated_latency
from chart_specs import valid_charts
from simulated import assert_nothing_wraps, killed_at, printed, quiet
from simulated_latency import (
    CHECKED_HZ,
    COST,
    HZ,
    INSIDE,
    ROUND_TRIP_NS,
    Simulation,
    options,
    resume,
    start,
)
from trials import made_trial

from linerate.experiments.latency import loads, packet_sender
from linerate.experiments.latency.figures import insides
from linerate.experiments.latency.loads import IDLE_PPS, LOADS, Step
from linerate.experiments.latency.summarise import clock_of
from linerate.experiments.latency.table import print_latency
from linerate.forwarders import FORWARDERS
from linerate.host.errors import LabError, RunError, UsageError
from linerate.links import link
from linerate.records import trial as records
from linerate.records.outcome import Clock, LatencyFigures, Span
from linerate.records.output import FILES
from linerate.records.summary import ArmSummary, Summary
from linerate.records.summary_figures import RoundTrip
from linerate.records.trial import RECORDS, Trial, TxBuffer
from linerate.report.in_short import in_short
from linerate.runs import compare as regression
from linerate.runs.kept import rebuild
from linerate.runs.kept.stored import stored
from linerate.runs.registry import find
from linerate.telemetry.hdr import Histogram
from linerate.traffic.books import Forwarded
from linerate.traffic.sender import Sent
from linerate.trial.window import Settled
from linerate.verdict.delays import COMMON_SPAN, inside_cycles, round_trip_cycles


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    return simulated_latency.install(monkeypatch)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary, str]:
    """One whole run: its directory, its summary, and its output."""
    out, console = tmp_path_factory.mktemp("latency") / "run", quiet()
    with pytest.MonkeyPatch.context() as patch:
        simulated_latency.install(patch)
        return out, start(out, console).summary, printed(console)


def arm(found: Summary, name: str) -> ArmSummary:
    (cell,) = found.cells
    return next(each for each in cell.arms if each.arm == name)


def round_trip(found: Summary, name: str, load: float, protocol: str = "udp") -> RoundTrip:
    latency = arm(found, name).latency
    assert latency
    return next(e for e in latency.round_trips if (e.protocol, e.load_share) == (protocol, load))


def test_a_run_writes_what_its_schemas_say(run: tuple[Path, Summary, str]) -> None:
    out, _, _ = run
    summary = json.loads((out / "summary.json").read_text())
    by_schema.check(summary, "summary-1.json")
    for line in (out / RECORDS).read_text().splitlines():
        by_schema.check(json.loads(line), "trial-2.json")


def test_no_row_wraps_in_a_pipe(run: tuple[Path, Summary, str]) -> None:
    assert_nothing_wraps(lambda console: print_latency(console, run[1]))


def test_every_load_and_kind_of_frame_in_every_block(run: tuple[Path, Summary, str]) -> None:
    out, _, _ = run
    trials = [t for t in records.read(out / RECORDS) if t.role == "search"]
    blocks = len({t.block for t in trials})
    assert blocks == 9
    counts = Counter((t.arm, t.request.test, t.request.protocol, loads.load_of(t)) for t in trials)
    assert set(counts.values()) == {blocks}
    arms = {"reflect", "reflect-again", "c-l2fwd", "testpmd-io"}
    assert counts.keys() == {
        *((a, "latency", p, load) for a in arms for p in ("udp", "arp") for load in LOADS),
        *((a, "spans", p, load) for a in arms for p in ("udp", "arp") for load in (0.0, 0.5)),
    }
    # Orders differ from block to block.
    first = [(t.arm, t.request.test, t.request.pps) for t in trials if t.block == 0]
    assert first != [(t.arm, t.request.test, t.request.pps) for t in trials if t.block == 1]


def test_delays_are_told_without_the_clock(run: tuple[Path, Summary, str]) -> None:
    _, found, _ = run
    idle = round_trip(found, "reflect", 0.0)
    assert idle.cycles
    assert idle.ns
    # The sender has subtracted it; from spans the lab does.
    expected = ROUND_TRIP_NS["reflect"] * HZ / 1e9
    assert idle.cycles.quantiles["0.5"].median == pytest.approx(expected, rel=0.02)
    # With the measured frequency, not the one that programs assume.
    ratio = idle.ns.quantiles["0.5"].median / idle.cycles.quantiles["0.5"].median
    assert ratio == pytest.approx(1e9 / CHECKED_HZ)
    assert arm(found, "reflect").latency
    inside = arm(found, "reflect").latency.inside[0]  # type: ignore[union-attr]
    assert inside.cycles
    assert inside.cycles.mean.median == pytest.approx(INSIDE["reflect"] - COST, rel=0.02)
    assert found.clock
    assert (found.clock.checked_hz, found.clock.cost_cycles) == (CHECKED_HZ, COST)


def test_a_quantile_stands_where_there_are_frames_for_it(run: tuple[Path, Summary, str]) -> None:
    """499 frames in a window at idle: enough for 99 %, not for 99.9 %."""
    _, found, _ = run
    idle, half = (round_trip(found, "reflect", load) for load in (0.0, 0.5))
    assert idle.packets == 9 * round(IDLE_PPS * 0.5)
    assert idle.cycles
    assert half.cycles
    assert set(idle.cycles.quantiles) == {"0.5", "0.9", "0.99"}
    assert set(half.cycles.quantiles) == {"0.5", "0.9", "0.99", "0.999"}
    assert idle.cycles.maximum


def test_the_wait_in_a_tx_buffer_is_computed(run: tuple[Path, Summary, str]) -> None:
    _, found, text = run
    assert round_trip(found, "reflect", 0.0).buffered_ns is None
    assert round_trip(found, "c-l2fwd", 0.0).buffered_ns == pytest.approx(100_000)
    # At 2 Mpps the buffer of 32 is full long before it is drained.
    assert round_trip(found, "c-l2fwd", 0.5).buffered_ns == pytest.approx(31 / 2e6 * 1e9)
    assert "c-l2fwd, UDP at idle: a frame waits up to 100 us in its TX buffer, 50.00 us on" in text
    assert "testpmd-io, UDP at idle: a frame waits" not in text


def test_a_buffer_is_drained_or_full() -> None:
    buffer = TxBuffer(frames=32, drain_s=100e-6)
    assert buffer.longest_s(1.0) == 100e-6
    assert buffer.longest_s(31e6) == pytest.approx(1e-6)
    assert [f.name for f in FORWARDERS.values() if f.tx_buffer and "l2fwd" not in f.name] == []


def test_arms_are_compared_with_the_baseline(run: tuple[Path, Summary, str]) -> None:
    _, found, _ = run
    assert not [warning for warning in found.warnings if "low load" in warning]
    primary = [each for each in found.comparisons if each.primary]
    assert [(c.arm, c.metric, c.load_share) for c in primary] == [
        ("c-l2fwd", "round_trip_udp_p50_cycles", 0.0),
        ("testpmd-io", "round_trip_udp_p50_cycles", 0.0),
    ]
    slower, alike = primary
    assert slower.verdict == "slower"
    assert slower.ratio == pytest.approx(51, rel=0.05)
    assert "median of the round trip of UDP frames at idle" in slower.sentence
    assert alike.verdict in ("undecided", "equal")
    metrics = {each.metric for each in found.comparisons}
    assert metrics >= {"inside_arp_p50_cycles", "round_trip_arp_p99_cycles"}


def test_what_is_printed_fits_and_names_the_clock(run: tuple[Path, Summary, str]) -> None:
    _, summary, text = run
    assert " ".join(text.split()).count(in_short(summary) or "no answer") == 1
    assert "memif, 64 B, UDP: round trip in us" in text
    assert "memif, 64 B, ARP: round trip in cycles, less 26 for the clock" in text
    assert "against CLOCK_MONOTONIC it has 2,596.000 MHz to 100 ppm (-0.154 %)" in text
    assert "reflect: 100 % = 4.000 Mpps, the rate that came back of a flood" in text
    assert "…" not in text


def test_every_chart_of_the_report_is_valid(run: tuple[Path, Summary, str]) -> None:
    # Ratios; for both kinds of frames the round trips, and the span inside.
    assert valid_charts((run[0] / "report.html").read_text()) == 1 + 2 + 2


def test_the_report_shows_published_spans_apart(run: tuple[Path, Summary, str]) -> None:
    out, found, _ = run
    page = (out / "report.html").read_text()
    for comparison in found.comparisons:
        assert comparison.sentence in page.replace("&#39;", "'")
    assert page.count('<tr class="published">') == 4
    assert "write() alone" in page
    # Including the clock's cost, as it was published: 226.
    assert "rx-return_tx-call, ARP on memif" in page
    assert "It assumes that the core does nothing but this span" in page


def test_the_sender_decides_what_100_percent_is(tmp_path: Path, simulation: Simulation) -> None:
    """Late at 90 % of 4 Mpps and of 3.6, on time at 90 % of 3.2."""
    simulation.late_above = 3e6
    console = quiet()
    found = start(tmp_path / "run", console, blocks=2).summary
    latency = arm(found, "reflect").latency
    assert latency
    assert latency.capacity_pps == pytest.approx(3.2e6)
    assert latency.flood_pps == pytest.approx(4e6)
    text = printed(console)
    assert "80 % of the rate that came back of a flood, because the sender is late" in text


def test_without_a_capacity_only_idle_is_measured(tmp_path: Path, simulation: Simulation) -> None:
    simulation.late_above = IDLE_PPS
    found = start(tmp_path / "run", blocks=2, inside=False).summary
    latency = arm(found, "reflect").latency
    assert latency
    assert {each.load_share for each in latency.round_trips} == {0.0}
    assert latency.capacity_pps is None
    (told,) = [each for each in found.warnings if "the rate of reflect is unknown" in each]
    assert "no figures under load; the last because: " in told


def test_a_run_without_any_figure_ends_or_says_so(tmp_path: Path, simulation: Simulation) -> None:
    simulation.late_above = 0
    with pytest.raises(LabError, match="4 starts of forwarders in a row gave no figure"):
        start(tmp_path / "ended", blocks=2)
    found = start(tmp_path / "run", blocks=2, keep_going=True).summary
    primary = [each for each in found.comparisons if each.primary]
    assert [each.arm for each in primary] == ["c-l2fwd", "testpmd-io"]
    assert all("no block has a valid trial of both" in each.sentence for each in primary)


def test_in_turns_all_have_their_window_of_a_load_before_the_next(
    tmp_path: Path, simulation: Simulation
) -> None:
    start(tmp_path / "run", blocks=3, method="auto")
    found = [t for t in records.read(tmp_path / "run" / RECORDS) if t.role == "search"]
    rounds = [
        (step, [trial.arm for trial in trials])
        for step, trials in itertools.groupby(
            found, lambda t: (t.block, t.request.test, t.request.protocol, loads.load_of(t))
        )
    ]
    everybody = {"reflect", "reflect-again", "c-l2fwd", "testpmd-io"}
    assert len(rounds) == len({step for step, _ in rounds}) == 3 * 2 * (4 + 2)
    assert all(
        set(arms) == everybody and len(arms) == 4 for step, arms in rounds if step[1] == "latency"
    )
    # In a newly drawn order.
    assert len({tuple(arms) for _, arms in rounds}) > 6


def test_a_start_that_gives_no_figure_in_its_turns_counts(
    tmp_path: Path, simulation: Simulation
) -> None:
    simulation.late_above = 0
    with pytest.raises(LabError, match="4 starts of forwarders in a row gave no figure"):
        start(tmp_path / "ended", blocks=2, method="auto")


@pytest.mark.parametrize("method", ["auto", "fresh"])
@pytest.mark.parametrize("after", [1, 4, 13, 20, 47])
def test_an_interrupted_run_goes_on(
    tmp_path: Path, simulation: Simulation, after: int, method: str
) -> None:
    """Killed in floods, in the search for 100 %, and in units: nothing is lost or run twice."""
    given = {
        "blocks": 2, "forwarders": ["reflect", "c-l2fwd"], "inside": True, "method": method,
    }  # fmt: skip
    start(tmp_path / "whole", **given)
    whole = records.read(tmp_path / "whole" / RECORDS)
    simulation.ran.clear()
    with killed_at(simulation, after):
        start(tmp_path / "cut", **given)
    resume(tmp_path / "cut")
    found = records.read(tmp_path / "cut" / RECORDS)

    def order(trials: list[Trial]) -> list[object]:
        return [
            (t.role, t.arm, t.block, t.request.test, t.request.protocol, t.request.pps, t.position)
            for t in trials
        ]

    assert order(found) == order(whole)
    assert {t.session for t in found} == {1, 2}


@pytest.mark.parametrize("after", [60, 61, 63, 64, 65])
def test_a_run_interrupted_at_the_packet_socket_goes_on(
    tmp_path: Path, simulation: Simulation, after: int
) -> None:
    """Void windows before the interruption are not repeated."""
    simulation.pings.void = 1
    given = {"links": ["veth1"], "blocks": 1, "forwarders": ["reflect", "testpmd-io"]}
    start(tmp_path / "whole", **given)
    whole = records.read(tmp_path / "whole" / RECORDS)
    pings = [place for place, trial in enumerate(whole) if trial.request.test == "ping"]
    # Two windows for each of two kinds of frames and three arms, at the end of the block.
    assert pings == list(range(len(whole) - 12, len(whole)))
    cut = len(whole) - 12 + after - 60
    simulation.ran.clear()
    with killed_at(simulation, cut):
        start(tmp_path / "cut", **given)
    resume(tmp_path / "cut")
    found = records.read(tmp_path / "cut" / RECORDS)

    def order(trials: list[Trial]) -> list[object]:
        return [
            (t.arm, t.request.test, t.request.protocol, t.request.attempt, t.position)
            for t in trials
        ]

    assert order(found) == order(whole)


def test_both_senders_stand_side_by_side(tmp_path: Path, simulation: Simulation) -> None:
    console = quiet()
    found = start(
        tmp_path / "run", console, links=["veth1"], forwarders=["reflect", "testpmd-io"]
    ).summary
    for name in ("reflect", "reflect-again", "testpmd-io"):
        latency = arm(found, name).latency
        assert latency
        assert latency.packet_sender
        assert [(each.protocol, each.load_share) for each in latency.packet_sender] == [
            ("udp", 0.0),
            ("arp", 0.0),
        ]
        for each in latency.packet_sender:
            assert each.ns
            # As the sender reported it, with the checked frequency.
            expected = 10 * ROUND_TRIP_NS["reflect"] * HZ / CHECKED_HZ
            assert each.ns.mean.median == pytest.approx(expected)
    assert "ping: sent by a packet socket (PF_PACKET), one frame at a time" in printed(console)
    page = (tmp_path / "run" / "report.html").read_text()
    assert '<td class="text">PF_PACKET</td>' in page
    assert "round trip, by a packet socket" in page


def test_without_an_interface_of_the_kernel_there_is_one_sender(
    run: tuple[Path, Summary, str],
) -> None:
    _, found, said = run
    assert all(a.latency and a.latency.packet_sender is None for c in found.cells for a in c.arms)
    reason = "no round trips by a packet socket on memif: its ends are no interfaces of the kernel"
    assert reason in said


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("veth1", None),
        ("veth1-af-xdp", None),
        ("tap1", None),
        ("veth", "frames come back by another interface than the one that they were sent on"),
        ("tap", "frames come back by another interface than the one that they were sent on"),
        ("memif", "its ends are no interfaces of the kernel"),
        ("ports", "its interfaces are not the lab's"),
    ],
)
def test_where_a_packet_socket_can_send(name: str, why: str | None) -> None:
    assert loads.no_packet_sender(link(name)) == why


def test_a_run_told_again_says_the_same(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "run", blocks=3)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in FILES}
    (tmp_path / "run" / "summary.json").unlink()
    rebuild.report([tmp_path / "run"], None, quiet())
    assert {name: (tmp_path / "run" / name).read_bytes() for name in FILES} == before


def test_runs_are_merged_and_refused(tmp_path: Path, simulation: Simulation) -> None:
    for name, given in (
        ("one", {"seed": 1}),
        ("two", {"seed": 2}),
        ("udp", {"protocols": ("udp",)}),
    ):
        start(tmp_path / name, blocks=3, inside=False, **given)
    rebuild.report([tmp_path / "one", tmp_path / "two"], tmp_path / "both", quiet())
    summary = json.loads((tmp_path / "both" / "summary.json").read_text())
    (found,) = {each["n"] for each in summary["comparisons"]}
    assert found == 6
    with pytest.raises(RunError, match="--frames"):
        rebuild.report([tmp_path / "one", tmp_path / "udp"], tmp_path / "no", quiet())


def test_runs_are_compared_at_idle(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "before", inside=False)
    simulation.noise, simulation.slower = "2", {"testpmd-io": 1.2}
    start(tmp_path / "after", inside=False)
    found = regression.compare(stored(tmp_path / "before"), stored(tmp_path / "after"), margin=0.02)
    verdicts = {(c.arm, c.metric): c.verdict for c in found.changes}
    assert {load for c in found.changes for load in [c.load_share]} == {0.0}
    for protocol in ("udp", "arp"):
        metric = f"round_trip_{protocol}_p50_cycles"
        assert verdicts["testpmd-io", metric] == "slower"
        assert verdicts["c-l2fwd", metric] != "slower"


def test_an_option_that_contradicts_the_run_is_refused(
    tmp_path: Path, simulation: Simulation
) -> None:
    start(tmp_path / "run", blocks=1)
    with pytest.raises(UsageError, match="--packets 7"):
        resume(tmp_path / "run", None, **{"--packets": 7})


def test_a_line_rate_takes_the_place_of_floods(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "run", blocks=1, line_rate=1e6, protocols=("arp",), inside=False)
    assert {t.request.load for t in simulation.ran} == {"paced"}
    assert {t.request.protocol for t in simulation.ran} == {"arp"}
    assert {t.request.pps for t in simulation.ran} == {IDLE_PPS, 1e5, 5e5, 9e5}


def test_frames_are_shared_out_over_the_blocks() -> None:
    quick = loads.PRESETS["quick"]
    step = Step("udp", 0.5)
    assert loads.seconds_of(quick, step, 50_000, 10) == pytest.approx(0.2)
    assert loads.seconds_of(quick, step, 1e9, 10) == quick.shortest_s
    assert loads.seconds_of(quick, step, 1.0, 10) == quick.longest_s
    assert loads.seconds_of(quick, Step("udp", 0.0), IDLE_PPS, 10) == quick.idle_s


def test_options_that_cannot_be_are_named() -> None:
    experiment = find("latency")
    for given, words in (
        ({"sizes": [63]}, "--sizes 63"),
        ({"links": ["null"]}, "--link null"),
        ({"packets": 0}, "--packets 0"),
        ({"forwarders": ["af-packet-mmap", "reflect"]}, "--forwarders af-packet-mmap"),
        ({"blocks": 0}, "--blocks 0"),
        # 10 % of it would be idle.
        ({"line_rate": 10 * loads.IDLE_PPS}, "--line-rate 9970"),
    ):
        with pytest.raises(UsageError, match=words):
            experiment.design(options(**given))
    with pytest.raises(UsageError, match="--frames icmp"):
        loads.protocols_of(["icmp"])


def test_a_link_leaves_out_what_it_has_no_interfaces_for(
    tmp_path: Path, simulation: Simulation
) -> None:
    names = ["reflect", "af-packet-mmap", "c-skeleton"]
    found = start(tmp_path / "run", blocks=1, line_rate=1e6, forwarders=names).summary
    assert [each.arm for each in found.cells[0].arms] == ["reflect", "reflect-again"]


def test_what_is_no_latency_has_no_value() -> None:
    trial = made_trial(
        experiment="latency", seed=1, block=0, position=0, role="search", arm="a", forwarder="a",
        link="memif", size=64, load="paced", started_at="",
    )  # fmt: skip
    assert round_trip_cycles(trial, "0.5") is None
    assert inside_cycles(trial) is None
    assert loads.load_of(trial) is None
    assert clock_of([trial]) is None


@pytest.mark.parametrize(("net", "cycles"), [(True, 260.0), (False, 234.0), (None, 234.0)])
def test_the_clocks_cost_is_taken_off_once(net: bool | None, cycles: float) -> None:
    """By the sender or by the lab; if not recorded, as the version that wrote the records did."""
    trial = made_trial(
        clock=Clock(tsc_hz=2_600_000_000, cost_cycles=26),
        latency=LatencyFigures(
            count=9, net=net, minimum_ns=50, mean_ns=100, maximum_ns=200, quantiles_ns={"0.5": 100}
        ),
    )
    assert round_trip_cycles(trial, "0.5") == pytest.approx(cycles)


def test_what_the_packet_sender_tells_is_net_already() -> None:
    trial = made_trial(load="paced")
    told = packet_sender.Told(
        clock=packet_sender.ToldClock(tsc_hz=2_600_000_000, clock_cost_cycles=26), sent=9,
        not_sent=0, received=9, late=0, duplicates=0, dropped=0,
        cycles={"min": 130, "mean": 260, "max": 520, "0.5": 260},
    )  # fmt: skip
    before = Settled(Sent(0, 0), Forwarded(0, 0), {}, {})
    after = Settled(packet_sender._sent(told), Forwarded(9, 9), {}, {})
    packet_sender._enter(trial, told, before, after)
    assert trial.frames.latency
    assert trial.frames.latency.net
    assert trial.frames.latency.mean_ns == pytest.approx(100)
    assert round_trip_cycles(trial, "0.5") == pytest.approx(260)


def looked_into(spans: dict[str, tuple[float, float]]) -> list[Trial]:
    """One trial each at idle: mean and median of the time inside, the clock's cost in them."""
    return [
        made_trial(
            experiment="latency", seed=1, block=block, position=block, role="search", test="spans",
            arm=name, forwarder=name, link="memif", size=64, load="paced", started_at="",
            protocol="udp", pps=loads.IDLE_PPS, maximum_pps=1e6,
            clock=Clock(tsc_hz=10**9, cost_cycles=26),
            spans=[
                Span(
                    span=COMMON_SPAN, port=0, queue=0, one_in=1, sampled=9, count=9,
                    mean_cycles=mean, quantiles_cycles={"0.5": median},
                )
            ],
        )
        for block, (name, (mean, median)) in enumerate(spans.items())
    ]  # fmt: skip


def test_a_span_as_short_as_a_reading_of_the_clock_has_no_figure() -> None:
    (entry,) = insides(looked_into({"a": (40.0, 30.0), "b": (50.0, 31.0)}), ["udp"])
    assert entry.cycles
    assert (entry.cycles.mean.median, entry.cycles.quantiles["0.5"].median) == (19.0, 4.5)
    # With the others only, the figure would be too high.
    trials = looked_into({"a": (40.0, 30.0), "b": (26.0, 26.0)})
    assert [inside_cycles(each) for each in trials] == [4.0, None]
    (entry,) = insides(trials, ["udp"])
    assert (entry.cycles, entry.packets) == (None, 0)
    (entry,) = insides(looked_into({"a": (40.0, 30.0), "b": (50.0, 20.0)}), ["udp"])
    assert entry.cycles
    assert not entry.cycles.quantiles


def test_the_mean_of_a_histogram() -> None:
    assert Histogram(((10, 3), (20, 1))).mean == 12.5
