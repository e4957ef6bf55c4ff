# SPDX-License-Identifier: BSD-3-Clause
"""What the fields of a record are: `records` and the parts of it that have modules of their own."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# Counters have 64 bits; what is greater was not counted, and cannot be computed with.
Count = Annotated[int, Field(ge=0, lt=2**63)]
Difference = Annotated[int, Field(gt=-(2**63), lt=2**63)]
Seconds = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]
# By quantile, such as 0.99.
Quantiles = dict[Annotated[str, Field(pattern=r"^(0(\.[0-9]+)?|1)$")], float]


class Strict(BaseModel):
    """What is not named is an error, and so is what is no number."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
