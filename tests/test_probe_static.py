# SPDX-License-Identifier: BSD-3-Clause
"""The probe in programs that are linked statically with DPDK."""

from __future__ import annotations

import subprocess
from pathlib import Path

from forwarding_programs import CPUS, MEMORY, offsets, one_offset, running

from linerate.host.builds import c_examples
from linerate.host.builds.plugins import probe_plugin
from linerate.host.process import RunDirectory

# What the example and null ports need; pkg-config's list has every driver with its libraries, of
# which some are not installed.
ARCHIVES = (
    "net_null bus_vdev mempool_ring ethdev net mbuf mempool ring rcu meter eal telemetry kvargs"
)
PORTS = ["net_null0,size=64", "net_null1,size=64"]
LIBRARIES = "-lm -lnuma -lbsd -ldl -lpthread"


def skeleton(flags: str = "") -> Path:
    """Build DPDK's skeleton example by its own Makefile, without a shared library of DPDK."""
    archives = " ".join(f"-l:librte_{name}.a" for name in ARCHIVES.split())
    linked = f"-Wl,--whole-archive {archives} -Wl,--no-whole-archive {flags} {LIBRARIES}"
    arguments = ["static", f"LDFLAGS_STATIC={linked}"]
    program = c_examples.build("skeleton", make_arguments=arguments).program
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "librte" not in needed
    return program


def test_a_program_that_does_not_show_its_dpdk_is_told_so_and_runs_on() -> None:
    with RunDirectory() as run, running(run, skeleton(), PORTS) as program:
        program.wait("packets", lambda: program.received(1) > 1_000_000)
        said = program.child.output()
        assert "linerate probe: this program does not show DPDK's rte_" in said
        assert "linked into it statically" in said
        assert said.count("linerate probe") == 1
        commands = program.ask("/")
        assert "/ethdev/stats" in commands
        assert not [name for name in commands if name.startswith("/linerate")]


def test_it_ends_when_the_probe_is_required() -> None:
    with RunDirectory() as run:
        argv = [str(skeleton()), *MEMORY, "--lcores", f"0@{CPUS[-1]}", "-d", str(probe_plugin())]
        done = subprocess.run(
            [
                *argv,
                "--file-prefix",
                run.new_prefix("static"),
                *(f"--vdev={port}" for port in PORTS),
            ],
            env={**run.environment(), "LINERATE_PROBE_REQUIRED": "1"},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 1
        assert "linked into it statically" in done.stderr
        assert done.stdout == ""


def test_a_static_program_that_exports_its_dpdk_is_counted() -> None:
    program_file = skeleton("-Wl,--export-dynamic")
    with RunDirectory() as run, running(run, program_file, PORTS) as program:
        program.await_polls(2)
        early = offsets(program)
        program.wait("packets", lambda: program.received(1) > 1_000_000)
        for ahead in zip(early, offsets(program), strict=True):
            one_offset(ahead, slack=32)
        assert {entry["lcore"] for entry in program.entries()} == {0}
        program.wait("latency", lambda: program.sent(0) > 0 and program.sent(1) > 0)
