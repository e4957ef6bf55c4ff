# SPDX-License-Identifier: BSD-3-Clause
"""Latency histograms from programs' answers: decoding, differences, percentiles.

A histogram is sent as base64 of HDR V2 compressed encoding and counts since the program's start.
The difference of two histograms, bucket by bucket, is exactly the histogram of the time between
them.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

_DECODING_ERRORS = (
    HdrCookieException, HdrHistogramSettingsException, HdrLengthException,
    zlib.error, struct.error, ValueError, TypeError, IndexError, OverflowError, MemoryError,
    # The library raises this for a length of 0.
    RuntimeError,
)  # fmt: skip
# Our programs' have two digits; HdrHistogram's tools suggest three at most.
_MOST_DIGITS = 3
# In bytes: all buckets of three digits, at the nine bytes that a count can take.
_MOST_PACKED, _MOST_UNPACKED = 1 << 20, 1 << 20
# Cookie and length of the compressed form; then of its content: cookie, length, offset, digits.
_HEADER = 8
_CONTENT = struct.Struct(">iiii")


@dataclass(frozen=True)
class Histogram:
    """Counts of each value. `buckets` ascend: (highest value of the bucket, count > 0)."""

    buckets: tuple[tuple[int, int], ...] = ()

    @property
    def total(self) -> int:
        return sum(count for _, count in self.buckets)

    def percentile(self, percent: float) -> int | None:
        """Return the smallest value that `percent` of all values do not exceed, rounded up to its
        bucket.

        None if there are no values.
        """
        # Rounded first: binary fractions put 99.9 % of some totals just above a whole number.
        wanted = max(1, math.ceil(round(percent * self.total / 100, 6)))
        seen = 0
        for value, count in self.buckets:
            seen += count
            if seen >= wanted:
                return value
        return None

    @property
    def mean(self) -> float:
        """The mean. Each value counts as the highest of its bucket: too high by a part of
        its width.
        """
        return sum(value * count for value, count in self.buckets) / self.total

    @property
    def maximum(self) -> int | None:
        return self.buckets[-1][0] if self.buckets else None


def decode(text: str) -> Histogram:
    """Decode a histogram. Raises `ValueError` for anything else, and for a histogram larger than
    any that a program here makes: a short text may expand to much memory.
    """
    try:
        _refuse_large(text)
        histogram = HdrHistogram.decode(text)
        # Buckets are named by their highest value: their number, and with it their place in an
        # array, changes when the program's histogram grows.
        return Histogram(
            tuple(
                (
                    histogram.get_highest_equivalent_value(histogram.get_value_from_index(index)),
                    count,
                )
                for index, count in enumerate(histogram.counts[:])
                if count
            )
        )
    except _DECODING_ERRORS as error:
        raise ValueError(f"no HDR histogram: {error}") from error


def _refuse_large(text: str) -> None:
    """Raise `ValueError`, `zlib.error` or `struct.error` for a text that is invalid or too
    large.
    """
    if len(text) > _MOST_PACKED:
        raise ValueError(f"longer than {_MOST_PACKED} bytes")
    packed = base64.b64decode(text)[_HEADER:]
    content = zlib.decompressobj().decompress(packed, _MOST_UNPACKED + 1)
    if len(content) > _MOST_UNPACKED:
        raise ValueError(f"longer than {_MOST_UNPACKED} bytes when unpacked")
    _, _, _, digits = _CONTENT.unpack_from(content)
    if not 0 < digits <= _MOST_DIGITS:
        raise ValueError(f"{digits} significant digits, from 1 to {_MOST_DIGITS} are read")


def difference(now: Histogram, before: Histogram) -> Histogram | None:
    """Return the counts from `before` to `now`; None if a count fell (the program restarted)."""
    left = Counter(dict(now.buckets))
    left.subtract(dict(before.buckets))
    if any(count < 0 for count in left.values()):
        return None
    return Histogram(tuple(sorted((value, count) for value, count in left.items() if count)))


def together(histograms: Sequence[Histogram]) -> Histogram:
    """Return the sum of all histograms."""
    counts: Counter[int] = Counter()
    for each in histograms:
        counts.update(dict(each.buckets))
    return Histogram(tuple(sorted(counts.items())))
