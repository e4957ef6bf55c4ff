# SPDX-License-Identifier: BSD-3-Clause
"""`linerate doctor`: shows what this machine can do, and the command that adds what is missing.

Probes, not version checks: each finding opens, runs or reads the thing itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from rich.console import Console

from linerate.experiments.instructions.callgrind import VALGRIND
from linerate.host import machine
from linerate.host.builds.c_examples import example_source
from linerate.host.cores import weight
from linerate.host.cores.cpus import isolated, siblings
from linerate.host.cores.leases import described, holders
from linerate.host.errors import MachineError
from linerate.host.host import LOCAL
from linerate.host.leftovers import inventory, xdp_programs
from linerate.host.machine import first_line, text_of
from linerate.host.places import project_root
from linerate.host.text import printable

State = Literal["ok", "warn", "missing"]
APT = "sudo apt-get install --no-install-recommends"


@dataclass(frozen=True)
class Finding:
    """The result of one probe. `needed`: the demo cannot run without it."""

    area: str
    name: str
    state: State
    detail: str
    meaning: str
    mend: str | None = None
    needed: bool = False


def _present(
    area: str, name: str, found: object, meaning: str, mend: str, *, needed: bool
) -> Finding:
    if found:
        return Finding(area, name, "ok", str(found), meaning, None, needed)
    state: State = "missing" if needed else "warn"
    return Finding(area, name, state, "not found", meaning, mend, needed)


def _dpdk() -> Iterable[Finding]:
    yield _present(
        "dpdk",
        "libraries",
        machine.dpdk_version(),
        "headers and libraries to build against",
        f"{APT} libdpdk-dev pkg-config",
        needed=True,
    )
    yield _present(
        "dpdk",
        "C examples",
        example_source("l2fwd"),
        "source of the C l2fwd, the baseline",
        f"{APT} dpdk-doc",
        needed=True,
    )
    yield _present(
        "dpdk",
        "testpmd",
        LOCAL.which("dpdk-testpmd"),
        "a reference peer of the self-test",
        f"{APT} dpdk",
        needed=True,
    )
    for name, meaning in (("null", "the null link"), ("memif", "the memif link")):
        library = _driver(name)
        yield _present(
            "dpdk", f"{name} driver", library, meaning, f"{APT} dpdk libdpdk-dev", needed=True
        )


def _driver(name: str) -> Path | None:
    """Return the path of a driver's shared library, from the dynamic loader or pkg-config."""
    places = [Path("/usr/lib"), Path("/usr/local/lib")]
    found = first_line("pkg-config", "--variable=libdir", "libdpdk")
    if found:
        places.insert(0, Path(found))
    for place in places:
        for pattern in (f"librte_net_{name}.so*", f"*/librte_net_{name}.so*"):
            for match in LOCAL.glob(place, pattern):
                return match
    return None


def _build_tools() -> Iterable[Finding]:
    for tool, package, meaning in (
        ("cc", "gcc", "builds the C l2fwd"),
        ("make", "make", "builds the C l2fwd"),
        ("pkg-config", "pkg-config", "finds DPDK"),
        ("cargo", "cargo-web rustc-web", "builds the Rust programs"),
    ):
        version = first_line(tool, "--version")
        yield _present("build", tool, version, meaning, f"{APT} {package}", needed=True)
    libclang = LOCAL.glob("/usr/lib", "llvm-*/lib/libclang*.so*")
    libclang += LOCAL.glob("/usr/lib", "*/libclang*.so*")
    yield _present(
        "build",
        "libclang",
        libclang[0] if libclang else None,
        "reads DPDK's headers when the Rust crates are built",
        f"{APT} libclang-dev",
        needed=False,
    )
    yield _present(
        "build",
        "valgrind",
        LOCAL.which(VALGRIND),
        "counts instructions: linerate instructions, duel --explain. Not for the demo",
        f"{APT} valgrind",
        needed=False,
    )
    for program in ("l2fwd", "reflect", "generator"):
        path = project_root() / "target" / "release" / program
        yield _present(
            "build",
            program,
            path if path.is_file() else None,
            "a program of this project",
            "make build",
            needed=True,
        )


def _python() -> Iterable[Finding]:
    for name in (
        "snappi",
        "scipy",
        "pydantic",
        "altair",
        "vl-convert-python",
        "jinja2",
        "MLRsearch",
    ):
        version: str | None
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = None
        yield _present("python", name, version, "the lab needs it", "make setup", needed=True)
    for name, meaning in (
        ("statsmodels", "further statistics (not used by this release's experiments)"),
    ):
        try:
            detail = metadata.version(name)
        except metadata.PackageNotFoundError:
            detail = "not installed, not needed yet"
        yield Finding("python", name, "ok", detail, meaning)


def _memory() -> Iterable[Finding]:
    free = machine.hugepage_memory_mib()
    pools = ", ".join(f"{p.free} of {p.total} x {p.size_kib} KiB free" for p in machine.hugepages())
    yield Finding(
        "memory",
        "hugepages",
        "ok" if free >= 1024 else "warn",
        pools or "not supported here",
        "used when 1 GiB is free; without them everything runs, slower",
        None if free >= 1024 else "sudo sysctl vm.nr_hugepages=640",
    )
    nodes = machine.numa_nodes()
    yield Finding(
        "memory",
        "NUMA",
        "ok",
        f"{nodes} node{'s' if nodes > 1 else ''}",
        "one node: no memory is far" if nodes == 1 else "keep both CPUs of a run on one node",
    )


def _cpus() -> Iterable[Finding]:
    allowed = sorted(LOCAL.cpus())
    enough = len(allowed) >= 2
    yield Finding(
        "cpu",
        "CPUs",
        "ok" if enough else "missing",
        ",".join(map(str, allowed)),
        "one for the forwarder, one for generator and lab",
        None if enough else "give the machine, container or cpuset a second CPU",
        needed=True,
    )
    yield _leases(allowed)
    shared = enough and all(cpu in siblings(allowed[-1]) for cpu in allowed)
    if shared:
        yield Finding(
            "cpu",
            "hyperthreads",
            "warn",
            "the allowed CPUs share one core",
            "generator and forwarder slow each other down",
            "allow CPUs of two cores",
        )
    quiet = sorted(isolated())
    yield Finding(
        "cpu",
        "isolation",
        "ok" if quiet else "warn",
        ",".join(map(str, quiet)) or "no CPU is isolated",
        "an isolated forwarder CPU has less noise; without, more blocks are needed",
        None if quiet else f"boot with isolcpus={allowed[-1]} nohz_full={allowed[-1]}",
    )
    governor = text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    steady = governor in (None, "performance")
    yield Finding(
        "cpu",
        "frequency governor",
        "ok" if steady else "warn",
        governor or "not visible (the host decides)",
        "a changing frequency is noise",
        None if steady else "sudo cpupower frequency-set -g performance",
    )
    yield _turbo()
    yield _tsc()
    why = weight.obstacle()
    yield Finding(
        "cpu",
        "weight",
        "warn" if why else "ok",
        why or f"a run can have {weight.WEIGHT} times that of others",
        "beside a busy program a generator at its weight has its CPU for half of the time, and "
        "nearly all frames are sent late",
        "sudo" if why and os.geteuid() != 0 else None,
    )


def _leases(allowed: list[int]) -> Finding:
    """List the CPUs that other labs use now."""
    meaning = "a run uses other CPUs, or waits until enough are free"
    try:
        found = holders({each for cpu in allowed for each in siblings(cpu)})
    except MachineError as error:
        return Finding("cpu", "leases", "warn", error.message, meaning, error.hint)
    if not found:
        return Finding("cpu", "leases", "ok", "no CPU is leased by a lab", meaning)
    mend = "wait until that ends, or end it: kill PID"
    return Finding("cpu", "leases", "warn", described(found), meaning, mend)


def _turbo() -> Finding:
    no_turbo = text_of("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = text_of("/sys/devices/system/cpu/cpufreq/boost")
    if no_turbo is None and boost is None:
        return Finding(
            "cpu", "turbo", "ok", "not visible (the host decides)", "turbo changes with temperature"
        )
    on = no_turbo == "0" or boost == "1"
    path = "intel_pstate/no_turbo" if no_turbo is not None else "cpufreq/boost"
    value = 1 if no_turbo is not None else 0
    return Finding(
        "cpu",
        "turbo",
        "warn" if on else "ok",
        "on" if on else "off",
        "turbo changes with temperature",
        f"echo {value} | sudo tee /sys/devices/system/cpu/{path}" if on else None,
    )


def _tsc() -> Finding:
    cpu = text_of("/proc/cpuinfo") or ""
    flags = set(re.findall(r"\b(constant_tsc|nonstop_tsc|tsc_known_freq|hypervisor)\b", cpu))
    steady = {"constant_tsc", "nonstop_tsc"} <= flags
    source = text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return Finding(
        "cpu",
        "TSC",
        "ok" if steady else "warn",
        f"{' '.join(sorted(flags)) or 'no flags'}; clock source {source or 'unknown'}",
        "cycles are counted by the TSC, which must tick evenly"
        + (
            "; under a hypervisor its frequency is what the host says"
            if "hypervisor" in flags
            else ""
        ),
    )


def _privileges() -> Iterable[Finding]:
    status = text_of("/proc/self/status") or ""
    match = re.search(r"CapEff:\s*([0-9a-f]+)", status)
    bits = int(match.group(1), 16) if match else 0
    names = {12: "NET_ADMIN", 13: "NET_RAW", 14: "IPC_LOCK", 21: "SYS_ADMIN", 39: "BPF"}
    held = [name for bit, name in names.items() if bits >> bit & 1]
    yield Finding(
        "privileges",
        "user",
        "ok",
        "root" if os.geteuid() == 0 else f"uid {os.geteuid()}",
        "null and memif need no privileges; only installing packages does",
    )
    yield Finding(
        "privileges",
        "capabilities",
        "ok" if {"NET_ADMIN", "NET_RAW"} <= set(held) else "warn",
        " ".join(held) or "none",
        "interfaces, af_packet and XDP need NET_ADMIN, NET_RAW and BPF; the demo does not",
        None if {"NET_ADMIN", "NET_RAW"} <= set(held) else "run those experiments with sudo",
    )


def _devices() -> Iterable[Finding]:
    """List network cards, by the class of their PCI device, and the devices that DPDK can use."""
    cards = [
        device
        for device in LOCAL.glob("/sys/bus/pci/devices", "*")
        if (text_of(device / "class") or "").startswith("0x02")
    ]
    drivers = ("vfio-pci", "igb_uio", "uio_pci_generic")
    bound = [card.name for card in cards if LOCAL.resolve(card / "driver").name in drivers]
    yield Finding(
        "devices",
        "network cards",
        "ok",
        f"{len(cards)} on the PCI bus, bound for DPDK: {', '.join(bound) or 'none'}",
        "for --link ports with pci:ADDRESS; virtual devices need none. Not for the demo",
    )


def _kvm() -> Iterable[Finding]:
    meaning = "virtual machines as tenants; without, they are emulated and slow. Not for the demo"
    if not LOCAL.exists("/dev/kvm"):
        yield Finding(
            "kvm",
            "/dev/kvm",
            "warn",
            "not there",
            meaning,
            "enable virtualisation in the firmware, or nested virtualisation on the host",
        )
        return
    problem = LOCAL.obstacle("/dev/kvm")
    yield Finding(
        "kvm",
        "/dev/kvm",
        "warn" if problem else "ok",
        problem or "opens (doctor does not try to boot a guest)",
        meaning,
        "sudo usermod -aG kvm $USER" if problem else None,
    )


def _xdp() -> Iterable[Finding]:
    bpffs = any(" bpf " in line for line in (text_of("/proc/mounts") or "").splitlines())
    yield Finding(
        "xdp",
        "bpffs",
        "ok" if bpffs else "warn",
        "mounted" if bpffs else "not mounted",
        "a second XDP program on an interface needs it. Not for the demo",
        None if bpffs else "sudo mount -t bpf bpf /sys/fs/bpf",
    )
    btf = LOCAL.exists("/sys/kernel/btf/vmlinux")
    yield Finding(
        "xdp",
        "BTF",
        "ok" if btf else "warn",
        "present" if btf else "absent",
        "portable BPF programs read kernel types from it. Not for the demo",
        None if btf else "use a kernel built with CONFIG_DEBUG_INFO_BTF",
    )
    disabled = text_of("/proc/sys/kernel/unprivileged_bpf_disabled")
    yield Finding(
        "xdp",
        "bpf()",
        "ok" if disabled is not None else "warn",
        f"unprivileged_bpf_disabled = {disabled}" if disabled else "not visible",
        "whether the kernel has BPF, and who may use it. Not for the demo",
        None if disabled is not None else "use a kernel with CONFIG_BPF_SYSCALL",
    )


def _tenants() -> Iterable[Finding]:
    """Check the tenants. Imports their module only here, because that import is slow."""
    from linerate.experiments.cloud.tenants import container  # noqa: PLC0415
    from linerate.experiments.cloud.tenants.cgroups import cgroups  # noqa: PLC0415
    from linerate.experiments.cloud.tenants.vm import vm  # noqa: PLC0415

    found = cgroups.hierarchy()
    for name, reasons, there in (
        ("control groups", cgroups.missing(), f"version {found.version}" if found else ""),
        ("containers", container.missing(), "for every load"),
        ("virtual machines", vm.missing(), "for every load; a run tries whether KVM works"),
    ):
        yield Finding(
            "tenants",
            name,
            "warn" if reasons else "ok",
            "; ".join(reasons) or there,
            "linerate run cloud puts them beside forwarders. Not for the demo",
            "as root: make demo-cloud installs what is missing" if reasons else None,
        )


def _leftovers() -> Iterable[Finding]:
    """What programs that were killed left outside their processes; nothing is changed."""
    found = inventory.left()
    meaning = "labs that were killed left it"
    for name, what in found.items():
        # Of namespaces and control groups any lab of root's: run directories are a user's own.
        who = "" if name == "run directories" or os.geteuid() == 0 else " that root starts"
        yield Finding(
            "leftovers",
            name,
            "warn",
            ", ".join(printable(each) for each in what),
            meaning,
            f"the next linerate run, duel or instructions{who} undoes it",
        )
    programs = xdp_programs.left()
    for each in programs:
        yield Finding(
            "leftovers",
            f"XDP program on {printable(each.interface)}",
            "warn",
            f"{each.program} (id {each.number}), which no process seen here has",
            "a program with AF_XDP sockets was killed, as on DPDK's net_af_xdp, and nobody else "
            "removes it",
            f"sudo {printable(each.command)}",
        )
    if not found and not programs:
        yield Finding("leftovers", "programs that were killed", "ok", "left nothing", meaning)


SECTIONS: tuple[Callable[[], Iterable[Finding]], ...] = (
    _dpdk,
    _build_tools,
    _python,
    _cpus,
    _memory,
    _privileges,
    _devices,
    _kvm,
    _xdp,
    _tenants,
    _leftovers,
)


def examine() -> list[Finding]:
    """Run all probes; a probe that fails is itself a finding."""
    findings: list[Finding] = []
    for section in SECTIONS:
        try:
            findings.extend(section())
        except (OSError, ValueError) as error:
            name = section.__name__.strip("_")
            findings.append(
                Finding(name, "probe", "warn", str(error), "this could not be looked at")
            )
    return findings


def can_run(findings: list[Finding]) -> bool:
    """Return True if nothing that the demo needs is missing."""
    return not any(finding.needed and finding.state == "missing" for finding in findings)


def as_json(findings: list[Finding]) -> str:
    return json.dumps(
        {
            "schema": "linerate/doctor-1",
            "can_run_demo": can_run(findings),
            "findings": [asdict(finding) for finding in findings],
        },
        indent=2,
    )


def show(findings: list[Finding], console: Console) -> None:
    """Print one line per finding, and under it the command that helps."""
    colours = {"ok": "green", "warn": "yellow", "missing": "red"}
    area = ""
    for finding in findings:
        if finding.area != area:
            area = finding.area
            console.print(f"\n{area}", style="bold")
        console.print(f"  {finding.state:<8}", style=colours[finding.state], end="")
        text = f"{finding.name}: {finding.detail}"
        if finding.state != "ok":
            text += f". {finding.meaning[0].upper()}{finding.meaning[1:]}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        if finding.mend:
            console.print(
                f"          -> {finding.mend}", markup=False, highlight=False, soft_wrap=True
            )
    console.print()
    if can_run(findings):
        console.print("The demo can run: make demo")
    else:
        console.print("The demo cannot run yet: mend what is missing above (or: make setup build).")
