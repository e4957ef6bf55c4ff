# SPDX-License-Identifier: BSD-3-Clause
"""Combine a design with the command line's options for a run on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.cloud.design.design_file import (
    DesignFile,
    Read,
    parts_of,
)
from linerate.experiments.cloud.design.plan import Room, held
from linerate.experiments.cloud.options import Options
from linerate.experiments.paths.available import available
from linerate.host.cores.cpus import Cores
from linerate.host.errors import MachineError, UsageError
from linerate.host.host import LOCAL
from linerate.links import link
from linerate.runs.options import Preset, check_sizes
from linerate.runs.plans.blocks import check_fit


def options_of(
    read: Read,
    *,
    on: str | None = None,
    forwarders: Sequence[str] = (),
    sizes: Sequence[int] = (),
    blocks: int | None = None,
    seed: int = 1,
    minutes: float | None = None,
    line_rate: float | None = None,
    hugepages: str = "auto",
    keep_going: bool = False,
) -> Options:
    """Return the options. `on`: the link; `forwarders` and `sizes` replace the design's, in all
    parts.

    `line_rate`: the assumed capacity of each framework alone, in frames per second.
    """
    file = _replaced(read.file, forwarders, sizes)
    name = on or file.link
    found = link(name)
    if not found.has_generator:
        given = f"--link {name}" if on else f"--design {read.name}: link {name}"
        raise UsageError(
            f"{given}: its ports make their own frames, so that nothing can be offered at a rate",
            "--link veth, which every forwarder fits",
        )
    frameworks = list(file.frameworks or [])
    left_out: list[str] = []
    if not frameworks:
        frameworks, left_out = available([name])
    cores = Cores.choose()
    room = Room.of(cores, sorted(LOCAL.cpus()))
    asked_for = parts_of(file, frameworks)
    if not forwarders:
        for part in asked_for:
            check_fit(part.frameworks, [found], f"--design {read.name}: frameworks:")
    parts, not_held = held(asked_for, room)
    if not parts:
        raise MachineError(
            f"{read.name}: this machine supports none of the cells: {not_held[0].reason}",
            "--design quick",
        )
    return Options(
        preset=Preset(read.name, file.blocks, file.window_s, 0, 0, file.note),
        links=[name],
        sizes=list(sizes),
        forwarders=list(forwarders),
        blocks=blocks,
        seed=seed,
        minutes=minutes,
        line_rate=line_rate,
        hugepages=hugepages,
        keep_going=keep_going,
        parts=parts,
        tenant=file.tenant,
        control=file.control,
        left_out=left_out,
        not_held=not_held,
    )


def _replaced(file: DesignFile, forwarders: Sequence[str], sizes: Sequence[int]) -> DesignFile:
    check_sizes(sizes)
    levels = {
        **({"frameworks": list(forwarders)} if forwarders else {}),
        **({"sizes": list(sizes)} if sizes else {}),
    }
    nothing = dict.fromkeys(levels)
    parts = [part.model_copy(update=nothing) for part in file.part]
    changed = file.model_copy(update={**levels, "part": parts})
    return DesignFile.model_validate(changed.model_dump())
