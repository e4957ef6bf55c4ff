# SPDX-License-Identifier: BSD-3-Clause
"""What programs must not leave behind, follow or lose silently: interfaces, links, output,
secrets.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import wait_for

from linerate.host import netns
from linerate.host.errors import LabError
from linerate.host.host import InNamespace
from linerate.host.netns import Namespaces, ip
from linerate.host.places import rust_binary

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
CPU = min(os.sched_getaffinity(0))
FULL = "No space left on device"
# Two ports without a link.
NULLS = ("--vdev", "net_null0", "--vdev", "net_null1")
FLOW = ("--port", "p=ring:r", "--duration", "100frames", "--rate", "1kpps")


def program(name: str) -> str:
    try:
        return str(rust_binary(name))
    except LabError as error:
        pytest.skip(str(error))


def eal(prefix: str, *devices: str) -> list[str]:
    return [
        # Some forward nothing from the first port.
        "--lcores", f"0@{CPU},1@{CPU}", "--no-huge", "--no-pci", "--no-shconf", "-m", "256",
        "--file-prefix", f"left-{os.getpid()}-{prefix}", *devices, "--",
    ]  # fmt: skip


def run(directory: Path, *command: str, stdout: int | None = None) -> tuple[int, str, str]:
    """Return exit status, standard output and error of a program that ends by itself."""
    done = subprocess.run(
        command, cwd=directory, env=environment(directory), text=True, timeout=TIMEOUT_S,
        check=False, stdout=subprocess.PIPE if stdout is None else stdout, stderr=subprocess.PIPE,
    )  # fmt: skip
    return done.returncode, done.stdout or "", done.stderr


def environment(directory: Path) -> dict[str, str]:
    return {**os.environ, "RUNTIME_DIRECTORY": str(directory), "XDG_RUNTIME_DIR": str(directory)}


@contextmanager
def full() -> Iterator[int]:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def running(
    directory: Path, command: Sequence[str], stdout: int, namespace: str = ""
) -> Iterator[subprocess.Popen[str]]:
    before = ["ip", "netns", "exec", namespace] if namespace else []
    with subprocess.Popen(
        [*before, *command], cwd=directory, env=environment(directory), text=True,
        stdout=stdout, stderr=(directory / "errors").open("w"),
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


# -- standard output that is full --------------------------------------------------------------


def test_a_table_that_the_generator_could_not_print_is_no_success(tmp_path: Path) -> None:
    generator = program("generator")
    assert run(tmp_path, generator, *FLOW)[0] == 0
    for options in (FLOW, (*FLOW, "--write", "p=frames.pcap")):
        with full() as stdout:
            status, _, errors = run(tmp_path, generator, *options, stdout=stdout)
        assert status == 1, errors
        assert f"generator: standard output: {FULL}" in errors
    # A reader that ends early is no error.
    status, output, errors = run(
        tmp_path, "bash", "-c", f"set -o pipefail; {generator} {' '.join(FLOW)} | true"
    )
    assert (status, output) == (0, ""), errors


FORWARDERS = {
    "l2fwd": ("-p", "3", "-T", "1"),
    "reflect": ("-p", "3"),
    "impair": ("-p", "3"),
    "l3fwd-graph": ("-p", "3", "--config", "(0,0,1),(1,0,1)"),
}


@pytest.mark.parametrize("name", FORWARDERS)
def test_a_forwarder_whose_output_was_lost_forwards_on_and_says_so_at_its_end(
    tmp_path: Path, name: str
) -> None:
    command = [program(name), *eal(name, *NULLS), *FORWARDERS[name]]
    socket = tmp_path / "dpdk" / f"left-{os.getpid()}-{name}" / "dpdk_telemetry.v2"
    with full() as stdout, running(tmp_path, command, stdout) as process:
        errors = tmp_path / "errors"
        wait_for("the start", lambda: socket.exists() or process.poll() is not None, TIMEOUT_S)
        wait_for("its handlers of signals", lambda: hears(process), TIMEOUT_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 1
        assert f"{name}: standard output: {FULL}" in errors.read_text()


def hears(process: subprocess.Popen[str]) -> bool:
    """Return True if the program handles the signal and all its threads exist."""
    assert process.poll() is None
    status = Path(f"/proc/{process.pid}/status").read_text()
    (caught,) = re.findall(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    threads = list(Path(f"/proc/{process.pid}/task").iterdir())
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1) and len(threads) > 1


# -- links that another user has made ----------------------------------------------------------


def test_the_generator_follows_no_link_of_another_user_s(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a link away")
    generator = program("generator")
    precious, link = tmp_path / "precious", tmp_path / "link.pcap"
    precious.write_text("precious")
    link.symlink_to(precious)
    os.lchown(link, 65534, 65534)
    for options in (
        (*FLOW, "--json", str(link)),
        (*FLOW, "--capture", f"p={link}"),
        (*FLOW, "--write", f"p={link}"),
        ("--otg-listen", "127.0.0.1:0", "--port-file", str(link)),
    ):
        status, _, errors = run(tmp_path, generator, *options)
        assert status == 1, options
        assert "a link of user 65534's is not followed" in errors, options
        assert precious.read_text() == "precious", options


def test_a_capture_does_not_go_into_a_file_that_somebody_else_has_open(tmp_path: Path) -> None:
    """The old file is replaced: its owner could read the frames."""
    there = tmp_path / "frames.pcap"
    there.write_text("theirs")
    with there.open() as theirs:
        status, _, errors = run(tmp_path, program("generator"), *FLOW, "--capture", "p=frames.pcap")
        assert status == 0, errors
        assert theirs.read() == "theirs"
    assert there.stat().st_size >= 24
    assert sorted(path.name for path in tmp_path.glob("*frames*")) == ["frames.pcap"]


# -- secrets -----------------------------------------------------------------------------------


def test_a_password_that_others_can_read_is_said(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("open sesame\n")
    options = (
        "--otg-listen", "127.0.0.1:0", "--otg-user", "u", "--otg-password-file", str(password),
        # It ends at once.
        "--port-file", "/nonexistent/port",
    )  # fmt: skip
    hint = f"--otg-password-file {password}: all users may read it (mode 644): chmod 600 {password}"
    for mode, said in ((0o644, True), (0o600, False)):
        password.chmod(mode)
        status, _, errors = run(tmp_path, program("generator"), *options)
        assert status == 1
        assert (hint in errors) == said, errors


# -- interfaces --------------------------------------------------------------------------------


@pytest.fixture
def namespace() -> Iterator[InNamespace]:
    """A namespace with the veths `ours` and `theirs`, both up."""
    try:
        netns.prepare()
    except LabError as error:
        pytest.skip(str(error))
    with Namespaces(("left",)) as made:
        host = made.host("left")
        ip("link", "add", "ours", "type", "veth", "peer", "name", "theirs", host=host)
        for name in ("ours", "theirs"):
            ip("link", "set", name, "up", host=host)
        yield host


def promiscuity(host: InNamespace) -> tuple[int, bool]:
    """Return the number of promiscuity requests on `ours`, and whether its flag is set."""
    (shown,) = json.loads(ip("-json", "-details", "link", "show", "dev", "ours", host=host))
    return shown["promiscuity"], "PROMISC" in shown["flags"]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("name", ["l2fwd", "generator"])
def test_promiscuous_mode_ends_with_the_program(
    tmp_path: Path, namespace: InNamespace, name: str, end: signal.Signals
) -> None:
    device = ("--vdev", "net_af_packet0,iface=ours")
    if name == "l2fwd":
        command = [program(name), *eal(name, *device), "-p", "1", "-P", "-T", "0"]
    else:
        options = ("--port", "p=af_packet:ours", "--rate", "100pps")
        command = [program(name), *options, "--duration", "60s"]
    assert promiscuity(namespace) == (0, False)
    with running(tmp_path, command, subprocess.DEVNULL, namespace.namespace) as process:
        wait_for(
            "promiscuous mode",
            lambda: promiscuity(namespace) == (1, False) or process.poll() is not None,
            TIMEOUT_S,
        )
        assert process.poll() is None, (tmp_path / "errors").read_text()
        process.send_signal(end)
        process.wait(TIMEOUT_S)
    wait_for("its end", lambda: promiscuity(namespace) == (0, False), 5)
