# SPDX-License-Identifier: BSD-3-Clause
"""xdp-fwd --shared: beside other XDP programs by libxdp's dispatcher, or a clear error."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import Program, environment, forwarded, frame, need_bpf, refused
from wires import LEFT, MIDDLE, RIGHT, TIMEOUT_S, end, eventually, ip, mac, set_gro, wires

XDP = Program("xdp-fwd", "net_xdp")
# Why it may not work here: the library, or the kernel.
OBSTACLES = (
    "libxdp is missing",
    "libxdp is too old",
    "this kernel refuses eBPF programs that replace functions (BPF_PROG_TYPE_EXT)",
    "libxdp could not load its dispatcher",
)


@pytest.fixture(autouse=True)
def _between() -> Iterator[None]:
    need_bpf()
    with wires():
        set_gro(LEFT, "l0")
        set_gro(RIGHT, "r0")
        yield


@pytest.fixture
def bpffs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A BPF file system of the test's own, in which libxdp keeps what is attached."""
    with tempfile.TemporaryDirectory(prefix="kio") as path:
        subprocess.run(["mount", "-t", "bpf", "bpf", path], check=True, timeout=TIMEOUT_S)
        monkeypatch.setenv("LIBXDP_BPFFS", path)
        try:
            yield Path(path)
        finally:
            subprocess.run(["umount", path], check=True, timeout=TIMEOUT_S)


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kio") as path:
        yield Path(path)


@pytest.fixture
def other() -> Iterator[Path]:
    """Of a second program."""
    with tempfile.TemporaryDirectory(prefix="kio") as path:
        yield Path(path)


def obstacle(directory: Path) -> str | None:
    """What a start complains of; none where it works."""
    process = subprocess.Popen(
        XDP.command("--shared", interfaces=["f0"]),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(directory),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        told = []
        for line in process.stdout:
            told.append(line)
            if "Port 0: XDP" in line:
                process.send_signal(signal.SIGTERM)
        code = process.wait(TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    return "".join(told) if code else None


@pytest.fixture
def sharing(bpffs: Path, directory: Path) -> Path:
    """The BPF file system, where it works; skips where it cannot, with the program's own words."""
    told = obstacle(directory)
    if told:
        assert any(each in told for each in OBSTACLES), told
        pytest.skip(told.strip().splitlines()[-1])
    return bpffs


def program_on(interface: str) -> bool:
    return "xdp" in ip("-n", MIDDLE, "-d", "link", "show", "dev", interface)


def kept(bpffs: Path) -> list[str]:
    """What is in the file system beside what the kernel and libxdp always have there."""
    return sorted(
        str(path.relative_to(bpffs))
        for path in bpffs.rglob("*")
        if path.name not in ("maps.debug", "progs.debug", "xdp")
    )


def test_it_works_or_says_why_not_and_leaves_nothing(bpffs: Path, directory: Path) -> None:
    told = obstacle(directory)
    assert told is None or any(each in told for each in OBSTACLES), told
    assert not program_on("f0")
    assert kept(bpffs) == []


def test_frames_leave_by_the_partner(sharing: Path, directory: Path) -> None:
    sent = [frame(n, 100) for n in range(50)]
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        XDP.running(directory, "--shared") as running,
    ):
        for one in sent:
            left.send(one)
        source = mac(MIDDLE, "f1")
        assert right.await_frames(len(sent)) == [forwarded(one, 1, source) for one in sent]
        assert running.stats(1)["opackets"] == len(sent)
        answer = running.ask("/linerate/xdp/replace,pass")
        assert "--shared the action stays" in answer["error"]
        log = running.finish()
        assert "Port 0: XDP native, shared, action redirect" in log
    assert not program_on("f0")
    assert not program_on("f1")
    assert kept(sharing) == []


def test_two_programs_run_beside_each_other(sharing: Path, directory: Path, other: Path) -> None:
    """Each counts what comes, and goes on when the other one leaves."""
    passing = ("--shared", "--action", "pass")
    with (
        end(LEFT, "l0") as left,
        XDP.running(directory, *passing, interfaces=["f0"]) as first,
    ):
        with XDP.running(other, *passing, interfaces=["f0"]) as second:
            for number in range(30):
                left.send(frame(number, 60))
            eventually(lambda: first.stats(0)["ipackets"] == 30)
            eventually(lambda: second.stats(0)["ipackets"] == 30)
            second.finish()
        assert program_on("f0")
        left.send(frame(31, 60))
        eventually(lambda: first.stats(0)["ipackets"] == 31)
        first.finish()
    assert not program_on("f0")
    assert kept(sharing) == []


def test_what_a_killed_one_left_goes_with_the_next_start(
    sharing: Path, directory: Path, other: Path
) -> None:
    passing = ("--shared", "--action", "pass")
    with XDP.running(directory, *passing, interfaces=["f0"]) as killed:
        killed.process.kill()
        killed.process.wait(TIMEOUT_S)
    assert program_on("f0")
    with XDP.running(other, *passing, interfaces=["f0"]) as next_one:
        next_one.finish()
    assert not program_on("f0")
    assert kept(sharing) == []


def test_what_a_killed_one_left_on_another_interface_goes_too(
    sharing: Path, directory: Path, other: Path
) -> None:
    """On one that is there, and on one that was deleted meanwhile."""
    for gone in (False, True):
        with XDP.running(directory, "--shared") as killed:
            killed.process.kill()
            killed.process.wait(TIMEOUT_S)
        if gone:
            ip("-n", MIDDLE, "link", "del", "f0")
        with XDP.running(other, "--shared", interfaces=["f1"]) as next_one:
            next_one.finish()
        assert not program_on("f1")
        assert gone or not program_on("f0")
        assert kept(sharing) == []


def test_an_interface_that_is_deleted_leaves_nothing(sharing: Path, directory: Path) -> None:
    with XDP.running(directory, "--shared") as running:
        ip("-n", MIDDLE, "link", "del", "f0")
        eventually(lambda: running.process.poll() is not None)
        assert running.process.returncode == 1
        assert "network interface f0 is gone" in running.log.read_text()
    assert not program_on("f1")
    assert kept(sharing) == []


def test_a_program_that_does_not_share_is_named(
    sharing: Path, directory: Path, other: Path
) -> None:
    with XDP.running(directory, interfaces=["f0"]) as running:
        told = refused(other, XDP.command("--shared", interfaces=["f0"]))
        assert "net_xdp0: f0 has an XDP program that libxdp's dispatcher did not attach" in told
        assert program_on("f0")
        running.finish()
    assert kept(sharing) == []


def test_the_file_system_is_mounted_and_taken_away(
    sharing: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIBXDP_BPFFS")
    words = XDP.command("--shared", interfaces=["f0"])
    at = words.index(str(XDP.path))
    # ip netns exec has /sys mounted anew, without one.
    mounted = "grep -c ' /sys/fs/bpf bpf ' /proc/mounts"
    script = (
        '"$@" >log & pid=$!; until grep -q "Port 0: XDP" log || ! kill -0 $pid; do sleep 0.05; done'
        f"; {mounted}; kill -TERM $pid; wait $pid; {mounted}"
    )
    done = subprocess.run(
        [*words[:at], "sh", "-c", script, "sh", *words[at:]],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        cwd=directory, env=environment(directory),
    )  # fmt: skip
    assert done.stdout.split() == ["1", "0"], done
