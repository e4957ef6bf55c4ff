# SPDX-License-Identifier: BSD-3-Clause
"""The types of the fields of records and summaries."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, field_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

# Counters have 64 bits; a greater value was not counted, and cannot be computed with.
Count = Annotated[int, Field(ge=0, lt=2**63)]
Difference = Annotated[int, Field(gt=-(2**63), lt=2**63)]
Seconds = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]
# Keys are quantiles, such as 0.99.
Quantiles = dict[Annotated[str, Field(pattern=r"^(0(\.[0-9]+)?|1)$")], float]

Verdict = Literal["faster", "slower", "equal", "undecided", "invalid"]
# The limiter of a forwarder other than itself, and the limited side of a comparison.
Limiter = Literal["generator", "link", "line rate"]
Limited = Literal["arm", "baseline", "both"]
# The evidence for a lower bound.
BoundKind = Literal["disturbed", "trials"]
# The answer to a question about the cells of one arm.
Answer = Literal["yes", "no", "untold"]
# The share of the ceiling up to which a load is low.
LOW_LOAD = 0.25
# Additions to a frame with its FCS: preamble 7, start delimiter 1, gap 12
# (docs/how-it-measures.md#frame-sizes-and-rates).
LAYER_1_BYTES = 20


class Strict(BaseModel):
    """A model that refuses unknown fields, and numbers that are infinite or NaN."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class GivenProgram(Strict):
    """A program that the command line names."""

    given: str = Field(description="as on the command line")
    name: str
    definition: dict[str, Any] = Field(description="the definition, by the schema forwarder-1")
    sha256: str = Field(description="digest of the definition")


class Tagged(Strict):
    """One of several classes with a common base; the value of `kind` says which.

    The base (`Outcome`, `TrialCell`) is a direct subclass and has an empty `known`. A class below
    it gives `kind` a default of its own. Defining a class also registers it, in other packages as
    well.
    """

    known: ClassVar[dict[str, type[Tagged]]]

    kind: str

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "kind" in cls.__annotations__ and cls.own_kind():
            cls.known[cls.own_kind()] = cls

    @classmethod
    def own_kind(cls) -> str:
        """Return the value of `kind`; "" for a base."""
        default = cls.model_fields["kind"].default
        return default if isinstance(default, str) else ""

    @classmethod
    def read(cls, value: object) -> object:
        """Convert JSON to an object of the right class, as the validator of a field with this base.

        Raises `ValueError` for a kind that no class has; the module with the class may not have
        been imported yet (an experiment is imported when a run of it is read).
        """
        if not isinstance(value, dict):
            return value
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in cls.known:
            raise ValueError(f"kind {kind!r} is unknown (known: {', '.join(sorted(cls.known))})")
        return cls.known[kind].model_validate(value)

    @field_validator("kind")
    @classmethod
    def _right_kind(cls, kind: str) -> str:
        if cls.own_kind() and kind != cls.own_kind():
            raise ValueError(f"{kind!r} is not {cls.own_kind()!r}")
        return kind

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        """Return a base's schema: any of this package's classes that are known at this moment."""
        if cls.own_kind():
            return handler(core)
        known = (cls.known[kind] for kind in sorted(cls.known))
        return {"oneOf": [_schema_of(each, handler) for each in known if _is_ours(each)]}


def _is_ours(of: type[Tagged]) -> bool:
    return of.__module__.partition(".")[0] == __name__.partition(".")[0]


def _schema_of(of: type[Tagged], handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    """Return one class's schema, with the only value that its `kind` has."""
    found = handler(of.__pydantic_core_schema__)
    told = handler.resolve_ref_schema(found)
    told["properties"]["kind"] = {"const": of.own_kind(), "type": "string"}
    told["required"] = ["kind", *(name for name in told.get("required", ()) if name != "kind")]
    return found
