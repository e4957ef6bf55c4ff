# SPDX-License-Identifier: BSD-3-Clause
"""The owners of functions, and the matching of functions in two builds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from linerate.experiments.instructions.callgrind import Counted
from linerate.experiments.instructions.profile import INSTRUCTIONS, Place
from linerate.experiments.instructions.record import Figures

Owner = Literal["program", "dpdk", "driver", "system"]
_LIBRARY = re.compile(r"(.+?)\.so(\.[0-9.]+)?")
_SYSTEM = re.compile(r"/(usr/)?lib(32|64)?/|\?\?\?$|$")
_ADDRESS = re.compile(r"0x0*([0-9a-f]+)")
# Suffixes that compilers add to a copy or a part of a function, and rustc to every name.
_COPY = re.compile(r"(\.(cold|constprop|isra|part|lto_priv|llvm)(\.\d+)*)+$|::h[0-9a-f]{16}$|'\d+$")


@dataclass(frozen=True, order=True)
class Key:
    """A function in all builds: if it has a symbol, its program's own file does not matter."""

    owner: Owner
    object: str
    name: str


def is_address(name: str) -> bool:
    """Return True if the name stands for a function without a symbol."""
    return bool(_ADDRESS.fullmatch(name))


def named(name: str, file: str | None) -> str:
    """Return the name in words: `main`, `rte_eth_stats_get (librte_ethdev.so.23.0)`,
    `fw+0x1234`.
    """
    if file is None:
        return name
    return f"{file}+{name}" if is_address(name) else f"{name} ({file})"


def owner(object_file: str, driver: str) -> Owner:
    """Return the owner of an object file. `driver`: of the link, such as `net_null`."""
    path = PurePath(object_file)
    library = _LIBRARY.fullmatch(path.name)
    if library and library[1] == f"librte_{driver}":
        return "driver"
    if library and library[1].startswith("librte_"):
        return "dpdk"
    if _SYSTEM.match(object_file) and (library or not path.name.strip("?")):
        return "system"
    return "program"


def key(place: Place, driver: str) -> Key:
    whose = owner(place.object, driver)
    library = _LIBRARY.fullmatch(PurePath(place.object).name)
    if match := _ADDRESS.fullmatch(place.function):
        # Another file has other functions at these addresses.
        return Key(whose, place.object, f"0x{match[1]}")
    return Key(whose, library[1] if library else "", _COPY.sub("", place.function))


class Names:
    """Costs by function, so that those of several runs can be compared. `driver`: the link's."""

    def __init__(self, driver: str, runs: Iterable[Counted]) -> None:
        self._driver = driver
        self._files: dict[Key, str] = {}
        for run in runs:
            for place in run.costs:
                self._files.setdefault(self.key(place), PurePath(place.object).name)

    def key(self, place: Place) -> Key:
        return key(place, self._driver)

    def file(self, function: Key) -> str | None:
        """Return the name of its file; None if it is the program's own."""
        return self._files[function] if function.object else None

    def instructions(self, run: Counted) -> dict[Key, float]:
        """Return instructions per packet, of each function by itself."""
        found: dict[Key, float] = defaultdict(float)
        for place, cost in run.costs.items():
            found[self.key(place)] += cost.get(INSTRUCTIONS, 0.0)
        return dict(found)

    def by_owner(self, run: Counted) -> dict[Owner, float]:
        found: dict[Owner, float] = {"program": 0.0, "dpdk": 0.0, "driver": 0.0, "system": 0.0}
        for function, executed in self.instructions(run).items():
            found[function.owner] += executed
        return found

    def figures(self, run: Counted) -> Figures:
        return Figures(
            instructions=run.total(),
            **self.by_owner(run),
            conditional_branches=run.total("Bc"),
            conditional_mispredicted=run.total("Bcm"),
            indirect_branches=run.total("Bi"),
            indirect_mispredicted=run.total("Bim"),
            l1_instruction_misses=run.total("I1mr"),
            l1_data_misses=run.total("D1mr") + run.total("D1mw"),
        )
