# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder: its definition, and the command that starts it at its end of a link.

Usually a program serves DPDK's telemetry protocol, with /ethdev/stats and /ethdev/link_status for
its ports 0, 1, ..., in `dpdk/PREFIX` below the run directory. Without a program, the kernel
forwards as it is `configured`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from linerate.forwarders import recipes
from linerate.forwarders.containers import engine_of
from linerate.forwarders.definition import Definition, Ready
from linerate.forwarders.placeholders import Place
from linerate.forwarders.recipes import Built
from linerate.forwarders.surroundings import (
    COMPANIONS,
    CONFIGURE,
    between,
    companion_program,
    in_own_network,
    on_interfaces,
    two_ports,
)
from linerate.forwarders.template import Template
from linerate.host import netns
from linerate.host.builds import elf
from linerate.host.cores.cpus import Cores
from linerate.host.errors import UsageError
from linerate.host.process import Command
from linerate.links import Link, Wire
from linerate.links.eal import Memory
from linerate.links.tables import Tables
from linerate.records.trial import Kind, Program, TxBuffer

# These ports send the content of their buffers, unless they are given frames.
_MAKERS = ("net_null", "net_nearfree")
_FRAMES = "frames="


class Forwarder:
    """A program (or the kernel) that forwards frames; stateless except for the result of
    `prepare`.
    """

    def __init__(
        self, definition: Definition, file: Path | None = None, executable: Path | None = None
    ) -> None:
        """Make a forwarder from its definition.

        `file`: the definition's file; relative paths in it start at its folder. None: the lab's.
        `executable`: replaces the program that the definition names or builds.
        """
        self.definition = definition
        self.file = file
        self._executable = executable
        self._built: Built | None = None
        self._digest = definition.digest

    # -- what it is ----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def language(self) -> str:
        return self.definition.language

    @property
    def kind(self) -> Kind:
        return self.definition.kind

    @property
    def tx_buffer(self) -> TxBuffer | None:
        """How it collects packets before it sends them, or None."""
        return self.definition.tx_buffer

    @property
    def ips(self) -> tuple[Literal[4, 6], ...]:
        """IP versions that it forwards."""
        return self.definition.ip

    @property
    def interfaces_only(self) -> bool:
        """True if it forwards between network interfaces only."""
        return self.definition.ports.on != "any"

    @property
    def routes(self) -> bool:
        """True if it looks up IP addresses in tables of its own."""
        return self.definition.routing is not None

    @property
    def polling(self) -> str | None:
        """The telemetry command that returns its poll counters when started `probed`.

        None if nothing counts them.
        """
        return self._command_of("polling", self.definition.polls)

    @property
    def spans(self) -> str | None:
        """The command that returns how long frames are inside it, after `measuring_spans`.

        None if it cannot measure that.
        """
        return self._command_of("latency", self.definition.spans)

    def _command_of(self, figures: str, by: str) -> str | None:
        definition = self.definition
        if by == "program" and definition.has_telemetry:
            return f"/linerate/{figures}"
        return f"/linerate/probe/{figures}" if by == "probe" and definition.probed else None

    @property
    def ready(self) -> Ready:
        """How its program shows that it is ready."""
        return self.definition.ready

    @property
    def has_telemetry(self) -> bool:
        """True if its program serves telemetry."""
        return self.definition.has_telemetry

    @property
    def counted_by_link(self) -> bool:
        """True if its packets are counted by the interfaces of the link, not by its program."""
        return self.definition.counted == "link"

    def holds(self, tables: Tables) -> bool:
        """Return True if it can forward by these tables."""
        routing = self.definition.routing
        return routing is not None and routing.takes(tables)

    def misfit(self, link: Link) -> str | None:
        """Return why it does not work on this link; None if it works."""
        must_be = self._ports_must_be(link)
        return must_be and f"it does not work on link {link.name} (its ports must be {must_be})"

    def plugin_misfit(self, link: Link) -> tuple[str, str] | None:
        """Return why its program cannot load the link's driver, and what helps; None if it can, or
        if that is not known (a script). Both must be prepared.
        """
        plugin, path = link.plugin(), self.program()
        if plugin is None or path is None:
            return None
        try:
            static, loaded = elf.holds_eal(path), elf.loaded_eal(path)
            needed = elf.needed_eal(plugin)
        except (OSError, elf.UnreadableError):
            return None
        if static:
            return (
                "DPDK is linked into it statically, so that it cannot load the driver of "
                f"--link {link.name}, which is a plugin",
                "--link null2, whose driver is DPDK's own; or link it against DPDK's shared "
                "libraries (pkg-config --libs libdpdk, without --static)",
            )
        if loaded and needed and not loaded.startswith(needed):
            return (
                f"it is loaded with {loaded}, and the driver of --link {link.name} was built for "
                f"{needed}, another release of DPDK",
                "--link null2, whose driver is DPDK's own",
            )
        return None

    @property
    def takes_probe(self) -> bool:
        """True if its program, which must be prepared, can load the probe. Also True for a
        script, even if the program that it starts cannot.
        """
        definition, path = self.definition, self.program()
        if path is None or not definition.uses_dpdk or definition.polls != "probe":
            return False
        # The plugin's path does not exist in a container.
        if engine_of(definition):
            return False
        try:
            return not elf.holds_eal(path)
        except OSError:
            return False

    def _ports_must_be(self, link: Link) -> str | None:
        """Return the requirement on its ports that this link does not meet, or None."""
        if link.tables and not self.holds(link.tables):
            return "of a program that has such tables"
        ports = self.definition.ports
        if ports.number == "even" and link.ports % 2:
            return "even in number"
        if isinstance(ports.number, int) and ports.number != link.ports:
            return f"{ports.number} in number"
        if self.interfaces_only and not link.interfaces:
            return "network interfaces"
        if ports.on == "made-interfaces" and not link.makes_interfaces:
            return "network interfaces that the lab makes"
        return None

    def described(self) -> Program:
        """Return the description of it in a trial's record, so that no report has to know the
        program.
        """
        return Program(
            language=self.language,
            kind=self.kind,
            tx_buffer=self.tx_buffer,
            definition=self._digest,
        )

    # -- the program ---------------------------------------------------------------------------

    def prepare(self) -> None:
        """Find or build the program; raises `MissingError` with the command that helps."""
        recipes.check_commands(self.definition, self._folder)
        if self.definition.network == "own":
            netns.prepare(otherwise=f'or take network = "own" out of the definition of {self.name}')
        if self.definition.companion:
            companion_program()
        if self.definition.command is None:
            netns.prepare()
        elif self._executable:
            self._built = Built(self._executable)
        else:
            self._built = recipes.build(self.definition, self._folder)

    @property
    def _folder(self) -> Path:
        return self.file.parent if self.file else Path.cwd()

    def program(self) -> Path | None:
        """Return the executable, and prepare it if necessary; None if the kernel forwards alone."""
        if self.definition.command is None:
            return None
        if self._built is None:
            self.prepare()
        assert self._built is not None
        return self._built.program

    @property
    def prepared_program(self) -> Path | None:
        """The executable, if it was prepared."""
        return self._built.program if self._built else None

    def build_facts(self) -> dict[str, str]:
        """Return compiler, version and flags of the lab's own build; after `prepare`."""
        return dict(self._built.facts) if self._built else {}

    # -- at its end of a link ------------------------------------------------------------------

    def command(
        self, cores: Cores, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command | None:
        """Return the command that starts it at the forwarder's end of the wire, after `prepare`.

        `probed`: with poll counters. None if there is no program to start. Raises `UsageError` if
        it does not work on the link, `MachineError` for too few CPUs.
        """
        definition = self.definition
        if definition.command is None:
            if definition.configure:
                two_ports(self.name, wire)
            return None
        if driver := definition.ports.driver:
            wire = on_interfaces(self.name, driver, wire)
        self._check_addresses(wire)
        program = self.program()
        assert program is not None
        probed = probed and definition.probed
        cpus = cores.lcores(definition.cpus, generator=bool(wire.locations))
        place = Place(definition, wire, program, cpus, memory, prefix, probed)
        argv = Template(definition.command).expand(place.values)
        if definition.build is None:
            argv[0] = str(program)
        environment = {
            name: filled
            for name, value in definition.environment.items()
            for filled in Template.of_word(value).expand(place.values)
        }
        if probed:
            environment |= {"LINERATE_PROBE_ONE_IN": "0", "LINERATE_PROBE_REQUIRED": "1"}
        return Command(
            "forwarder",
            tuple(argv),
            cpus,
            environment,
            hold_stdin=definition.stdin == "open",
            directory=self._folder / definition.directory if definition.directory else None,
            ending=definition.stop.ending,
        )

    def _check_addresses(self, wire: Wire) -> None:
        routing = self.definition.routing
        if not (routing and routing.needs_addresses):
            return
        if any(vdev.startswith(_MAKERS) and _FRAMES not in vdev for vdev in wire.vdevs):
            raise UsageError(
                f"--forwarders {self.name}: frames of this link have no addresses to route by",
                "--link memif, memif2, nearfree1-ip or nearfree2-ip",
            )

    def measuring_spans(self, command: Command, one_in: int) -> Command:
        """Return a `probed` command that measures how long frames are inside, in one of `one_in`
        bursts.
        """
        if self.definition.spans == "program":
            return replace(command, argv=(*command.argv, "--spans", str(one_in)))
        environment = {**command.environment, "LINERATE_PROBE_ONE_IN": str(one_in)}
        return replace(command, environment=environment)

    @contextmanager
    def configured(self, wire: Wire) -> Iterator[None]:
        """Configure the kernel at its end of the wire, and undo that when the context ends.

        Raises `UsageError` if it does not work on the link, `LinkError` if it cannot be set.
        """
        definition = self.definition
        setup, teardown = (
            [Template(text).expand(Place(definition, wire).values) for text in commands]
            for commands in (definition.setup, definition.teardown)
        )
        with ExitStack() as stack:
            if definition.configure:
                stack.enter_context(CONFIGURE[definition.configure](self.name, wire))
            stack.enter_context(between(setup, teardown, wire.host, self._folder))
            yield

    @contextmanager
    def networked(self, wire: Wire, word: str) -> Iterator[Wire]:
        """Move its end of the wire into a network namespace, if the definition asks for one and the
        link has none; `word` names the namespace, and differs for each start. Raises `UsageError`,
        `LinkError`.
        """
        if self.definition.network == "lab" or wire.host.namespace:
            yield wire
            return
        with in_own_network(self.name, wire, word) as own:
            yield own

    def companion(self, cpu: int, prefix: str, wire: Wire) -> Command | None:
        """Return the program that must run beside it on this CPU, or None. It serves telemetry when
        it works.
        """
        wanted = self.definition.companion
        return COMPANIONS[wanted](self.name, cpu, prefix, wire) if wanted else None
