# SPDX-License-Identifier: BSD-3-Clause
"""Duels of real programs: answers, and faults that are named."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import by_schema
import pytest
from conftest import need_veth, wait_for
from test_e2e import STARVED, Run, disturbed, need, runtime

from linerate.forwarders import forwarder
from linerate.host.builds.bench_programs import nearfree_obstacle
from linerate.host.builds.c_examples import example_source
from linerate.host.exit_status import ExitStatus
from linerate.host.process import NAMESPACES, RunDirectory
from linerate.links import flows

pytestmark = pytest.mark.e2e

# A fixture of the tests of real runs.
assert runtime


DROPPER = """
name = "dropper"
kind = "dpdk"
build = { recipe = "installed", program = "dpdk-testpmd", package = "dpdk" }
command = "{program} {eal} -- --forward-mode=rxonly --auto-start --total-num-mbufs=4096"
stdin = "open"
lcores = "idle-main"
"""


@pytest.fixture(autouse=True)
def no_process_is_left(runtime: Path) -> Iterator[None]:
    """No process is left, including those started by a script."""
    yield
    assert not list(_of(runtime))


def _of(runtime: Path) -> Iterator[tuple[bytes, str]]:
    """Return the command line and the state of processes that labs there started."""
    mark = f"RUNTIME_DIRECTORY={runtime}/".encode()
    for found in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in found.read_bytes():
                stat = (found.parent / "stat").read_text()
                yield (found.parent / "cmdline").read_bytes(), stat.rpartition(")")[2].split()[0]


def environment(runtime: Path) -> dict[str, str]:
    return {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}


def duel(
    runtime: Path, *words: str, within: str = "1s", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Fight a duel of one round; `test_e2e_duel_ci` tests what many rounds decide."""
    command = [sys.executable, "-m", "linerate", "duel", *words, "--within", within]
    return subprocess.run(
        [*command, "--hugepages", "no", "--starts", "2"],
        env=environment(runtime), capture_output=True, text=True, timeout=300, check=False, cwd=cwd,
    )  # fmt: skip


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    by_schema.check(found, "duel-1.json")
    return found


def l2fwd() -> str:
    """Build the C example, as users have it."""
    if example_source("l2fwd") is None:
        pytest.skip("DPDK's l2fwd example is not installed: make setup (Debian: dpdk-doc)")
    program = forwarder("c-l2fwd").program()
    assert program is not None
    return str(program)


def test_two_programs_from_the_list(runtime: Path) -> None:
    need("l2fwd")
    done = duel(runtime, "rust-l2fwd", "rust-l2fwd-burst", "--json")
    found = told(done)
    assert found["programs"][0]["given"] == "rust-l2fwd"
    assert found["rounds"]
    for each in found["rounds"]:
        assert sorted(each["order"]) == ["A", "A", "B", "B"]
        assert all(pps > 1e5 for pps in each["pps"])
    # The exit status matches the answer, whichever it is on this machine.
    expected = {"slower": 1, "faster": 0, "equal": 0, "undecided": 3}
    assert done.returncode == expected[found["answer"]], done.stderr


def test_command_lines_in_quotes_and_a_script(runtime: Path, tmp_path: Path) -> None:
    """The process that polls is the script's child."""
    program = l2fwd()
    (tmp_path / "fw-new").write_text(f'#!/bin/sh\n"{program}" "$@"\n')
    (tmp_path / "fw-new").chmod(0o755)
    line = "{eal} -- -p {portmask} -q 2 -T 0"
    done = duel(runtime, f"{program} {line}", f"./fw-new {line}", cwd=tmp_path)
    assert done.returncode in (ExitStatus.DONE, ExitStatus.SLOWER, ExitStatus.UNDECIDED)
    assert "A (l2fwd) and B (fw-new) on null2, 2 starts of each in a round" in done.stdout
    assert "No comparison" not in done.stdout, done.stdout
    assert "M packets per CPU second" in done.stdout


def test_a_copy_of_a_program_is_the_same_code(runtime: Path, tmp_path: Path) -> None:
    program, copy = l2fwd(), tmp_path / "fw-new"
    shutil.copy(program, copy)
    line = "{eal} -- -p {portmask} -q 2 -T 0"
    words = (f"{program} {line}", f"{copy} {line}", "--json")
    assert told(duel(runtime, *words))["same_code"] is True
    assert "same_code" not in told(duel(runtime, *words, "--even-if-same"))


def test_each_start_can_have_a_network_of_its_own(runtime: Path, tmp_path: Path) -> None:
    """Four starts at once make an interface of the same name."""
    need_veth()
    script = f'#!/bin/sh\nip link add same0 type veth peer same1 && exec {l2fwd()} "$@"\n'
    (tmp_path / "fw").write_text(script)
    (tmp_path / "fw").chmod(0o755)
    words = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(
            f'name = "{name}"\nkind = "dpdk"\nnetwork = "own"\n'
            'command = "./fw {eal} -- -p {portmask} -q 2 -T 0"\n'
        )
        words.append(f"./{name}.toml")
    done = duel(runtime, *words, cwd=tmp_path)
    assert "M packets per CPU second" in done.stdout, done.stdout + done.stderr
    assert "No comparison" not in done.stdout, done.stdout
    assert not Path("/sys/class/net/same0").exists()


TRAFFIC = ("--traffic", "size=imix,ipv4.src=198.18.0.1+200,duration=3000frames")


def on_frames() -> str:
    """Return a command line for links with frames, if these are possible here."""
    need("l2fwd", "generator")
    if obstacle := nearfree_obstacle():
        pytest.skip(obstacle)
    return f"{l2fwd()} {{eal}} -- -p {{portmask}} -q 2 -T 0"


LAZY = "B (l2fwd --no-mac-updating) does other work: 100.0% of its packets are left as they came"


def test_frames_of_a_flow_and_work_that_is_not_done(runtime: Path) -> None:
    """Sent frames are checked first: a program that changes nothing is not called faster."""
    line = on_frames()
    found = told(duel(runtime, line, line, *TRAFFIC, "--json"))
    assert found["link"] == "frames2"
    assert found["traffic"] == [TRAFFIC[1]]
    assert "fault" not in found, found
    assert found["rounds"]
    for work in found["works"]:
        assert work["counts"]["sent"] > 1000
        # The two are counted one after the other, while the program continues.
        assert work["counts"]["new_destination"] > 0.99 * work["counts"]["sent"]
        assert work["counts"]["wrong_header_checksum"] == 0
    lazy = duel(runtime, line, f"{line} --no-mac-updating", *TRAFFIC)
    assert lazy.returncode == ExitStatus.UNDECIDED
    assert LAZY in lazy.stdout
    back = duel(runtime, line, f'{line} --portmap="(0,0),(1,1)"', *TRAFFIC)
    assert ") does other work: it sends 400 flows out of another port" in back.stdout
    assert "received on port 0, sent on port 0, and by the other on port 1" in back.stdout


@pytest.mark.second_tier
def test_work_that_nobody_looks_at(runtime: Path) -> None:
    line = on_frames()
    done = duel(runtime, line, f"{line} --no-mac-updating", *TRAFFIC, "--no-check")
    assert "No comparison" not in done.stdout
    assert "M packets per CPU second" in done.stdout


def test_a_generator_sends_the_users_frames(runtime: Path, tmp_path: Path) -> None:
    """The program's changes are checked on a link whose driver delivers these frames."""
    line = on_frames()
    frames = [*itertools.islice(map(flows.frame, flows.flows()), 200), bytes(1514)]
    (tmp_path / "a.pcap").write_bytes(flows.capture(frames))
    on = ("--link", "memif2", "--traffic", str(tmp_path / "a.pcap"))
    found = told(duel(runtime, line, line, *on, "--json", within="3s"))
    assert found["frame_files"] == [{"ports": [0, 1], "frames": 201, "size": 200 * 64 + 1518}]
    assert [work["missed"] for work in found["works"]] == [0, 0]
    # Whether the generator or the program is faster depends on the machine.
    if fault := found.get("fault"):
        assert (fault["kind"], found["rounds"]) == ("unsaturated", [])
    for each in found["rounds"]:
        assert len(each["carried"]) == 4
        for carried in each["carried"]:
            assert carried["sent"] > 1000
            assert carried["offered"] > 0.5 * carried["received"]
    lazy = duel(runtime, line, f"{line} --no-mac-updating", *on)
    assert lazy.returncode == ExitStatus.UNDECIDED
    assert LAZY in lazy.stdout
    (tmp_path / "a.pcap").write_bytes(flows.capture([bytes(1515)]))
    long = duel(runtime, line, line, *on)
    assert long.returncode == ExitStatus.USAGE
    assert "frames of 1519 bytes are longer than 1518" in long.stderr


@pytest.mark.second_tier
def test_programs_on_the_kernel_meet_the_users_frames(runtime: Path) -> None:
    need("generator", "af-packet-fwd")
    need_veth()
    found = in_turns(runtime, "af-packet-mmap", "af-packet-mmap", "--link", "veth", *TRAFFIC)
    assert found["frame_files"][0]["frames"] == 3000
    assert "works" not in found or not found["works"]
    assert any("not a DPDK program with telemetry" in note for note in found["notes"])
    assert all(each["offered"] > 1000 for each in found["rounds"][0]["carried"])


# Parts of DPDK: those that l2fwd needs, and the drivers of the links null and memif.
ARCHIVES = (
    "mempool_ring", "bus_vdev", "bus_pci", "pci", "net_null", "net_memif", "ethdev", "meter", "net",
    "mbuf", "mempool", "rcu", "ring", "eal", "telemetry", "kvargs", "timer", "hash",
)  # fmt: skip


def static_l2fwd(folder: Path) -> Path:
    """Build the example with DPDK linked statically."""
    l2fwd()
    source = example_source("l2fwd")
    assert source is not None
    flags = subprocess.run(
        ["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=True
    ).stdout.split()
    made = folder / "l2fwd-static"
    done = subprocess.run(
        ["cc", "-O3", *flags, "-DALLOW_EXPERIMENTAL_API", str(source / "main.c"), "-o", str(made),
         "-Wl,--whole-archive", *(f"-l:librte_{name}.a" for name in ARCHIVES),
         "-Wl,--no-whole-archive", "-Wl,--export-dynamic",
         "-pthread", "-lm", "-ldl", "-lnuma", "-lbsd", "-lmd"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if "cannot find" in done.stderr:
        pytest.skip("DPDK's static libraries are not installed (Debian: libdpdk-dev)")
    assert done.returncode == 0, done.stderr
    return made


def test_a_static_program_needs_a_driver_of_its_own(runtime: Path, tmp_path: Path) -> None:
    line = "{eal} -- -p {portmask} -q 2 -T 0"
    words = (f"{l2fwd()} {line}", f"{static_l2fwd(tmp_path)} {line}")
    done = duel(runtime, *words)
    assert "No comparison" not in done.stdout, done.stdout
    assert "M packets per CPU second" in done.stdout
    refused = duel(runtime, *words, "--link", "nearfree2")
    assert refused.returncode == ExitStatus.USAGE
    assert "B (l2fwd-static): DPDK is linked into it statically" in refused.stderr
    assert "--link null2" in refused.stderr


def spoilt(runtime: Path, second: str) -> dict[str, Any]:
    program = l2fwd()
    done = duel(runtime, f"{program} {{eal}} -- -p {{portmask}} -q 2 -T 0", second, "--json")
    found = told(done)
    assert "fault" in found, done.stdout
    fault: dict[str, Any] = found["fault"]
    assert fault["program"] == "B"
    assert done.returncode == (4 if fault["kind"] == "start" else 3)
    return fault


def test_a_program_that_drops_all_is_no_winner(runtime: Path, tmp_path: Path) -> None:
    if shutil.which("dpdk-testpmd") is None:
        pytest.skip("dpdk-testpmd is not installed: make setup (Debian: dpdk)")
    path = tmp_path / "dropper.toml"
    path.write_text(DROPPER)
    fault = spoilt(runtime, str(path))
    assert (fault["kind"], fault["message"]) == (
        "drops",
        "it sent on 0% of the packets that it received",
    )


def test_a_program_that_polls_fewer_ports_is_named(runtime: Path) -> None:
    fault = spoilt(runtime, f"{l2fwd()} {{eal}} -- -p 1 -q 2 -T 0")
    assert (fault["kind"], "not on 1" in fault["message"]) == ("ports", True)


def test_a_program_that_does_not_start_is_named(runtime: Path, tmp_path: Path) -> None:
    fault = spoilt(runtime, f"{l2fwd()} {{eal}} --no-such-option -- -p 3")
    assert fault["kind"] == "start"
    assert "ended with exit code" in fault["message"]


def processes_of(program: Path) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/exe"):
        with contextlib.suppress(OSError):
            if each.readlink() == program:
                found.append(int(each.parent.name))
    return found


def test_a_program_that_ends_in_mid_duel_is_named(runtime: Path, tmp_path: Path) -> None:
    program = tmp_path / "short-lived"
    shutil.copy(l2fwd(), program)
    line = "{eal} -- -p 3 -q 2 -T 0"
    command = [sys.executable, "-m", "linerate", "duel", f"{l2fwd()} {line}", f"{program} {line}"]
    with subprocess.Popen(
        [*command, "--hugepages", "no", "--starts", "2", "--margin", "0.01%", "--json"],
        env=environment(runtime), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        wait_for("program B", lambda: processes_of(program))
        # Ready, or nearly so: then it is a fault of the same program.
        wait_for("its work", lambda: any(ticks_of(pid) > 20 for pid in processes_of(program)))
        os.kill(processes_of(program)[0], signal.SIGKILL)
        output, _ = running.communicate(timeout=60)
    fault = json.loads(output)["fault"]
    assert fault["program"] == "B"
    assert fault["kind"] in ("ended", "start")
    assert "was killed by signal 9" in fault["message"]
    assert running.returncode == (4 if fault["kind"] == "start" else 3)


def ticks_of(pid: int) -> int:
    """Return the CPU time that a process has used, in ticks; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
    except OSError:
        return 0


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.second_tier)]
)
def test_it_leaves_nothing_when_it_is_stopped(
    runtime: Path, tmp_path: Path, number: signal.Signals
) -> None:
    program = l2fwd()
    line = f"{program} {{eal}} -- -p {{portmask}} -q 2 -T 0"
    with subprocess.Popen(
        [sys.executable, "-m", "linerate", "duel", line, line, "--within", "5m", "--starts", "2",
         "--hugepages", "no", "--margin", "0.1%"],
        env=environment(runtime), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as lab:  # fmt: skip
        wait_for("its programs", lambda: list(runtime.glob("*/dpdk/*")) or lab.poll(), 120)
        lab.send_signal(number)
        _, errors = lab.communicate(timeout=60)
    assert lab.returncode == 128 + number, errors
    # Fixtures check that no file and no process is left.


# Imitates a container engine: what it starts is no child of the command line.
ENGINE = """#!/bin/sh
[ "$1 $2 $3 $5 $6" = "run --rm -v -e RUNTIME_DIRECTORY" ] || exit 125
shift 6
told=$(mktemp)
setsid --fork sh -c 'echo $$ > "$0"; exec "$@"' "$told" "$@"
while [ ! -s "$told" ]; do sleep 0.1; done
read pid < "$told"
rm "$told"
trap 'kill -INT $pid' INT TERM
while kill -0 $pid 2> /dev/null; do sleep 0.1; done
"""


def containerised(runtime: Path, folder: Path, line: str) -> str:
    engine = folder / "podman"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    return f"{engine} run --rm -v {runtime}:{runtime} -e RUNTIME_DIRECTORY {l2fwd()} {line}"


@pytest.mark.parametrize(
    "method", ["standing", pytest.param("turns", marks=pytest.mark.second_tier)]
)
def test_a_program_in_a_container_is_compared(runtime: Path, tmp_path: Path, method: str) -> None:
    line = "{eal} -- -p {portmask} -q 2 -T 0"
    second = containerised(runtime, tmp_path, line)
    found = told(duel(runtime, f"{l2fwd()} {line}", second, "--method", method, "--json"))
    assert "fault" not in found, found["fault"]
    assert found["rounds"]
    assert all(pps > 1e5 for each in found["rounds"] for pps in each["pps"])


def test_a_run_measures_a_program_in_a_container(runtime: Path, tmp_path: Path) -> None:
    """It counts the CPU time of the program, not of the engine's client."""
    need("l2fwd")
    line = containerised(runtime, tmp_path, "{eal} -- -p {portmask} -q 2 -T 0")
    mine = tmp_path / "mine.toml"
    mine.write_text(
        f'name = "mine"\nkind = "dpdk"\ncommand = "{line}"\npolls = "nothing"\nspans = "nothing"\n'
    )
    run = Run(
        runtime, tmp_path / "run", "--link", "null2", "--blocks", "1", "--no-probe",
        "--method", "fresh", "--forwarders", f"rust-l2fwd,{mine}",
    )  # fmt: skip
    code, _, errors = run.finish()
    assert code == 0, errors
    (trial,) = [trial for trial in run.trials() if trial.forwarder == "mine"]
    assert trial.valid or disturbed(trial, STARVED), trial.invalid
    (process,) = trial.program.processes
    assert process.argv[0] == str(tmp_path / "podman")
    # A program that polls wants its CPU all the time, and the client only waits.
    assert process.ran_s is not None
    assert process.waited_s is not None
    assert process.ran_s + process.waited_s > 0.5 * (trial.frames.duration_s or 0.0)


@pytest.mark.second_tier
def test_a_container_ends_at_the_next_start_after_its_lab_was_killed(
    runtime: Path, tmp_path: Path
) -> None:
    line = containerised(runtime, tmp_path, "{eal} -- -p {portmask} -q 2 -T 0")
    with subprocess.Popen(
        [sys.executable, "-m", "linerate", "duel", line, line, "--within", "5m", "--starts", "2",
         "--hugepages", "no", "--margin", "0.1%", "--method", "turns"],
        env=environment(runtime), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as lab:  # fmt: skip
        wait_for("those that stand still", lambda: _stopped(runtime) > 2 or lab.poll(), 120)
        lab.kill()
        _, errors = lab.communicate(timeout=60)
    assert lab.returncode == -signal.SIGKILL, errors
    assert list(_of(runtime))
    RunDirectory(runtime).close()
    wait_for("their end", lambda: not list(_of(runtime)), 10)


def test_a_program_that_becomes_a_daemon_is_told_to_stay(runtime: Path) -> None:
    program = l2fwd()
    fault = spoilt(runtime, f"setsid --fork {program} {{eal}} -- -p {{portmask}} -q 2 -T 0")
    assert fault["kind"] == "start"
    assert "which it started, runs on: a program must stay in the foreground" in fault["message"]


def test_both_programs_that_do_not_start_are_named(runtime: Path) -> None:
    program = l2fwd()
    done = duel(runtime, f"{program} {{eal}} --no-such-a --", f"{program} {{eal}} --no-such-b --")
    assert done.returncode == ExitStatus.CANNOT_RUN
    for letter, option in (("A", "--no-such-a"), ("B", "--no-such-b")):
        named = rf"{letter} \(l2fwd {option}\) does not start.*{option}"
        assert re.search(named, done.stdout), done.stdout


# -- in turns --------------------------------------------------------------------------------------

LINE = "{eal} -- -p {portmask} -q 2 -T 0"


def in_turns(runtime: Path, *words: str) -> dict[str, Any]:
    found = told(duel(runtime, *words, "--json", within="3s"))
    assert found["method"] == "turns"
    assert "fault" not in found, found["fault"]
    assert found["rounds"]
    assert all(pps > 1e3 for each in found["rounds"] for pps in each["pps"])
    return found


def test_two_lcores_take_turns(runtime: Path) -> None:
    line = f"{l2fwd()} {{eal}} -- -p {{portmask}} -q 1 -T 0"
    assert in_turns(runtime, line, line, "--lcores", "2")["per"] == "cpu"


def test_programs_on_memif_take_turns(runtime: Path) -> None:
    need("generator")
    line = f"{l2fwd()} {LINE}"
    found = told(duel(runtime, line, line, "--link", "memif", "--json"))
    # Whether the generator or the program is faster depends on the machine.
    assert (found["method"], found["per"] in ("cpu", "busy")) == ("turns", True)
    assert "fault" not in found, found["fault"]
    assert found["rounds"]
    assert all(pps > 1e3 for each in found["rounds"] for pps in each["pps"])


@pytest.mark.second_tier
def test_programs_on_the_kernel_take_turns(runtime: Path) -> None:
    need("generator", "af-packet-fwd")
    need_veth()
    found = in_turns(runtime, "af-packet-mmap", "af-packet-mmap", "--link", "veth")
    assert found["per"] == "cpu-and-napi"


@pytest.mark.second_tier
def test_a_poller_in_a_session_of_its_own_ends_with_its_start(
    runtime: Path, tmp_path: Path
) -> None:
    script = tmp_path / "fw-apart"
    script.write_text(f'#!/bin/sh\nsetsid "{l2fwd()}" "$@" &\nwait\n')
    script.chmod(0o755)
    in_turns(runtime, f"{l2fwd()} {LINE}", f"{script} {LINE}", "--method", "turns")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(
    ("link", "names"),
    [
        pytest.param("null2", None, marks=pytest.mark.second_tier),
        # Also with generators that are stopped.
        ("memif", None),
        pytest.param("veth", "af-packet-mmap", marks=pytest.mark.second_tier),
    ],
)
def test_turns_leave_nothing_when_they_are_stopped(
    runtime: Path, link: str, names: str | None, number: signal.Signals
) -> None:
    """This includes programs that stand still; the next lab ends them at the latest."""
    if link == "veth":
        need_veth()
    line = names or f"{l2fwd()} {LINE}"
    with subprocess.Popen(
        [sys.executable, "-m", "linerate", "duel", line, line, "--within", "5m", "--starts", "2",
         "--hugepages", "no", "--margin", "0.1%", "--link", link, "--method", "turns"],
        env=environment(runtime), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as lab:  # fmt: skip
        wait_for("those that stand still", lambda: _stopped(runtime) > 2 or lab.poll(), 120)
        lab.send_signal(number)
        _, errors = lab.communicate(timeout=60)
    if number == signal.SIGKILL:
        assert lab.returncode == -number, errors
        RunDirectory(runtime).close()
        # The kernel takes some milliseconds to free the memory of killed processes.
        wait_for("their end", lambda: not list(_of(runtime)), 10)
        if link == "veth":
            need_veth()
    else:
        assert lab.returncode == 128 + number, errors
    assert not list(NAMESPACES.glob(f"linerate-{lab.pid}-*"))


def _stopped(runtime: Path) -> int:
    return sum(state == "T" for _, state in _of(runtime))
