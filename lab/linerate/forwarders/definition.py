# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder as data: the schema `forwarder-1`.

The page docs/describe-a-forwarder.md explains each key. The JSON Schema in
`records/schema/forwarder-1.json` is generated from these classes (a test compares them).
"""

from __future__ import annotations

import difflib
import hashlib
import json
from signal import Signals
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, field_validator, model_validator

from linerate.forwarders.template import Template
from linerate.links import eal
from linerate.links.tables import Tables
from linerate.records.trial import Kind, TxBuffer
from linerate.records.types import Strict

Lcores = Literal["one", "renumbered", "idle-main"]
Configure = Literal["bridge", "route", "detach-xdp"]
Companion = Literal["xdp-pass"]
# The placeholders of a template; `linerate.forwarders.placeholders` has their values.
Placeholder = Literal[
    "program", "eal", "lcores", "prefix", "ports", "portmask", "port", "peer", "queues", "topology",
    "parse_ptype", "table_ipv4", "table_ipv6", "filter_ipv4", "rules_ipv4", "frames", "rx", "tx",
    "socket",
]  # fmt: skip
PLACEHOLDERS: tuple[Placeholder, ...] = get_args(Placeholder)
_OF_ROUTING = {"table_ipv4", "table_ipv6", "filter_ipv4", "rules_ipv4"}
# Placeholders of commands that run before there is a program.
_OF_LINKS: tuple[Placeholder, ...] = ("ports", "portmask", "port", "peer", "rx", "tx", "socket")
# The most CPUs of a program.
MAX_CPUS = 64
# The default time for a program's start.
START_TIMEOUT_S = 10.0


class CExampleBuild(Strict):
    """One of DPDK's C examples, from the distribution's package."""

    recipe: Literal["c-example"]
    example: str
    compiler: Literal["cc", "clang"] = Field(
        default="cc", description="cc: $CC, or the system's compiler"
    )
    march: Literal["dpdk", "native"] = Field(
        default="dpdk", description="dpdk: the -march of the distribution's DPDK"
    )
    include: str | None = Field(
        default=None, description="a header in bench/examples that is included before each source"
    )
    sources: list[str] = Field(
        default_factory=list,
        description="C files in bench/examples that are compiled with the example's",
    )
    changes: str | None = Field(
        default=None, description="the effect of header and sources, in words, for the records"
    )


class RustBuild(Strict):
    """A program of this project's Rust workspace, built by `make build`."""

    recipe: Literal["rust"]
    binary: str


class BenchBuild(Strict):
    """A program that the Makefile of a folder in `bench` builds."""

    recipe: Literal["bench"]
    folder: str = Field(description="folder below bench")
    product: str = Field(description="the program that make builds there")


class InstalledProgram(Strict):
    """A program installed by a package of the distribution."""

    recipe: Literal["installed"]
    program: str = Field(description="its name in PATH")
    package: str = Field(description="the Debian package, for the message if it is missing")


Build = Annotated[
    CExampleBuild | RustBuild | BenchBuild | InstalledProgram, Field(discriminator="recipe")
]


class Ports(Strict):
    """Requirements on the forwarder's ports."""

    number: Literal["any", "even", 1, 2] = Field(default="any", description="the number of ports")
    on: Literal["any", "interfaces", "made-interfaces"] = Field(
        default="any",
        description="interfaces: network interfaces only; made-interfaces: only those that the lab "
        "makes, in namespaces of its own",
    )
    driver: str | None = Field(
        default=None, description="the driver of --vdev on each interface, instead of net_af_packet"
    )

    @model_validator(mode="after")
    def _check(self) -> Ports:
        if self.driver and self.on == "any":
            raise ValueError("driver is only for ports on interfaces")
        return self


class Routing(Strict):
    """How the program routes; without this table it forwards without looking at addresses."""

    lookup: Literal["lpm", "em", "acl"] = Field(description="the form of its rule files")
    holds: list[Literal["routes", "routes-and-rules"]] = Field(
        default_factory=list, description="the tables of experiment l3fwd that it can hold"
    )
    needs_addresses: bool = Field(
        default=False, description="refuse links whose ports make frames without IP addresses"
    )

    def takes(self, tables: Tables) -> bool:
        """Return True if it can forward by these tables."""
        return ("routes-and-rules" if tables.rules else "routes") in self.holds


class TelemetryReady(Strict):
    """The program is ready when its telemetry answers."""

    by: Literal["telemetry"] = "telemetry"
    within_s: Annotated[float, Field(gt=0)] = START_TIMEOUT_S


class OutputReady(Strict):
    """The program is ready when it has printed a given text, on standard output or standard
    error.
    """

    by: Literal["output"]
    text: str = Field(min_length=1)
    within_s: Annotated[float, Field(gt=0)] = START_TIMEOUT_S


class InterfaceReady(Strict):
    """The program is ready when a network interface exists in the program's namespace."""

    by: Literal["interface"]
    interface: str = Field(min_length=1)
    within_s: Annotated[float, Field(gt=0)] = START_TIMEOUT_S


class ForwardingReady(Strict):
    """The program is ready when it forwards the frames sent to it."""

    by: Literal["forwarding"]
    within_s: Annotated[float, Field(gt=0)] = START_TIMEOUT_S


Ready = Annotated[
    TelemetryReady | OutputReady | InterfaceReady | ForwardingReady, Field(discriminator="by")
]


class Stop(Strict):
    """How to ask the program to end. Processes that have not ended in time get SIGTERM, then
    SIGKILL.
    """

    signal: Literal["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"] = "SIGINT"
    within_s: Annotated[float, Field(gt=0)] = 3.0

    @property
    def ending(self) -> tuple[Signals, float]:
        return Signals[self.signal], self.within_s


class Definition(Strict):
    """A forwarder: how to build, start and read it."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, populate_by_name=True)

    schema_id: Literal["linerate/forwarder-1"] = Field(
        default="linerate/forwarder-1", alias="schema"
    )
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="its name for --forwarders and in reports",
    )
    description: str = ""
    language: str = Field(default="unknown", description="its programming language, for reports")
    kind: Kind
    build: Build | None = Field(
        default=None, description="absent: the command begins with the program"
    )
    command: str | None = Field(
        default=None,
        description="the command line, with placeholders; absent: the kernel forwards, as "
        "`configure` sets it up",
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="environment variables, with placeholders in their values"
    )
    directory: str | None = Field(
        default=None,
        description="working directory of the program, below the definition's file; absent: a "
        "new one",
    )
    network: Literal["lab", "own"] = Field(
        default="lab",
        description="the network namespace of the program, unless the link's interfaces are "
        "in one; lab: that of the lab; own: a new one for each start, for "
        "programs that make interfaces themselves",
    )
    setup: list[str] = Field(
        default_factory=list,
        description="commands that run before the program starts, in its network namespace",
    )
    teardown: list[str] = Field(
        default_factory=list,
        description="commands that run after it has ended, even if one of setup failed",
    )
    ready: Ready = Field(
        default_factory=TelemetryReady, description="how the program shows that it is ready"
    )
    stop: Stop = Field(default_factory=Stop)
    counted: Literal["telemetry", "link"] = Field(
        default="telemetry",
        description="the counters of its packets; telemetry: /ethdev/stats of its ports; "
        "link: those of its network interfaces, which the lab made",
    )
    stdin: Literal["empty", "open"] = Field(
        default="empty",
        description="open: for programs that end when their standard input ends",
    )
    lcores: Lcores = Field(
        default="one",
        description="its lcores, one on each of the forwarder's CPUs; one: with the CPU's "
        "number; renumbered: with the numbers 0, 1, ...; idle-main: the same, and "
        "a main lcore on the first CPU: for programs whose main lcore never "
        "forwards",
    )
    cpus: Annotated[int, Field(ge=1, le=MAX_CPUS)] = Field(
        default=1, description="the number of CPUs that it works on"
    )
    memory_mib: Annotated[int, Field(gt=0)] = Field(
        default=eal.MEMORY_MIB, description="the most memory, without huge pages"
    )
    ports: Ports = Field(default_factory=Ports)
    routing: Routing | None = None
    ip: tuple[Literal[4, 6], ...] = Field(
        default=(4, 6), description="the versions of IP whose frames it forwards"
    )
    configure: Configure | None = Field(
        default=None,
        description="settings of the kernel while it runs; bridge, route: between its two "
        "ports; detach-xdp: removes XDP programs from its interfaces at the end",
    )
    companion: Companion | None = Field(
        default=None,
        description="xdp-pass: an XDP program at the generator's end that passes everything",
    )
    polls: Literal["probe", "program", "nothing"] = Field(
        default="probe",
        description="the counter of polls; probe: the lab's plugin, for programs on DPDK; "
        "program: it answers /linerate/polling",
    )
    spans: Literal["probe", "program", "nothing"] = Field(
        default="probe",
        description="the source of the times that frames are inside; program: it answers "
        "/linerate/latency, and accepts --spans N",
    )
    tx_buffer: TxBuffer | None = Field(
        default=None,
        description="the buffer in which it collects frames before it sends them, if it does",
    )

    @field_validator("command")
    @classmethod
    def _check_command(cls, text: str | None) -> str | None:
        if text is not None:
            template = Template(text)
            if not template.words:
                raise ValueError("is empty")
            check_placeholders(template.placeholders)
        return text

    @field_validator("setup", "teardown")
    @classmethod
    def _check_commands(cls, commands: list[str]) -> list[str]:
        for text in commands:
            template = Template(text)
            if not template.words:
                raise ValueError("a command is empty")
            check_placeholders(template.placeholders, _OF_LINKS)
        return commands

    @field_validator("environment")
    @classmethod
    def _check_environment(cls, variables: dict[str, str]) -> dict[str, str]:
        for name, value in variables.items():
            if not name or "=" in name or "\0" in name:
                raise ValueError(f"{name!r} is not a valid variable name")
            check_placeholders(Template.of_word(value).placeholders)
        return variables

    @model_validator(mode="after")
    def _check(self) -> Definition:
        if self.command is None:
            if self.configure not in ("bridge", "route") and not self.setup:
                raise ValueError('needs command or setup, or configure = "bridge" or "route"')
            if self.build:
                raise ValueError("build is only for a definition with a command")
            if self.counted != "link":
                raise ValueError('without command it needs counted = "link"')
        elif (self.build is not None) != ("{program}" in self.command):
            raise ValueError("command must have {program} if there is build, and only then")
        if self.counted == "link" and self.ports.on != "made-interfaces":
            raise ValueError('counted = "link" needs ports.on = "made-interfaces"')
        used = set(Template(self.command or "").placeholders)
        for value in self.environment.values():
            used |= set(Template.of_word(value).placeholders)
        if not self.routing and (lacking := sorted(used & _OF_ROUTING)):
            raise ValueError(f"{{{lacking[0]}}} needs the table routing")
        return self

    @property
    def uses_dpdk(self) -> bool:
        return self.kind.startswith("dpdk")

    @property
    def probed(self) -> bool:
        """True if the lab's plugin can measure it."""
        return self.uses_dpdk and "probe" in (self.polls, self.spans)

    @property
    def has_telemetry(self) -> bool:
        """True if the lab reads anything from its telemetry."""
        return self.counted == "telemetry" or self.ready.by == "telemetry"

    def as_data(self) -> dict[str, Any]:
        """Return the definition without default values, for JSON."""
        found = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {"schema": self.schema_id, **found}

    @property
    def digest(self) -> str:
        """The SHA-256 of its canonical JSON: sorted keys, no spaces, no defaults, no
        description.
        """
        data = self.as_data()
        data.pop("description", None)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def check_placeholders(
    names: tuple[str, ...], known: tuple[Placeholder, ...] = PLACEHOLDERS
) -> None:
    """Raise `ValueError` for an unknown placeholder."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown placeholder {{{name}}}{alternatives(name, known)}")


def alternatives(word: str, known: tuple[str, ...]) -> str:
    """List the known words, for the message about an unknown one."""
    near = difflib.get_close_matches(word, known, 1)
    return f" (known: {', '.join(known)})" + (f'; did you mean "{near[0]}"?' if near else "")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a definition."""
    document = Definition.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}
