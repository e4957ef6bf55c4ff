# SPDX-License-Identifier: BSD-3-Clause
"""Published figures, read from the package's data. Shown beside ours, never mixed with them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources

SIZE = 64  # bytes, of all rows
SOURCE = (
    "codilime, repository codilime/rust-dpdk, folder c_vs_rust; two Xeon Gold 6252, one 25 Gb/s "
    "XXV710 port, TRex as generator, l2fwd on one core, 64 B, one run of 30 s per language"
)


@dataclass(frozen=True)
class PublishedOverload:
    """One row of the published overload table; counts are frames."""

    language: str
    size: int
    duration_s: float
    generator_tx: int
    generator_rx: int
    forwarder_tx: int
    forwarder_rx: int
    forwarder_drops: int
    average_rx_burst: float

    def mpps(self, count: int) -> float:
        return count / self.duration_s / 1e6

    @property
    def dropped_share(self) -> float:
        """Share of frames that the application received and did not send: forwarder drops."""
        return self.forwarder_drops / self.forwarder_rx

    @property
    def lost_before_share(self) -> float:
        """Share of frames lost before the application: not in the published table, but computed
        from its figures.
        """
        return (self.generator_tx - self.forwarder_rx) / self.generator_tx


def overload() -> list[PublishedOverload]:
    text = resources.files("linerate.report").joinpath("data/codilime-overload.csv").read_text()
    return [
        PublishedOverload(
            language=row["language"],
            size=int(row["size_bytes"]),
            duration_s=float(row["duration_s"]),
            generator_tx=int(row["generator_tx"]),
            generator_rx=int(row["generator_rx"]),
            forwarder_tx=int(row["l2fwd_tx"]),
            forwarder_rx=int(row["l2fwd_rx"]),
            forwarder_drops=int(row["l2fwd_drops"]),
            average_rx_burst=float(row["avg_rx_burst"]),
        )
        for row in csv.DictReader(text.splitlines())
    ]
