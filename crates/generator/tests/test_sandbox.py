# SPDX-License-Identifier: BSD-3-Clause
"""What a generator that serves cannot do, even if a driver or a frame has taken it over."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from frames import write_pcap
from harness import CPUS, MEMORY, Generator, eventually, generator
from test_client_paths import at, refused

pytest_plugins = ["rig"]

# Code in the process, called once clients are served: what it tries is written to standard error.
INTRUDER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

static void say(const char *what, int result) {
	const char *error = errno == EPERM || errno == EACCES ? "denied" : "failed";
	dprintf(2, "intruder %s %s\n", what, result >= 0 ? "done" : error);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
	static __thread int tried;
	if (!tried) {
		tried = 1;
		say("read", open(getenv("OUTSIDE"), O_RDONLY));
		say("write", open(getenv("OUTSIDE"), O_WRONLY));
		say("make", open(getenv("OUTSIDE_NEW"), O_WRONLY | O_CREAT, 0600));
		say("memory", open(getenv("OTHER_MEMORY"), O_RDONLY));
		say("ptrace", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
		say("namespace", unshare(CLONE_NEWNET));
		char *argv[] = {"true", NULL};
		/* Last, for it would not come back. */
		say("exec", execv("/bin/true", argv));
	}
	int (*real)(int, struct sockaddr *, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
	return real(fd, address, length, flags);
}
"""


def intruder(directory: Path) -> tuple[str, ...]:
    """Start a program with the intruder in it, by these words before its name."""
    source, built = directory / "intruder.c", directory / "intruder.so"
    source.write_text(INTRUDER)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", str(built), str(source), "-ldl"],
        check=True,
        capture_output=True,
    )
    return ("env", f"LD_PRELOAD={built}")


def attempts(running: Generator) -> dict[str, str]:
    """What the intruder tried, and what came of it."""
    running.request("GET", "/config")

    def lines() -> list[list[str]]:
        text = running.log.read_text().splitlines()
        return [line.split()[1:] for line in text if line.startswith("intruder ")]

    eventually(lambda: "exec" in [line[0] for line in lines()], running.log.read_text)
    return {line[0]: line[1] for line in lines()}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A capture file in no directory that the generator may use."""
    file = tmp_path / "frames.pcap"
    write_pcap(file, [(0, bytes(60))])
    return file


def environment_of(outside: Path) -> tuple[str, ...]:
    memory = f"OTHER_MEMORY=/proc/{os.getpid()}/mem"
    return (f"OUTSIDE={outside}", f"OUTSIDE_NEW={outside.parent / 'new'}", memory)


def test_code_in_the_process_reaches_nothing_outside(directory: Path, outside: Path) -> None:
    before = (*intruder(directory), *environment_of(outside))
    with generator(directory, before=before) as running:
        if not running.files["sandbox"].startswith("Landlock"):
            pytest.skip("the kernel has no Landlock")
        found = attempts(running)
    wanted = ("read", "write", "make", "memory", "ptrace", "namespace", "exec")
    assert found == dict.fromkeys(wanted, "denied")
    assert not (outside.parent / "new").exists()


def test_with_eal_options_system_calls_are_denied_and_files_are_not(
    directory: Path, outside: Path
) -> None:
    before = (*intruder(directory), *environment_of(outside))
    eal = ("-l", str(CPUS[0]), "--file-prefix", f"t{os.getpid()}", *MEMORY)
    with generator(directory, before=before, eal=eal) as running:
        assert running.files["sandbox"] == "seccomp"
        found = attempts(running)
    assert (found["read"], found["exec"], found["namespace"]) == ("done", "denied", "denied")


def test_any_device_opens_no_file_outside(directory: Path, outside: Path) -> None:
    location = f"vdev:net_pcap0,rx_pcap={outside},tx_pcap={directory}/sent.pcap"
    with generator(directory, "--allow-any-vdev") as running:
        if not running.files["sandbox"].startswith("Landlock"):
            pytest.skip("the kernel has no Landlock")
        refused(running, location)
        inside = directory / "frames.pcap"
        inside.write_bytes(outside.read_bytes())
        running.api.set_config(at(location.replace(str(outside), str(inside))))
    # It is the sandbox that refuses.
    with generator(directory, "--allow-any-vdev", "--no-sandbox") as running:
        assert running.files["sandbox"] == "none"
        running.api.set_config(at(location))


def test_all_threads_are_in_the_sandbox_and_have_their_names(directory: Path) -> None:
    with generator(directory) as running:
        tasks = list(Path(f"/proc/{running.process.pid}/task").iterdir())
        statuses = [(task / "status").read_text() for task in tasks]
        assert len(statuses) > 2
        assert all("Seccomp:\t2\n" in status for status in statuses)
        names = {(task / "comm").read_text().strip() for task in tasks}
    # EAL writes names of threads below /proc.
    assert any(name.startswith("telemetry") for name in names), names


def test_the_port_file_is_written_and_removed(directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "port"
    with generator(directory, f"--port-file={file}") as running:
        eventually(file.exists)
        assert int(file.read_text()) == running.http_port
    assert not file.exists()
