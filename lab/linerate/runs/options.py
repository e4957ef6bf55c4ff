# SPDX-License-Identifier: BSD-3-Clause
"""What the command line can ask of every experiment. Kept in run.json: how a run goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import ConfigDict, Field


@dataclass(kw_only=True)
class Options:
    """None or empty: the preset's or the experiment's own. `line_rate`: frames/s that are 100 %."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    links: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    forwarders: list[str] = field(default_factory=list)
    blocks: int | None = None
    seed: int = 1
    line_rate: Annotated[float, Field(gt=0)] | None = None
    hugepages: str = "auto"
    keep_going: bool = False
    generator_ports: list[str] = field(default_factory=list)
    forwarder_ports: list[str] = field(default_factory=list)
