# SPDX-License-Identifier: BSD-3-Clause
"""The published RFC 2544 tables, and the arithmetic by which they were made.

The arithmetic serves the column that reproduces them, and nothing else: the 13 bytes are not
Ethernet's overhead, which is 20, and mega and giga are decimal everywhere else.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources

SOURCE = (
    "codilime, repository codilime/rust-dpdk, c_vs_rust/README.md, RFC2544 results; two Xeon Gold "
    "6252, one 25 Gb/s XXV710 port, TRex as generator, l2fwd on one core, one run of 15 s per size "
    "and language"
)
# As the published tables name them.
COLUMNS = (
    "size", "real size", "duration", "pkt loss", "tx pkts", "rx pkts", "tx bytes", "latency avg",
    "latency max", "latency jitter", "throughput bps", "throughput pps",
)  # fmt: skip
# What was added to each frame, and what mega and giga were.
OVERHEAD_BYTES = 13
MEBI, GIBI = 2**20, 2**30
# The port of the published test bed; Ethernet's overhead is preamble 7, SFD 1 and gap 12 bytes.
LINE_BPS = 25e9
ETHERNET_BYTES = 20


def throughput_pps(frames: float, seconds: float) -> float:
    """Their "throughput pps": Mi frames per second."""
    return frames / seconds / MEBI


def throughput_bps(frames: float, size: int, seconds: float) -> float:
    """Their "throughput bps": Gibit per second, of `size` with FCS and 13 bytes."""
    return frames * (size + OVERHEAD_BYTES) * 8 / seconds / GIBI


def line_rate_pps(size: int) -> float:
    """Frames per second that 25 Gbit/s of Ethernet carry. Not published; follows from the port."""
    return LINE_BPS / ((size + ETHERNET_BYTES) * 8)


@dataclass(frozen=True)
class PublishedRow:
    """One row of the published tables. Counts are frames, latencies us; None: not known.

    Also what a run of ours comes to by the same arithmetic: then `language` is the arm.
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
        """As a whole number: their tables say 0 of up to 3126 lost frames."""
        return round(100 * (self.tx_packets - self.rx_packets) / self.tx_packets)

    @property
    def pps(self) -> float:
        return throughput_pps(self.rx_packets, self.duration_s)

    @property
    def bps(self) -> float:
        return throughput_bps(self.rx_packets, self.size, self.duration_s)

    def printed(self) -> tuple[str, ...]:
        """As the published tables print it, in the order of `COLUMNS`."""

        def whole(value: float | None) -> str:
            return "–" if value is None else f"{value:.0f}"

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
    """A row as it was published: its throughput columns are theirs, not computed anew."""

    published_bps: str
    published_pps: str
    published_bytes: int
    published_loss: str

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


def rows() -> list[AsPublished]:
    """All 52, C first."""
    text = resources.files("linerate").joinpath("data/codilime-rfc2544.csv").read_text()
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
