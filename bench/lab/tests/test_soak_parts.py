# SPDX-License-Identifier: BSD-3-Clause
"""What the generator's soak makes of what it sees."""

from __future__ import annotations

import pytest
from linerate_bench.generator_soak import growth, resident_kb

from linerate.host.errors import LabError


def test_growth_is_counted_after_the_first_sixth() -> None:
    filling = [100, 900, 1000, 1000, 1000, 1000]
    assert growth([*filling, *[1000] * 24, 1000, 1000, 1000, 1000, 1000, 1004]) == 4
    assert growth([5]) == 0
    assert growth(list(range(0, 6000, 100))) == 5900 - 1900


def test_resident_memory_is_read_or_missed() -> None:
    assert resident_kb("Name:\tgenerator\nVmRSS:\t   54860 kB\nRssAnon:\t1 kB\n") == 54860
    with pytest.raises(LabError):
        resident_kb("Name:\tkthread\n")
