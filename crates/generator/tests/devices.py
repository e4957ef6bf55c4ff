# SPDX-License-Identifier: BSD-3-Clause
"""Devices of a configuration, and what a generator knows of their gateways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import snappi

MACS = {n: f"02:00:00:00:00:0{n}" for n in range(1, 10)}
"""The address of each device's interface, by the device's number."""


def add_device(
    config: Any,
    n: int,
    port: str,
    ipv4: tuple[str, str],
    *,
    ipv6: tuple[str, str] | None = None,
    tags: Sequence[int] = (),
) -> Any:
    """Device `dN` with interface `eN` and the addresses `v4-N` and `v6-N`, each given with its
    gateway.
    """
    device = config.devices.device(name=f"d{n}")[-1]
    ethernet = device.ethernets.add(name=f"e{n}", mac=MACS[n])
    ethernet.connection.port_name = port
    for at, tag in enumerate(tags):
        ethernet.vlans.add(name=f"vlan-{n}-{at}", id=tag)
    address, gateway = ipv4
    ethernet.ipv4_addresses.add(name=f"v4-{n}", address=address, gateway=gateway, prefix=24)
    if ipv6 is not None:
        address, gateway = ipv6
        ethernet.ipv6_addresses.add(name=f"v6-{n}", address=address, gateway=gateway, prefix=64)
    return device


def neighbors(
    api: Any, version: int = 4, names: Sequence[str] = ()
) -> dict[tuple[str, str], str | None]:
    """The gateways' MAC addresses, None if not known, by name of the interface and IP address."""
    request = snappi.StatesRequest()
    asked = request.ipv4_neighbors if version == 4 else request.ipv6_neighbors
    asked.ethernet_names = list(names)
    states = api.get_states(request)
    found = states.ipv4_neighbors if version == 4 else states.ipv6_neighbors
    return {
        (state.ethernet_name, getattr(state, f"ipv{version}_address")): state.link_layer_address
        for state in found
    }


def resolved(api: Any, version: int = 4) -> dict[tuple[str, str], str]:
    """The gateways whose MAC addresses are known."""
    return {key: mac for key, mac in neighbors(api, version).items() if mac is not None}


def protocols(api: Any, state: str) -> list[str]:
    """All protocols start or stop; the warnings."""
    control = snappi.ControlState()
    control.protocol.all.state = state
    return list(api.set_control_state(control).warnings)
