# SPDX-License-Identifier: BSD-3-Clause
"""Describe the isolation and limits of a design's tenants, for the report."""

from __future__ import annotations

from linerate.experiments.cloud.design.design import CloudDesign


def isolation(design: CloudDesign) -> list[str]:
    """Return a sentence for each kind of tenant that the design has."""
    kinds = {place.cell.kind for place in design.places}
    loads = {place.cell.load for place in design.places}
    shape = design.tenant
    limits = [f"{shape.pids} processes and threads"]
    if shape.cpu_quota is not None:
        limits.append(f"{shape.cpu_quota:.0%} of a CPU")
    if shape.io_mib_per_s is not None:
        limits.append(f"{shape.io_mib_per_s:g} MiB/s each way at its disk")
    disk = f" and a disk of {shape.disk_mib} MiB" if loads & {"io", "mixed"} else ""
    found = []
    if "container" in kinds:
        memory = f"{shape.memory_mib} MiB of memory"
        found.append(
            f"a container has a control group ({', '.join([memory, *limits])}), namespaces for "
            f"mounts, processes, network, host name and IPC{disk}; it runs as nobody, without "
            "capabilities, on a file system that it cannot write"
        )
    if "vm" in kinds:
        found.append(
            "a virtual machine is made of Debian's packages, has one virtual CPU, the memory that "
            f"its load needs{disk}, and is in a control group ({', '.join(limits)})"
        )
    if loads & {"network", "mixed"}:
        found.append(
            "network loads go over a bridge in a namespace of its own, with no route off it"
        )
    return found
