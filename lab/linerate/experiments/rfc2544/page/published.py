# SPDX-License-Identifier: BSD-3-Clause
"""The published RFC 2544 tables, the arithmetic behind them, and what it shows.

The arithmetic is used only for the column that reproduces them: the 13 bytes are not Ethernet's
overhead, which is 20, and mega and giga are decimal everywhere else.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib import resources

SOURCE = (
    "codilime, repository codilime/rust-dpdk, c_vs_rust/README.md, RFC2544 results; two Xeon Gold "
    "6252, one 25 Gb/s XXV710 port, TRex as generator, l2fwd on one core, one run of 15 s per size "
    "and language"
)
# The column names of the published tables.
COLUMNS = (
    "size", "real size", "duration", "pkt loss", "tx pkts", "rx pkts", "tx bytes", "latency avg",
    "latency max", "latency jitter", "throughput bps", "throughput pps",
)  # fmt: skip
# Their overhead of each frame, and their values of mega and giga.
OVERHEAD_BYTES = 13
MEBI, GIBI = 2**20, 2**30
# The port of the published test bed; Ethernet's overhead is preamble 7, SFD 1 and gap 12 bytes.
LINE_BPS = 25e9
ETHERNET_BYTES = 20


def throughput_pps(frames: float, seconds: float) -> float:
    """Return their "throughput pps": Mi frames per second."""
    return frames / seconds / MEBI


def throughput_bps(frames: float, size: int, seconds: float) -> float:
    """Return their "throughput bps": Gibit per second, of `size` with FCS and 13 bytes."""
    return frames * (size + OVERHEAD_BYTES) * 8 / seconds / GIBI


def line_rate_pps(size: int) -> float:
    """Return the frames per second that 25 Gbit/s of Ethernet carry. Not published; follows from
    the port.
    """
    return LINE_BPS / ((size + ETHERNET_BYTES) * 8)


@dataclass(frozen=True)
class PublishedRow:
    """One row of the published tables. Counts are frames, latencies us; None: not known.

    Also our own figures by the same arithmetic: then `language` is the arm.
    """

    language: str
    size: int
    duration_s: float
    tx_packets: int
    rx_packets: int
    latency_avg_us: float | None
    latency_max_us: float | None
    latency_jitter_us: float | None

    @property
    def tx_bytes(self) -> int:
        return self.tx_packets * self.size

    @property
    def loss_percent(self) -> float:
        """The loss as a whole number: their tables say 0 for up to 3126 lost frames."""
        return round(100 * (self.tx_packets - self.rx_packets) / self.tx_packets)

    @property
    def pps(self) -> float:
        return throughput_pps(self.rx_packets, self.duration_s)

    @property
    def bps(self) -> float:
        return throughput_bps(self.rx_packets, self.size, self.duration_s)

    def printed(self) -> tuple[str, ...]:
        """Return the row as printed in the published tables, in the order of `COLUMNS`."""

        def whole(value: float | None) -> str:
            return "-" if value is None else f"{value:.0f}"

        return (
            str(self.size),
            str(self.size + OVERHEAD_BYTES),
            f"{self.duration_s:.6g}",
            whole(self.loss_percent),
            str(self.tx_packets),
            str(self.rx_packets),
            str(self.tx_bytes),
            whole(self.latency_avg_us),
            whole(self.latency_max_us),
            whole(self.latency_jitter_us),
            f"{self.bps:.10g}",
            f"{self.pps:.10g}",
        )


@dataclass(frozen=True)
class AsPublished(PublishedRow):
    """A row as it was published: its throughput columns are theirs, not computed again."""

    published_bps: str
    published_pps: str
    published_bytes: int
    published_loss: str

    def counted(self) -> PublishedRow:
        """Return the row computed from its counts."""
        return PublishedRow(
            **{each.name: getattr(self, each.name) for each in fields(PublishedRow)}
        )

    @property
    def pps(self) -> float:
        return float(self.published_pps)

    @property
    def bps(self) -> float:
        return float(self.published_bps)

    def printed(self) -> tuple[str, ...]:
        computed = super().printed()
        return (
            *computed[:3],
            self.published_loss,
            *computed[4:6],
            str(self.published_bytes),
            *computed[7:10],
            self.published_bps,
            self.published_pps,
        )


# The tolerance for a throughput at the line rate, or at a step of a bisection.
AT_LINE_RATE = 5e-4
AT_STEP = 0.05


def line_share(row: PublishedRow) -> float:
    """Return the share of the frames that 25 Gbit/s of Ethernet carry."""
    return row.rx_packets / row.duration_s / line_rate_pps(row.size)


def findings(published: Sequence[AsPublished]) -> list[str]:
    """Return what a recomputation of these rows shows, a sentence each; empty without rows."""
    if not published:
        return []
    same = sum(row.counted().printed() == row.printed() for row in published)
    said = [
        f"{same} of {len(published)} rows come out as they were published, to the last digit, "
        f"with {OVERHEAD_BYTES} bytes added to each frame and 2^20 and 2^30 for mega and giga. "
        f"Ethernet adds {ETHERNET_BYTES}: preamble 7, start delimiter 1, gap 12."
    ]
    said += _at_line_rate(published)
    lossless = [row for row in published if row.published_loss == "0"]
    if lost := max((row.tx_packets - row.rx_packets for row in lossless), default=0):
        said.append(f"A loss of 0 is rounded: up to {lost} frames were lost.")
    seconds = " or ".join(f"{each:g}" for each in sorted({row.duration_s for row in published}))
    if len({(row.language, row.size) for row in published}) == len(published):
        said.append(f"Each size ran once in each language, for {seconds} s.")
    return said


def _at_line_rate(published: Sequence[AsPublished]) -> list[str]:
    """Return from which size on the port was the limit, and the search steps below it."""
    below = [row for row in published if line_share(row) < 1 - AT_LINE_RATE]
    least = max((row.size for row in below), default=0)
    reached = [row for row in published if row.size > least]
    said = []
    if reached:
        rates = [line_share(row) * LINE_BPS / 1e9 for row in reached]
        said.append(
            f"With {ETHERNET_BYTES}, every size from {min(row.size for row in reached)} B up is "
            f"{min(rates):.3f} to {max(rates):.3f} Gbit/s, the line rate of the port: the "
            "forwarder was not the limit there."
        )
    if steps := _bisection(below):
        parts = {row.size: round(line_share(row) * 2**steps) for row in below}
        sizes = ", ".join(map(str, parts))
        shares = ", ".join(map(str, parts.values()))
        said.append(
            f"The throughputs at {sizes} B are {shares} parts in {2**steps} of the line rate: a "
            f"bisection of {steps} steps, which cannot see a smaller difference than "
            f"{100 / 2**steps:.3g} % of it."
        )
    return said


def _bisection(found: Sequence[PublishedRow]) -> int | None:
    """Return the fewest halvings of the line rate whose steps include all of these; None beyond
    eight.
    """
    for steps in range(1, 9):
        parts = [line_share(row) * 2**steps for row in found]
        if found and all(math.isclose(part, round(part), abs_tol=AT_STEP) for part in parts):
            return steps
    return None


def rows() -> list[AsPublished]:
    """Return all 52 rows, C first."""
    text = resources.files("linerate.report").joinpath("data/codilime-rfc2544.csv").read_text()
    return [
        AsPublished(
            language=row["language"],
            size=int(row["size_bytes"]),
            duration_s=float(row["duration_s"]),
            tx_packets=int(row["tx_packets"]),
            rx_packets=int(row["rx_packets"]),
            latency_avg_us=float(row["latency_avg_us"]),
            latency_max_us=float(row["latency_max_us"]),
            latency_jitter_us=float(row["latency_jitter_us"]),
            published_bps=row["throughput_gibit_per_s"],
            published_pps=row["throughput_mi_packets_per_s"],
            published_bytes=int(row["tx_bytes"]),
            published_loss=row["loss_percent"],
        )
        for row in csv.DictReader(text.splitlines())
    ]
