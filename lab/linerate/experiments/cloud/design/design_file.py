# SPDX-License-Identifier: BSD-3-Clause
"""Designs in TOML: those that come with the lab, by name, and the reader's own.

```toml
note = "what it is for"          # printed with the results
link = "veth"
frameworks = ["c-l2fwd", "xdp-tx"]  # the first is the reference; left out: all that fit the link
kinds = ["container"]            # or "vm"
loads = ["idle", "cpu", "network"]
tenants = [0, 1, 2]
cpu = ["shared", "quota-50"]     # or "own", "quota-25", any "quota-1" to "quota-100"
sizes = [64, 1518]               # bytes with FCS
rates = [50, 90]                 # per cent of each framework's own NDR
blocks = 12
window_s = 1.0
control = true                   # the reference twice (A/A)

[tenant]                         # limits of each
cpu_quota = 0.5                  # of the shared core
memory_mib = 256
disk_mib = 32
io_mib_per_s = 100
pids = 256

[[part]]                         # any number: each crosses its levels, the rest is as above
name = "vm"
kinds = ["vm"]
tenants = [1]
```
Without any `[[part]]` everything is crossed with everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from linerate.experiments.cloud.design.parts import MOST_PARTS, Part, TenantShape
from linerate.forwarders import FORWARDERS
from linerate.forwarders.files import toml
from linerate.host import foreign
from linerate.host.errors import UsageError, look_up
from linerate.links import LINKS, TABLES
from linerate.records.cells import MAX_BLOCKS
from linerate.records.cloud_summary import CpuName
from linerate.records.types import Strict
from linerate.runs.options import MAX_SIZE, MIN_SIZE

_FOLDER = "designs"

_Loads = Annotated[list[Annotated[str, Field(pattern="^(idle|cpu|io|network|mixed)$")]],
                   Field(min_length=1)]  # fmt: skip
_Kinds = Annotated[list[Annotated[str, Field(pattern="^(container|vm)$")]], Field(min_length=1)]
_Tenants = Annotated[list[Annotated[int, Field(strict=True, ge=0, le=64)]], Field(min_length=1)]
_Cpus = Annotated[list[CpuName], Field(min_length=1)]
_Size = Annotated[int, Field(strict=True, ge=MIN_SIZE, le=MAX_SIZE)]
_Sizes = Annotated[list[_Size], Field(min_length=1)]
_Rates = Annotated[
    list[Annotated[float, Field(strict=True, ge=0.001, le=200)]], Field(min_length=1)
]
_Names = Annotated[list[str], Field(min_length=1)]


class _PartFile(Strict):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    frameworks: _Names | None = None
    kinds: _Kinds | None = None
    loads: _Loads | None = None
    tenants: _Tenants | None = None
    cpu: _Cpus | None = None
    sizes: _Sizes | None = None
    rates: _Rates | None = None


class DesignFile(Strict):
    """A design file. `rates` are per cent here, shares everywhere else."""

    note: str = "a design of the reader's own"
    link: str = "veth"
    frameworks: _Names | None = None
    kinds: _Kinds = Field(default_factory=lambda: ["container"])
    loads: _Loads = Field(default_factory=lambda: ["idle", "cpu", "network"])
    tenants: _Tenants = Field(default_factory=lambda: [0, 1, 2])
    cpu: _Cpus = Field(default_factory=lambda: ["shared"])
    sizes: _Sizes = Field(default_factory=lambda: [64, 1518])
    rates: _Rates = Field(default_factory=lambda: [90.0])
    blocks: Annotated[int, Field(strict=True, ge=1, le=MAX_BLOCKS)] = 12
    window_s: Annotated[float, Field(strict=True, ge=0.05, le=600)] = 1.0
    control: Annotated[bool, Field(strict=True)] = True
    tenant: TenantShape = TenantShape()
    part: list[_PartFile] = Field(default_factory=list, max_length=MOST_PARTS)


@dataclass(frozen=True)
class Read:
    """A design that was read. `name`: its name in results; `text`: its source."""

    name: str
    file: DesignFile
    text: str = ""


def names() -> list[str]:
    """Return the names of the designs that come with the lab."""
    files = resources.files("linerate.experiments.cloud.design").joinpath(_FOLDER).iterdir()
    return sorted(each.name.removesuffix(".toml") for each in files if each.name.endswith(".toml"))


def read(design: str) -> Read:
    """Read one of `names`, or a file; raises `UsageError` that names file, line or field."""
    name = design if design in names() else Path(design).stem
    text = text_of(design)
    return Read(name, parse(text, design), text)


def text_of(design: str) -> str:
    """Return the source of a design."""
    if design in names():
        found = resources.files("linerate.experiments.cloud.design").joinpath(
            _FOLDER, f"{design}.toml"
        )
        return found.read_text(encoding="utf-8")
    path = Path(design)
    if "/" not in design and not path.suffix:
        raise UsageError(
            f"--design {design}: no such design", f"a file, or one of: {', '.join(names())}"
        )
    try:
        return foreign.text(path, foreign.MOST_DESIGN)
    except OSError as error:
        raise UsageError(f"--design {design}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--design {design}: not UTF-8 at byte {error.start}") from error


def parse(text: str, name: str) -> DesignFile:
    """Parse a design. `name`: of the file, for errors."""
    data = toml(text, name)
    if not data.keys() - {"note"}:
        raise UsageError(
            f"{name}: the design says nothing but its note" if data else f"{name}: an empty design",
            "all defaults together are a study of hours: name what is to be crossed, for instance "
            "frameworks, loads and tenants; linerate run cloud --print-design prints one to begin "
            "with",
        )
    try:
        found = DesignFile.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{name}: {_complaint(error, data)}") from error
    _each_once(found, name)
    _known(found, name)
    return found


def _complaint(error: ValidationError, data: Mapping[str, Any]) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = ", ".join(_fields(str(first["loc"][0]) if len(first["loc"]) > 1 else None))
        return f"{where}: no such field (there are: {known})"
    given = "" if isinstance(first["input"], dict | list) else f" (it is {first['input']!r})"
    return f"{where}: {first['msg']}{given}"


def _fields(table: str | None) -> list[str]:
    """Return the fields of `[[part]]`, of `[tenant]`, or of the file."""
    if table == "tenant":
        return [each.name for each in fields(TenantShape)]
    return list((_PartFile if table == "part" else DesignFile).model_fields)


def _known(file: DesignFile, name: str) -> None:
    """Check the names in a design; an error names the file and the field, not the option that can
    replace both.
    """
    look_up(LINKS, file.link.partition(TABLES)[0], f"{name}: link", "link")
    named = [("", file.frameworks), *((f"part {p.name}, ", p.frameworks) for p in file.part)]
    for where, frameworks in named:
        for framework in frameworks or ():
            look_up(FORWARDERS, framework, f"{name}: {where}frameworks:", "forwarder")


def _each_once(file: DesignFile, name: str) -> None:
    factors = ("frameworks", "kinds", "loads", "tenants", "cpu", "sizes", "rates")
    for where, each in [("", file), *((f"part {p.name}, ", p) for p in file.part)]:
        for field in factors:
            levels: Sequence[object] = getattr(each, field) or ()
            seen: set[str] = set()
            for level in levels:
                # Results know rates by these words.
                word = f"{level:g}" if isinstance(level, float) else str(level)
                if word in seen:
                    raise UsageError(f"{name}: {where}{field}: {word} is named twice")
                seen.add(word)
    parts = [each.name for each in file.part]
    if repeated := [each for each in parts if parts.count(each) > 1]:
        raise UsageError(f"{name}: part {repeated[0]} is there twice")


def parts_of(file: DesignFile, frameworks: Sequence[str]) -> list[Part]:
    """Return the parts. `frameworks`: those of a part that names none."""
    written = file.part or [_PartFile(name="all")]
    return [
        Part(
            name=each.name,
            frameworks=tuple(each.frameworks or frameworks),
            kinds=tuple(each.kinds or file.kinds),  # type: ignore[arg-type]  # by the pattern
            loads=tuple(each.loads or file.loads),  # type: ignore[arg-type]
            tenants=tuple(each.tenants or file.tenants),
            cpus=tuple(each.cpu or file.cpu),
            sizes=tuple(each.sizes or file.sizes),
            rates=tuple(rate / 100 for rate in each.rates or file.rates),
        )
        for each in written
    ]
