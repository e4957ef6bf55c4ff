# SPDX-License-Identifier: BSD-3-Clause
"""A host with other contents in some of the kernel's files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from linerate.host import host as host_module
from linerate.host.host import Host, Local


@dataclass(frozen=True)
class Instead(Local):
    """This machine, except that each of `places`, and everything below it, is another path."""

    places: Mapping[str, Path] = field(default_factory=dict, hash=False)

    def _real(self, path: str | Path) -> Path:
        for place, real in self.places.items():
            if Path(path).is_relative_to(place):
                return real / Path(path).relative_to(place)
        return Path(path)

    def read_bytes(self, path: str | Path) -> bytes:
        return super().read_bytes(self._real(path))

    def set_value(self, path: str | Path, text: str) -> None:
        super().set_value(self._real(path), text)

    def exists(self, path: str | Path) -> bool:
        return super().exists(self._real(path))

    def glob(self, folder: str | Path, pattern: str) -> list[Path]:
        return super().glob(self._real(folder), pattern)

    def resolve(self, path: str | Path) -> Path:
        return super().resolve(self._real(path))


def inside(host: Host) -> AbstractContextManager[None]:
    """The calling thread in the network namespace that this host is."""
    assert host.namespace
    return host_module.inside(host.namespace)
