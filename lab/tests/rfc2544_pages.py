# SPDX-License-Identifier: BSD-3-Clause
"""Pages of rfc2544 and their contents, for its tests."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from simulated_lab import SimulatedLab, options, start

from linerate import report
from linerate.experiments.rfc2544.plan import cells
from linerate.experiments.rfc2544.runs import Found
from linerate.records.output import REPORT
from linerate.records.summary import Summary
from linerate.records.summary_figures import LowerLoad, Quartiles
from linerate.records.types import LOW_LOAD

SIZES = [64, 300, 1518]


BLOCKS = cells(options(sizes=SIZES))[0].blocks


ARMS = ["c-l2fwd", "rust-l2fwd"]


LOADS = (0.1, 0.5, 0.9)


RESULTS = "memif: throughput, and latency there, by frame size and forwarder"


REPRODUCED = "memif: this run by the published arithmetic"


CSV = Path(report.__file__).with_name("data") / "codilime-rfc2544.csv"


class Page(HTMLParser):
    """Tables by caption: headings, rows of texts, and the classes of rows; and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.classes: dict[str, list[str]] = {}
        self.text = ""
        self.charts: list[str] = []
        self._caption = ""
        self._cell: str | None = None
        self._raw = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._raw = tag in ("script", "style")
        if tag == "table":
            self._caption = ""
            self.tables[""], self.classes[""] = [], []
        elif tag in ("caption", "td", "th"):
            self._cell = ""
        elif tag == "tr":
            self.tables[self._caption].append([])
            self.classes[self._caption].append(given.get("class") or "")
        if given.get("class") == "chart":
            self.charts.append(str(given["id"]))

    def handle_endtag(self, tag: str) -> None:
        self._raw = False
        found, self._cell = self._cell or "", None
        if tag == "caption":
            self._caption = found
            self.tables[found], self.classes[found] = [], []
        elif tag in ("td", "th"):
            self.tables[self._caption][-1].append(" ".join(found.split()))
        else:
            # Only a cell's own end ends it.
            self._cell = found if found else None

    def handle_data(self, data: str) -> None:
        if self._raw:
            return
        self.text += data
        if self._cell is not None:
            self._cell += data

    def rows(self, caption: str) -> list[dict[str, str]]:
        headings, *rows = self.tables[caption]
        assert all(len(row) == len(headings) for row in rows)
        return [dict(zip(headings, row, strict=True)) for row in rows]


def spread(middle: float) -> Quartiles:
    return Quartiles(
        n=6, median=middle, q1=middle * 0.97, q3=middle * 1.03, low=middle * 0.9, high=middle * 1.2
    )


def fill(found: Summary) -> None:
    """Add what a simulated forwarder does not have: jitter, and the figures of polls."""
    for cell in found.cells:
        polled: list[LowerLoad] = []
        for place, arm in enumerate(cell.arms):
            if arm.arm not in ARMS or arm.search is None:
                continue
            for entry in arm.search.latency:
                entry.jitter_us = spread(3.0 + place + cell.size / 1000)
                entry.ipdv_us = {"0.99": spread(5.5)}
            polled += [
                LowerLoad(
                    arm=arm.arm, load_share=share, offered_mpps=share * 10, trials=6, invalid=0,
                    loss_share=0.0, busy_cycles_per_packet=spread(40 + place),
                    average_rx_burst=spread(share), average_nonempty_rx_burst=spread(2.0),
                    busy_share=spread(share / 1.3), full_share=spread(0.01), rx_spin=spread(0.5),
                )
                for share in LOADS
            ]  # fmt: skip
        cell.lower_load = [entry for entry in cell.lower_load if entry.load_share == LOW_LOAD]
        cell.lower_load += polled


def told(lab: SimulatedLab, **given: object) -> Found:
    with tempfile.TemporaryDirectory() as scratch:
        return start(lab, Path(scratch) / "out", **given)


def render(found: Found, **changed: object) -> str:
    return replace(found, **changed).files()[REPORT]  # type: ignore[arg-type]


@cache
def whole() -> Found:
    """Return a run of three sizes, with every figure filled in."""
    result = told(SimulatedLab(late=lambda _: 0.1), sizes=SIZES)
    fill(result.summary)
    return result


def number(text: str) -> float:
    return float(text.split(maxsplit=1)[0].replace(",", ""))
