# SPDX-License-Identifier: BSD-3-Clause
"""The table that compares standing programs with programs that run alone."""

from __future__ import annotations

import numpy as np
import pytest

from linerate.forwarders import forwarder
from linerate_bench.trust.agreement import Pair, pairs, row

PAIR = Pair("a, b", "null2", (forwarder("c-l2fwd"), forwarder("rust-l2fwd")))


@pytest.mark.parametrize(
    ("apart", "told"), [(0.0, "inside 2 %"), (0.05, "not inside 2 %"), (-0.2, "not inside 2 %")]
)
def test_a_row_says_whether_they_agree(apart: float, told: str) -> None:
    noise = np.random.default_rng(3).normal(0, 0.005, 16)
    found = row(PAIR, [(0.1 + apart + each, 0.1) for each in noise])
    assert f"alone {np.exp(0.1):.3f}" in found
    assert found.split(")   ")[-1] == told


def test_there_are_six_pairs() -> None:
    found = pairs()
    assert len({each.name for each in found}) == 6
