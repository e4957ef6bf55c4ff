# SPDX-License-Identifier: BSD-3-Clause
"""The screen of `linerate top`."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from linerate.telemetry.top import screen
from linerate.telemetry.top.figures import (
    Figures,
    LatencyFigures,
    LcoreFigures,
    PollingFigures,
    PortFigures,
    QueueFigures,
)
from linerate.telemetry.top.screen import Style


def drawn(figures: Figures, width: int, ascii_only: bool = False) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(screen.render(figures, width, ascii_only))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def figures(**changes: Any) -> Figures:
    fields: dict[str, Any] = {
        "time": "2026-01-02T03:04:05.678+00:00", "prefix": "rte", "pid": 7, "program": "l2fwd",
        "dpdk": "DPDK 22.11.11", "interval_s": 1.0,
    }  # fmt: skip
    return Figures(**{**fields, **changes})


def worst() -> Figures:
    """The widest possible values."""
    port = PortFigures(
        port=1023, name="net_virtio_user_with_a_long_name7", link="down", speed_mbps=400_000,
        rx_mpps=1488.095, tx_mpps=999.9996, rx_gbps=999.999, tx_gbps=1000.0, imissed_per_s=999_499,
        rx_nombuf_per_s=123.4e6, ierrors_per_s=0.01, oerrors_per_s=99.95e3,
    )  # fmt: skip
    lcore = LcoreFigures(
        lcore=127, rx_mpps=1488.1, busy_share=0.99999, empty_polls_share=0.00001,
        average_rx_burst=511.99, average_nonempty_rx_burst=511.99, full_polls_share=0.99999,
        busy_cycles_per_packet=1_234_567.8, burst_limit=512, burst_histogram=[1] * 512,
        queues=[QueueFigures(port=31, queue=1023)],
    )  # fmt: skip
    return figures(
        program="a-program-with-a-long-name", prefix="a-prefix-with-a-long-name",
        ports=[port, port], lcores=[lcore], rx_mpps=2976.19, tx_mpps=1999.9992,
    )  # fmt: skip


@pytest.mark.parametrize("width", [80, 130])
def test_the_widest_figures_fit(width: int) -> None:
    text = drawn(worst(), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text
    for word in (
        "1488",
        "999k",
        "123M",
        "<0.1",
        "100k",
        ">99.9",
        "1234568",
        "127 p31q1023",
        "|512",
        "2976.2",
    ):
        assert word in text
    # Names that differ at their ends.
    assert "name7" in text
    # The tables' rows are one line each.
    assert sum(line.lstrip().startswith("1023 ") for line in text.splitlines()) == 2


def lines_of(figures: Figures, height: int, width: int = 80) -> list[str]:
    """The lines on a terminal of this size."""
    console = Console(file=StringIO(), width=width, height=height)
    console.print(screen.fit(figures, console))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_terminal_that_is_too_short_keeps_the_lcores_and_counts_what_is_missing() -> None:
    queues = [QueueFigures(port=port, queue=0, rx_mpps=1.0) for port in range(8)]
    many = figures(
        ports=[PortFigures(port=port) for port in range(8)],
        lcores=[LcoreFigures(lcore=lcore, rx_mpps=8.0, queues=queues) for lcore in (1, 2)],
    )
    every = lines_of(many, 100)
    assert sum(line.startswith(" p7q0") for line in every) == 2
    assert not any("more lines" in line for line in every)
    assert lines_of(many, len(every)) == every
    for height in (24, 10):
        few = lines_of(many, height)
        assert len(few) <= height
        assert [line[0] for line in few if line[:2] in ("1 ", "2 ")] == ["1", "2"]
        assert not any(line.startswith(" p") for line in few)
        missing = len(every) - (len(few) - 1)
        assert few[-1] == (f"{missing} more lines: a taller terminal, or linerate top rte | less")


def test_a_terminal_that_is_too_narrow_is_said_instead_of_half_figures() -> None:
    assert lines_of(worst(), 24, 79) == ["linerate top needs 80 columns; here are 79."]
    assert lines_of(worst(), 50, 80)[0].startswith("a-program")


def test_long_cycles_keep_their_magnitude() -> None:
    entry = LatencyFigures(
        port=0, queue=0, span="rx-return_tx-call", packets=1_234_567_890,
        **{f"{point}_cycles": 344_249_612 for point in ("p50", "p90", "p99", "p999", "max")},
    )  # fmt: skip
    slow = LcoreFigures(lcore=1, busy_cycles_per_packet=34_424_961.0)
    text = drawn(figures(latency=[entry], lcores=[slow]), 80)
    assert "…" not in text
    assert text.count("344.2M") == 5
    assert "1.2G" in text
    assert "34.4M" in text


def test_what_is_unknown_is_a_dash_and_never_0() -> None:
    lcore = LcoreFigures(lcore=1)
    text = drawn(figures(ports=[PortFigures(port=3)], lcores=[lcore]), 80)
    port_row, lcore_row = (
        next(line for line in text.splitlines() if line.lstrip().startswith(start))
        for start in ("3 ", "1 ")
    )
    assert port_row.split() == ["3", *["-"] * 10]
    assert lcore_row.split() == ["1", *["-"] * 8]


def test_names_cannot_steer_the_terminal() -> None:
    named = figures(
        program="l2\x1b[2Jfwd",
        ports=[PortFigures(port=0, name="[/]\x9b31mred\n", link="\x1b[1m\x9b")],
    )
    text = drawn(named, 80)
    assert "l2?[2Jfwd" in text
    assert "\x1b" not in text
    assert "\x9b" not in text


def test_bursts_are_merged_by_doublings_and_full_ones_stand_alone() -> None:
    histogram = [5, *range(1, 33)]
    buckets = screen.doublings(histogram, 32)
    assert [start for start, _ in buckets] == [1, 2, 4, 8, 16, 32]
    assert [polls for _, polls in buckets] == [1, 5, 22, 92, sum(range(16, 32)), 32]
    assert [start for start, _ in screen.doublings([0, 1], 1)] == [1]
    assert [start for start, _ in screen.doublings([0] * 21, 20)] == [1, 2, 4, 8, 16, 20]
    # Calls that asked for more packets before the limit was lowered.
    assert screen.doublings([0, 0, 0, 0, 2, 0, 0, 1], 4) == [(1, 0), (2, 0), (4, 2), (7, 1)]
    assert sum(polls for _, polls in screen.doublings(histogram, 4)) == sum(histogram[1:])


def test_bars() -> None:
    some = PollingFigures(burst_limit=4, burst_histogram=[9, 800, 0, 1, 400])
    assert screen.bars(some, Style()) == "1|█▁▅|4"
    assert screen.bars(some, Style(ascii_only=True)) == "1|@.+|4"
    nothing = PollingFigures(burst_limit=4, burst_histogram=[9, 0, 0, 0, 0])
    assert screen.bars(nothing, Style()) == screen.bars(PollingFigures(), Style()) == "-"


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (screen.mpps, 0.0, "0.000"),
        (screen.mpps, 0.0004, "<0.001"),
        (screen.mpps, 14.88095, "14.881"),
        (screen.mpps, 99.9996, "100.00"),
        (screen.mpps, 148.8095, "148.81"),
        (screen.mpps, 1488.095, "1488.1"),
        (screen.per_second, 0.0, "0"),
        (screen.per_second, 0.01, "<0.1"),
        (screen.per_second, 9.94, "9.9"),
        (screen.per_second, 9.96, "10"),
        (screen.per_second, 999.4, "999"),
        (screen.per_second, 999.6, "1.0k"),
        (screen.per_second, 99_960, "100k"),
        (screen.per_second, 1.5e12, "1.5e+12"),
        (screen.percent, 0.0, "0.0"),
        (screen.percent, 0.0001, "<0.1"),
        (screen.percent, 0.9999, ">99.9"),
        (screen.percent, 1.0, "100.0"),
        (screen.burst, 0.001, "<0.01"),
        (screen.burst, 32.0, "32.00"),
        (screen.burst, 255.6, "256"),
    ],
)
def test_how_figures_are_written(
    write: Callable[[float | None], str], value: float, text: str
) -> None:
    assert write(value) == text
    assert write(None) == "-"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (88.5, "88 ns"), (999.4, "999 ns"), (999.6, "1.00 us"), (9_994, "9.99 us"),
        (12_345, "12.3 us"), (123_456, "123 us"), (4_032_984, "4.03 ms"), (1.5e9, "1.50 s"),
    ],
)  # fmt: skip
def test_how_times_are_written(ns: float, text: str) -> None:
    assert screen.duration(ns) == text


def test_an_lcore_that_rests_is_said_in_a_line() -> None:
    """testpmd's main lcore polls only when it starts."""
    rests = LcoreFigures(lcore=0, rx_mpps=0.0, queues=[QueueFigures(port=0, queue=0, rx_mpps=0.0)])
    text = drawn(figures(lcores=[rests, LcoreFigures(lcore=1, rx_mpps=1.0)]), 80)
    assert "Polled before and not in this interval: lcore 0." in text
    assert not any(line.startswith("0 ") for line in text.splitlines())
    assert any(line.startswith("1 ") for line in text.splitlines())


def test_why_there_is_no_busy_time_is_said_once() -> None:
    late = [LcoreFigures(lcore=lcore, rx_mpps=1.0, busy_from_before=True) for lcore in (1, 2)]
    text = drawn(figures(lcores=late), 90)
    assert text.count("Busy time from before this interval ended in it: no busy %") == 1
    assert "Busy time from before" not in drawn(figures(lcores=[LcoreFigures(lcore=1)]), 90)


def test_why_there_is_no_latency_is_said() -> None:
    def text(stamped: int, *packets: int | None, one_in: int = 64) -> str:
        probe = {"version": "0.1.0", "polling": True, "one_in": one_in, "stamped": stamped}
        measured = [
            LatencyFigures(port=0, queue=queue, span="rx-return_tx-call", packets=count)
            for queue, count in enumerate(packets)
        ]
        return " ".join(drawn(figures(probe=probe, latency=measured), 80).split())

    said = "packets were stamped and none was seen being sent: the program drops them, sends copies"
    assert f"7 {said}, or overwrites ol_flags." in text(7)
    assert f"7 {said}" in text(7, 0, 0)
    for other in (text(0, 0), text(7, 0, 3), text(7, None), text(7, one_in=0)):
        assert said not in other


def test_a_program_that_sends_nothing_or_only_sends_is_told() -> None:
    nothing = "Nothing is sent"
    assert nothing in drawn(figures(rx_mpps=1.0, tx_mpps=0.0), 80)
    for rx, tx in ((1.0, 0.001), (0.0, 0.0), (1.0, None)):
        assert nothing not in drawn(figures(rx_mpps=rx, tx_mpps=tx), 80)
    only = "Lcores that only send are not shown"
    probe = {"version": "0.1.0", "polling": True, "one_in": 64}
    rests = LcoreFigures(lcore=0, rx_mpps=0.0)
    polls = LcoreFigures(lcore=1, rx_mpps=0.0, average_rx_burst=0.0)
    assert only in drawn(figures(probe=probe, tx_mpps=1.0), 80)
    assert only in drawn(figures(probe=probe, tx_mpps=1.0, lcores=[rests]), 80)
    for other in (
        figures(probe=probe, tx_mpps=1.0, lcores=[rests, polls]),
        figures(probe=probe, tx_mpps=0.0),
        figures(tx_mpps=1.0),
    ):
        assert only not in drawn(other, 80)


def test_hints_say_how_to_see_more() -> None:
    assert "linerate attach -- l2fwd" in drawn(figures(), 80)
    assert "busy time" in drawn(figures(), 80)
    off = {"version": "0.1.0", "polling": False, "one_in": 0}
    text = drawn(figures(probe=off), 80)
    assert "/linerate/probe,polling=on" in text
    assert "/linerate/probe,one_in=64" in text
    waiting = drawn(figures(probe={"version": "0.1.0", "polling": True, "one_in": 64}), 80)
    assert "no queue has been polled yet" in waiting
