# SPDX-License-Identifier: BSD-3-Clause
"""Takeaways and cells of experiment `cloud` in words. Decides nothing: the verdicts are already
made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from linerate.records.cloud_summary import CloudCellFigures, OwnRate, TakeawayEntry

# The unit of differences of shares.
_POINTS = " percentage points"
_SHARES = ("loss", "left", "steal", "softirq", "throttled")


@dataclass(frozen=True)
class Work:
    """The units of tenants' work. `factor`: from the record's unit per second."""

    what: str
    unit: str
    factor: float = 1.0
    digits: int = 0


WORK_UNITS = {
    "bogo_ops": Work("computing", "stress-ng operations / s"),
    "io_operations": Work("I/O operations", "I/O operations / s"),
    "io_bytes": Work("I/O bytes", "I/O, MB / s", 1e-6, 2),
    "network_bytes": Work("network", "network, MB / s", 1e-6, 2),
}


_METRICS = {
    "left": "throughput left",
    "work_left": "work left to tenants",
    "loss_at_ingress": "loss at the ingress",
}


def metric_words(metric: str) -> str:
    """Return the words for a metric, such as `99 % latency` for latency_p99_us."""
    if found := re.fullmatch(r"latency_p(\d\d)(\d*)_us", metric):
        whole, rest = found.groups()
        return (
            "median latency"
            if (whole, rest) == ("50", "")
            else f"{whole}{rest and '.' + rest} % latency"
        )
    return _METRICS.get(metric, metric.replace("_", " "))


def beside_words(cell: CloudCellFigures) -> str:
    """Return the tenants beside the forwarder, such as `2 network containers`."""
    if not cell.tenants:
        return "nobody"
    noun = "VM" if cell.kind == "vm" else cell.kind
    return f"{cell.tenants} {cell.load} {noun}{'' if cell.tenants == 1 else 's'}"


def effect_words(entry: TakeawayEntry) -> str | None:
    """Return the effect with its interval; None without one."""
    if entry.effect is None:
        return None
    told = f"{entry.measure} {amount(entry, entry.effect)}"
    if interval := interval_words(entry):
        told += f" (95 % interval {interval})"
    return told


def amount(entry: TakeawayEntry, value: float) -> str:
    """Format a value of the effect in the unit of its measure."""
    if entry.measure == "ratio":
        return f"{value:.3f}"
    if entry.measure == "partial eta squared":
        return f"{value:.2f}"
    if entry.metric.startswith(_SHARES):
        return f"{value * 100:+.2f}{_POINTS}"
    return f"{value:+.3g}"


def interval_words(entry: TakeawayEntry) -> str | None:
    if entry.low is None or entry.high is None:
        return None
    # The unit stands behind the effect.
    low, high = (amount(entry, each).removesuffix(_POINTS) for each in (entry.low, entry.high))
    return f"{low} to {high}"


def p_words(p: float | None) -> str | None:
    if p is None:
        return None
    return "p below 0.0001" if p < 0.0001 else f"p {p:.4f}"


def detectable_words(entry: TakeawayEntry) -> str | None:
    """Return what such a run finds in four of five cases."""
    if entry.detectable is None:
        return None
    if entry.measure == "ratio":
        return f"{entry.detectable * 100:.1f} %"
    if entry.measure == "partial eta squared":
        return f"a partial eta squared of {entry.detectable:.2f}"
    if entry.metric.startswith(_SHARES):
        return f"{entry.detectable * 100:.2f}{_POINTS}"
    return f"{entry.detectable:.3g}"


def facts(entry: TakeawayEntry) -> list[str]:
    """Return the facts behind the verdict: the effect, p unless the reason has it, the test, and
    the part of the design.
    """
    found = []
    if effect := effect_words(entry):
        found.append(f"{effect}, {entry.compared}" if entry.compared else effect)
    elif entry.compared:
        found.append(entry.compared)
    if (p := p_words(entry.p)) and p.split()[-1] not in entry.reason:
        found.append(p)
    found.append(entry.test)
    if entry.part:
        found.append(f"of part {entry.part}")
    return found


def sentence(entry: TakeawayEntry) -> str:
    """Return a sentence such as `held: packet size matters ...: p 0.0005 (ratio ..., size 1518
    against 64; ...).`
    """
    reason = entry.reason.removesuffix(".")
    return f"{entry.verdict}: {entry.statement}: {reason} ({'; '.join(facts(entry))})."


def control_words(control: Sequence[TakeawayEntry]) -> str:
    """Summarise the A/A controls of all metrics. Held means that one differs from itself."""
    if not control:
        return "nothing to compare"
    differed = sum(entry.verdict == "held" for entry in control)
    if differed:
        return f"{differed} of {len(control)} differed"
    alike = sum(entry.verdict == "not held" for entry in control)
    if alike == len(control):
        return "found nothing"
    if not alike:
        return "undecided: too little to compare"
    return f"found nothing in {alike} of {len(control)}, undecided in the others"


def control_sentence(entry: TakeawayEntry) -> str:
    """Return a sentence such as `A/A control by throughput: found nothing: the interval ... (ratio
    ...; ...).`
    """
    return (
        f"A/A control by {metric_words(entry.metric)}: {control_verdict(entry)}: "
        f"{entry.reason.removesuffix('.')} ({'; '.join(facts(entry))})."
    )


def control_verdict(entry: TakeawayEntry) -> str:
    return {"held": "differs", "not held": "found nothing"}.get(entry.verdict, entry.verdict)


def own_rate_words(own: OwnRate) -> str:
    """Describe 100 % of a framework."""
    note = f" ({own.note})" if own.note else ""
    ndr = ""
    if own.ndr_pps and own.pps is not None:
        ndr = f", {own.pps / own.ndr_pps:.0%} of its NDR of {own.ndr_pps / 1e3:,.1f} kpps"
    what = "not found" if own.pps is None else f"{own.pps / 1e3:,.1f} kpps{ndr}"
    return f"100 % of {own.framework} at {own.size} B: {what}{note}"
