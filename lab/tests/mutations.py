# SPDX-License-Identifier: BSD-3-Clause
"""Random changes, as an adversary or a bad disk makes them, to files and answers; drawn from a
seed.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Seconds for each reader; set this for a longer search.
SECONDS = float(os.environ.get("FUZZ_SECONDS", "3"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
# Time limit of one case: a reader that takes longer counts as hanging.
_CASE_S = 60

STEERS = "\x1b[2J\x1b]0;x\x07\x9b31m\u202e\r"
_SCALARS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 64, 10**6, 2**31, 2**63 - 1, 2**63, 2**64, 10**30, 10**400,
    -(2**63), 0.0, -0.5, 1e-320, 1e308, float("nan"), float("inf"), "", "x", "0", "[/x]", "{x}",
    STEERS, "é" * 300, "\0", "1" * 5000, "\ud800", [], {}, [[]], [None], {"": 0},
)  # fmt: skip


def nested(levels: int) -> str:
    """Return JSON with so many nested lists."""
    return "[" * levels + "]" * levels


def changed_json(source: random.Random, text: str) -> bytes:
    """Return JSON of the same kind with one to three values changed, or with arbitrary
    bytes in it.
    """
    if source.random() < 0.25:
        return changed_bytes(source, text.encode())
    value = json.loads(text)
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        value = _changed(source, value)
    found = json.dumps(value, ensure_ascii=source.random() < 0.5)
    if source.random() < 0.03:
        found = found.replace("0", nested(source.choice((10, 150, 900, 4000))), 1)
    return found.encode(errors="surrogatepass")


def _changed(source: random.Random, value: Any) -> Any:
    """Return it with one value changed, at any depth."""
    places = list(_places(value))
    if not places:
        return source.choice(_SCALARS)
    inside, key = source.choice(places)
    kind = source.randrange(6)
    if kind == 0:
        del inside[key]
    elif kind == 1 and isinstance(inside, list):
        inside.insert(source.randrange(len(inside) + 1), copy.deepcopy(inside[key]))
    elif kind == 1:
        inside[source.choice(("x", STEERS, "kind", "schema", "0"))] = copy.deepcopy(inside[key])
    elif kind == 2:
        other, name = source.choice(places)
        if _is_there(other, name) and not _holds(other[name], inside):
            # A value in two places would contain itself after the next change.
            inside[key] = copy.deepcopy(other[name])
    elif kind == 3 and isinstance(inside[key], int | float):
        factor = source.choice((-1, 0, 10, 10**6, 0.001))
        # An earlier change may have put 10^400 there, which is no float.
        with contextlib.suppress(OverflowError):
            inside[key] = inside[key] * factor
    else:
        inside[key] = source.choice(_SCALARS)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Return every list or table in it, with each of its keys or indexes."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _is_there(inside: Any, key: Any) -> bool:
    return key in inside if isinstance(inside, dict) else key < len(inside)


def _holds(value: Any, part: Any) -> bool:
    return value is part or any(inside is part for inside, _ in _places(value))


def changed_bytes(source: random.Random, content: bytes) -> bytes:
    """Return it with one to four pieces cut, doubled, or replaced."""
    found = bytearray(content)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(found) + 1)
        piece = found[at : at + source.choice((1, 1, 4, 40, 400))]
        kind = source.randrange(5)
        if kind == 0:
            found[at : at + len(piece)] = b""
        elif kind == 1:
            found[at:at] = piece * source.choice((1, 2, 50))
        elif kind == 2:
            found[at : at + 1] = source.randbytes(1)
        elif kind == 3:
            found[at:at] = source.choice((b"[" * 300, b"\n", b"\0", b"-", b"9" * 30, b"\xff", b'"'))
        else:
            del found[at:]
    return bytes(found)


def until_time_is_over(
    check: Callable[[random.Random], None], at_least: int = 5, seconds: float = SECONDS
) -> int:
    """Call `check` with new sources until the time is over; the message of a failure names the
    source.

    Returns the number of calls.
    """
    ends = time.monotonic() + seconds
    number = 0
    while number < at_least or time.monotonic() < ends:
        number += 1
        name = f"{SEED}.{number}"
        try:
            with bounded(_CASE_S):
                check(random.Random(name))
        except Exception as error:
            raise AssertionError(
                f"source {name}: {type(error).__name__}: {error!s:.500}"
            ) from error
    return number


@contextmanager
def bounded(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` in the block when its time is over, also in the middle of a
    system call.
    """

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no end within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
