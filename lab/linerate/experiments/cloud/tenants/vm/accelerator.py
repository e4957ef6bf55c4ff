# SPDX-License-Identifier: BSD-3-Clause
"""Choose how guests run here: KVM if a guest really boots with it, otherwise QEMU's translator
(TCG).

/dev/kvm may open but run nothing, as in some virtual machines: only a boot shows it. It is tried
once per process, for a bounded time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.cloud.tenants.base import Load
from linerate.experiments.cloud.tenants.vm import guest
from linerate.experiments.cloud.tenants.vm.guest_process import GuestProcess
from linerate.experiments.cloud.tenants.vm.qemu import KVM, TCG, Machine
from linerate.host.errors import LinkError, ProcessError
from linerate.host.host import LOCAL
from linerate.host.process import RunDirectory

DEVICE = Path("/dev/kvm")
# With KVM a guest reports that it is up within a second.
BOOT_S = 10.0


@dataclass(frozen=True)
class Accelerator:
    """The accelerator. `name`: QEMU's. `reason`: why it was chosen, for the result."""

    name: str
    reason: str


class _Known:
    found: Accelerator | None = None


def accelerator(run: RunDirectory, cpus: Sequence[int]) -> Accelerator:
    """Return the accelerator; the first call may boot a guest, on these CPUs."""
    if _Known.found is None:
        _Known.found = probe(run, cpus)
    return _Known.found


def probe(
    run: RunDirectory, cpus: Sequence[int], device: Path = DEVICE, boot_s: float = BOOT_S
) -> Accelerator:
    """Test the accelerators again, even if the result is known."""
    if why := LOCAL.obstacle(device):
        return Accelerator(TCG, f"{device}: {why}")
    idle = guest.build(Load.IDLE)
    words = {"load": Load.IDLE.value, "seconds": str(round(boot_s) + 1)}
    machine = Machine(idle.kernel, idle.initramfs, KVM, idle.least_memory_mib, words)
    try:
        tried = GuestProcess(machine, run, cpus, "kvm-probe")
        try:
            tried.wait_until(lambda: tried.up, boot_s, "no guest boots with KVM")
        finally:
            tried.stop(patience_s=0.0)
    except (LinkError, ProcessError) as error:
        return Accelerator(TCG, f"{device} opens, but: {error.message}")
    return Accelerator(KVM, "a guest boots with it")
