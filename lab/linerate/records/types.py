# SPDX-License-Identifier: BSD-3-Clause
"""What the fields of records and summaries are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# Counters have 64 bits; what is greater was not counted, and cannot be computed with.
Count = Annotated[int, Field(ge=0, lt=2**63)]
Difference = Annotated[int, Field(gt=-(2**63), lt=2**63)]
Seconds = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]
# By quantile, such as 0.99.
Quantiles = dict[Annotated[str, Field(pattern=r"^(0(\.[0-9]+)?|1)$")], float]

Verdict = Literal["faster", "slower", "equal", "undecided", "invalid"]
# What limits a forwarder when it is not the forwarder itself, and whom of a comparison.
Limiter = Literal["generator", "link", "line rate"]
Limited = Literal["arm", "baseline", "both"]
# To a question about the cells of one arm.
Answer = Literal["yes", "no", "untold"]
# Share of the ceiling up to which a load is low.
LOW_LOAD = 0.25


class Strict(BaseModel):
    """What is not named is an error, and so is what is no number."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
