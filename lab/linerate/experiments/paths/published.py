# SPDX-License-Identifier: BSD-3-Clause
"""Published ratios between paths. Shown beside ours as published, never mixed with them."""

from __future__ import annotations

from dataclasses import dataclass

from linerate.records.summary import Band, CellSummary, Comparison

SOURCE = (
    "Hoiland-Jorgensen et al., The eXpress Data Path, CoNEXT 2018: one Xeon E5-1650 v4 at 3.6 GHz, "
    "a ConnectX-5, 64 B, one core; one run, without error bars. 1 is DPDK on that card's own "
    "driver, which wrote MAC addresses at 21.9 Mpps"
)
# Either way of a published ratio: it is of one run.
WIDTH = 0.25
SIZE = 64
_DPDK = ("dpdk", "dpdk-af-xdp")


@dataclass(frozen=True)
class Published:
    """A path's rate over DPDK's, and our forwarder on that path."""

    path: str
    ratio: float
    forwarders: tuple[str, ...]


RATIOS = (
    Published("XDP_TX", 0.77, ("xdp-tx",)),
    Published("XDP_REDIRECT", 0.39, ("xdp-redirect",)),
    Published("Linux forwarding", 0.08, ("kernel-route",)),
)
# Other published figures, without any of ours: dropping, five cores, another rate.
FURTHER = (
    "Dropping on one core: DPDK 43.5 Mpps = 1, XDP_DROP 0.55, iptables raw drop 0.11.",
    "Forwarding on five cores: DPDK 51, XDP_TX 70, XDP_REDIRECT 42 Mpps: the order changes.",
    "CPU use at 1 Mpps: XDP 20 %, Linux 43 %, DPDK 100 %.",
)


def bands(cells: list[CellSummary], comparisons: list[Comparison]) -> list[Band]:
    """Return each published ratio, with ours if the same path was compared with DPDK in a flood."""
    return [_band(each, cells, comparisons) for each in RATIOS]


def _band(published: Published, cells: list[CellSummary], comparisons: list[Comparison]) -> Band:
    result = Band(
        path=published.path,
        ratio=published.ratio,
        low=published.ratio * (1 - WIDTH),
        high=published.ratio * (1 + WIDTH),
    )
    ours = [
        each
        for each in comparisons
        if each.arm in published.forwarders and each.size == SIZE and each.load_share is None
    ]
    dpdk = {arm.arm for cell in cells for arm in cell.arms if arm.kind in _DPDK}
    found = next((each for each in ours if each.baseline in dpdk), None)
    if found is None:
        result.note = _why_none(published, cells, bool(ours))
        return result
    result.link, result.size = found.link, found.size
    result.arm, result.baseline = found.arm, found.baseline
    result.ours, result.ours_low, result.ours_high = found.ratio, found.ci_low, found.ci_high
    if found.verdict == "invalid":
        result.note = f"no verdict: {found.reason}"
    elif found.limited_by:
        result.note = f"the {found.limited_by} held back {_whom(found)}: {_bound(found)}"
    elif found.ci_low is None or found.ci_high is None:
        result.note = "too few blocks for an interval"
    else:
        result.ours_in_band = (
            "inside" if result.low <= found.ci_low and found.ci_high <= result.high
            else "outside" if found.ci_high < result.low or found.ci_low > result.high
            else "partly"
        )  # fmt: skip
    return result


def _why_none(published: Published, cells: list[CellSummary], compared: bool) -> str:
    if compared:
        return "the reference of this run is not a program on DPDK"
    if not any(cell.size == SIZE for cell in cells):
        return f"this run has no {SIZE} B"
    return f"this run has not {' or '.join(published.forwarders)} beside a reference"


def _whom(found: Comparison) -> str:
    names = {"arm": found.arm, "baseline": found.baseline}
    return names.get(found.limited or "", f"{found.arm} and {found.baseline}")


def _bound(found: Comparison) -> str:
    return {
        "arm": "the ratio may be higher",
        "baseline": "the ratio may be lower",
    }.get(found.limited or "", "the ratio may be another")
