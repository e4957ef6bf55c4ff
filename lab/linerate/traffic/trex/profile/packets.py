# SPDX-License-Identifier: BSD-3-Clause
"""Packets as profiles build them, with scapy where it is installed, as bytes."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import Any

HOW_TO_INSTALL = "profiles build their packets with it: pip install scapy"
# What profiles expect among the API's names, beside `scapy.all`.
_FURTHER = ("scapy.contrib.mpls", "scapy.contrib.gtp")


class _Scapy:
    module: ModuleType | None = None
    names: dict[str, Any]


def import_scapy() -> None:
    """Import it before its files may be out of reach; nothing happens where it is missing."""
    _Scapy.names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _Scapy.module = importlib.import_module("scapy.all")
        except ImportError:
            return
        for name in ("scapy.all", *_FURTHER):
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue
            public = getattr(module, "__all__", None) or vars(module)
            _Scapy.names |= {
                each: getattr(module, each) for each in public if not each.startswith("_")
            }


def is_missing() -> bool:
    return _Scapy.module is None


def names() -> dict[str, Any]:
    """All that scapy gives whoever imports everything of it."""
    return _Scapy.names


def content(packet: Any) -> dict[str, Any]:
    """A packet as `bytes` in hex, or `capture`, a file whose first packet it is.

    `own_src`, `own_dst`: whether it names its Ethernet addresses itself.
    """
    if isinstance(packet, str):
        return {"capture": packet, "own_src": True, "own_dst": True}
    own_src = own_dst = True
    if not isinstance(packet, (bytes, bytearray)):
        fields = getattr(packet, "fields", None)
        if fields is None:
            raise TypeError(f"a packet is scapy's or bytes, and this is {type(packet).__name__}")
        if type(packet).__name__ == "Ether":
            own_src, own_dst = "src" in fields, "dst" in fields
            # scapy would look for them on this machine's network.
            packet = packet.copy()
            packet.src = packet.fields.get("src", "00:00:00:00:00:00")
            packet.dst = packet.fields.get("dst", "00:00:00:00:00:00")
    return {"bytes": bytes(packet).hex(), "own_src": own_src, "own_dst": own_dst}
