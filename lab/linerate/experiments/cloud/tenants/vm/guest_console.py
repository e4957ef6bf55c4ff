# SPDX-License-Identifier: BSD-3-Clause
"""Parse a guest's messages on its console: lines `@linerate {JSON}` among other output.

The kernel uses the same console, and a guest may print anything: lines that are not understood are
counted and discarded, an endless line is cut. A `Console` belongs to one thread. Times are seconds,
of the guest's own clock since it was started.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from linerate.experiments.cloud.tenants.base import Load, Work
from linerate.host.text import last_words

MARK = "@linerate "
LONGEST_LINE = 4096
_KEPT_LINES = 40


@dataclass(frozen=True)
class Up:
    """The guest's first program runs."""


@dataclass(frozen=True)
class Network:
    """Its address with the length of the link's prefix, and its routes as printed by `ip route`."""

    address: str
    routes: tuple[str, ...]


@dataclass(frozen=True)
class Ready:
    """Its load has begun to do work."""

    load: Load


@dataclass(frozen=True)
class Worked:
    """Its work since it was ready."""

    up_s: float
    work: Work


@dataclass(frozen=True)
class Failed:
    why: str


@dataclass(frozen=True)
class Off:
    """It is about to power off."""


Message = Up | Network | Ready | Worked | Failed | Off


class Console:
    """Takes bytes as they arrive and returns the messages."""

    def __init__(self) -> None:
        self.garbage = 0
        self._line = bytearray()
        self._cut = False
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)

    @property
    def last_words(self) -> str:
        """The end of the output that was not a message, on one line."""
        return last_words("\n".join(self._kept))

    def feed(self, heard: bytes) -> list[Message]:
        said: list[Message] = []
        *ended, rest = heard.split(b"\n")
        for part in ended:
            self._take(part)
            if (message := self._end()) is not None:
                said.append(message)
        self._take(rest)
        return said

    def _take(self, part: bytes) -> None:
        room = LONGEST_LINE - len(self._line)
        self._line += part[:room]
        self._cut = self._cut or len(part) > room

    def _end(self) -> Message | None:
        line = self._line.decode(errors="replace").strip()
        cut, self._cut = self._cut, False
        self._line.clear()
        # The kernel may have begun a line that it did not end.
        _, mark, said = line.rpartition(MARK)
        message = parse(said) if mark and not cut else None
        if message is None and line:
            self.garbage += 1
            self._kept.append(line)
        return message


def parse(text: str) -> Message | None:
    """Parse one message; None for anything else, even if it is similar."""
    try:
        said = json.loads(text)
        return _MESSAGES[said["say"]](said) if isinstance(said, dict) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _network(said: Mapping[str, object]) -> Network:
    routes = (route.strip() for route in _text(said["routes"]).split(";"))
    return Network(_text(said["address"]), tuple(filter(None, routes)))


def _worked(said: Mapping[str, object]) -> Worked:
    up = said["up_s"]
    if isinstance(up, bool) or not isinstance(up, int | float) or not 0 <= up < float("inf"):
        raise ValueError(up)
    names = ("bogo_ops", "io_operations", "io_bytes", "network_bytes")
    return Worked(float(up), Work(**{name: _count(said[name]) for name in names if name in said}))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


_MESSAGES: Mapping[object, Callable[[Mapping[str, object]], Message]] = {
    "up": lambda _: Up(),
    "network": _network,
    "ready": lambda said: Ready(Load(_text(said["load"]))),
    "work": _worked,
    "failed": lambda said: Failed(_text(said["why"])),
    "off": lambda _: Off(),
}
