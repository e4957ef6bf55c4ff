# SPDX-License-Identifier: BSD-3-Clause
"""Rates of streams, multiplied as TRex's `start -m` does, as OTG has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from linerate.host.errors import UsageError
from linerate.traffic.trex.packet.sizes import Sizes
from linerate.traffic.trex.refusal import RefusalError

Unit = Literal["pps", "bps_L1", "bps_L2", "percentage"]
_MULTIPLIER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(|[kmg]?pps|[kmg]?bps|[kmg]?bpsl1|%)")
# The model's: one of the shortest frames per second.
_LEAST_BITS = 672
_THOUSANDS = {"k": 1e3, "m": 1e6, "g": 1e9}


@dataclass(frozen=True)
class Rate:
    """A rate of frames that have these sizes."""

    unit: Unit
    value: float
    sizes: Sizes

    @property
    def pps(self) -> float | None:
        """Frames per second; None: it is a share of a line that nobody knows here."""
        if self.unit == "percentage":
            return None
        if self.unit == "pps":
            return self.value
        bits = self.sizes.mean_l1_bits if self.unit == "bps_L1" else self.sizes.mean * 8
        return self.value / bits

    def times(self, factor: float) -> Rate:
        return Rate(self.unit, self.value * factor, self.sizes)

    def json(self) -> dict[str, Any]:
        """Raises `RefusalError`."""
        pps = self.pps
        if pps is None:
            if self.value > 100:
                raise RefusalError(f"a rate of {self.value:g} % is more than a line has")
            return {"choice": "percentage", "percentage": self.value}
        if self.unit != "bps_L1" and round(pps) >= 1 and abs(pps - round(pps)) < 1e-9 * pps:
            return {"choice": "pps", "pps": round(pps)}
        # The model's frames per second are whole numbers; its bits are those of layer 1.
        bits = round(pps * self.sizes.mean_l1_bits)
        if bits < _LEAST_BITS:
            raise RefusalError(
                f"a rate of {pps:g} frames per second is {bits} bits per second, and the model's "
                f"least is {_LEAST_BITS}: choose a higher one, or a multiplier (-m)"
            )
        return {"choice": "bps", "bps": bits}


@dataclass(frozen=True)
class Multiplier:
    """`unit`: that of `value`, to which a port's streams are brought together; None: a factor."""

    value: float
    unit: Unit | None

    @staticmethod
    def parse(text: str) -> Multiplier:
        """`2`, `10kpps`, `1gbps` (layer 2), `1gbpsl1` or `50%`, as TRex has them."""
        found = _MULTIPLIER.fullmatch(text.strip().lower())
        if found is None or not float(found[1]):
            raise UsageError(
                f"-m {text}: no multiplier", "for instance 2, 10kpps, 1.5mpps, 1gbps, 1gbpsl1, 50%"
            )
        value, word = float(found[1]), found[2]
        if word == "":
            return Multiplier(value, None)
        if word == "%":
            return Multiplier(value, "percentage")
        value *= _THOUSANDS.get(word[0], 1)
        if word.endswith("pps"):
            return Multiplier(value, "pps")
        return Multiplier(value, "bps_L1" if word.endswith("l1") else "bps_L2")

    def applied(self, rates: Sequence[Rate]) -> list[Rate]:
        """The rates of a port's streams (without those that measure latency) after it.

        Raises `UsageError` where rates are in per cent of a line and the multiplier is not, or the
        other way round for some of them.
        """
        if self.unit is None or not rates:
            return [each.times(self.value) for each in rates]
        shares = [each.unit == "percentage" for each in rates]
        if any(shares) and not (all(shares) and self.unit == "percentage"):
            raise UsageError(
                "-m: some streams have rates in per cent of a line, whose rate is not known here",
                "give a factor, for instance -m 2; or per cent, if all streams have them",
            )
        if all(shares):
            whole = sum(each.value for each in rates)
            return [each.times(self.value / whole) for each in rates]
        amounts = [_amount(each, self.unit) for each in rates]
        whole = sum(amounts)
        if self.unit == "percentage":
            return [
                Rate("percentage", self.value * amount / whole, each.sizes)
                for each, amount in zip(rates, amounts, strict=True)
            ]
        return [each.times(self.value / whole) for each in rates]


def _amount(rate: Rate, unit: Unit) -> float:
    pps = rate.pps or 0.0
    if unit == "pps":
        return pps
    return pps * (rate.sizes.mean * 8 if unit == "bps_L2" else rate.sizes.mean_l1_bits)
