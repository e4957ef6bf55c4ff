# SPDX-License-Identifier: BSD-3-Clause
"""Hosts: everything run, read, set and sampled is the host's, also in a network namespace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_host import Instead

from linerate.host import machine, netns, sampler
from linerate.host.errors import LabError, LinkError
from linerate.host.host import LOCAL, InNamespace
from linerate.host.netns import Namespaces
from linerate.host.process import Command, RunDirectory
from linerate.host.sampler import Wanted

GONE = 1 << 23
CPUS = tuple(os.sched_getaffinity(0))
EVERYTHING = Wanted(pids=(os.getpid(), GONE), cpus=True, interfaces=True)


@pytest.fixture
def namespace() -> Iterator[InNamespace]:
    try:
        netns.prepare()
    except LabError as error:
        pytest.skip(str(error))
    with Namespaces(("h",)) as made:
        yield made.host("h")


def shape(value: object) -> object:
    """Types instead of values; of a mapping the first entry, because all have one kind."""
    if isinstance(value, dict):
        return {
            name: shape(each) for name, each in list(value.items())[: 1 if _by_number(value) else 9]
        }
    return [shape(each) for each in value] if isinstance(value, list) else type(value).__name__


def _by_number(value: dict[str, object]) -> bool:
    return all(name.isdigit() for name in value)


def test_a_command_is_told_what_it_reads_and_tells_what_it_said() -> None:
    done = LOCAL.run(("sh", "-c", "cat; echo no >&2; exit 3"), given="yes")
    assert (done.exit_code, done.output, done.errors) == (3, "yes", "no\n")
    assert LOCAL.run(("sh", "-c", "kill -9 $$")).exit_code == -signal.SIGKILL
    with pytest.raises(FileNotFoundError):
        LOCAL.run(("no-such-program",))
    with pytest.raises(TimeoutError, match=r"no end within 0\.05 s"):
        LOCAL.run(("sleep", "20"), timeout_s=0.05)


def test_a_command_gets_the_environment_with_some_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("TAKEN", "taken")
    argv = ("sh", "-c", 'echo "$KEPT ${TAKEN-none} $ADDED"')
    told = LOCAL.run(argv, environment={"TAKEN": None, "ADDED": "added"})
    assert told.output == "kept none added\n"


def test_ctrl_c_is_for_the_lab_unless_it_is_wanted() -> None:
    ours = os.getpgrp()
    group = ("sh", "-c", "cut -d' ' -f5 /proc/$$/stat")
    assert int(LOCAL.run(group).output) != ours
    assert int(LOCAL.run(group, ends_by_terminal=True).output) == ours


def test_a_value_is_set_where_there_is_one(tmp_path: Path) -> None:
    value = tmp_path / "value"
    with pytest.raises(FileNotFoundError):
        LOCAL.set_value(value, "1")
    assert not value.exists()
    value.touch()
    LOCAL.set_value(value, "1")
    assert LOCAL.read_text(value) == "1"


def test_a_device_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    assert LOCAL.obstacle("/dev/null") is None
    assert LOCAL.obstacle(tmp_path / "absent") == "No such file or directory"


def test_a_namespace_has_interfaces_and_values_of_its_own(namespace: InNamespace) -> None:
    netns.ip("link", "add", "h0", "type", "veth", "peer", "name", "h1", host=namespace)
    assert set(namespace.sample(Wanted(interfaces=True)).interfaces) == {"lo", "h0", "h1"}
    assert "h0" not in LOCAL.sample(Wanted(interfaces=True)).interfaces
    assert netns.exists(namespace, "h0")
    assert not netns.exists(LOCAL, "h0")
    # Below /proc/sys/net, and below /sys, which is mounted for one namespace.
    for path in ("/proc/sys/net/ipv4/conf/h0/rp_filter", "/sys/class/net/h0/tx_queue_len"):
        before = int(namespace.read_text(path))
        namespace.set_value(path, str(before + 1))
        assert int(namespace.read_text(path)) == before + 1
        assert not LOCAL.exists(path)
    for path in ("/proc/sys/net/ipv4/conf/none0/rp_filter", "/sys/class/net/none0/mtu"):
        with pytest.raises(OSError, match="No such file or directory"):
            namespace.set_value(path, "1")


def test_a_namespace_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = InNamespace("linerate-none")
    assert (gone.id, LOCAL.id) == ("namespace linerate-none", "local")
    with RunDirectory(tmp_path) as run, pytest.raises(LinkError, match="linerate-none is gone"):
        gone.start(Command("forwarder", ("sleep", "20"), CPUS), run)
    with pytest.raises(FileNotFoundError):
        gone.sample(Wanted(interfaces=True))


def test_a_child_and_the_host_count_the_same(tmp_path: Path) -> None:
    with (
        RunDirectory(tmp_path) as run,
        LOCAL.start(Command("forwarder", ("sleep", "20"), CPUS), run) as child,
    ):
        child.wait_until(lambda: child.activity().voluntary, 5, "it does not sleep")
        assert LOCAL.sample(Wanted(pids=(child.pid,))).processes[child.pid] == child.activity()


def test_a_sample_has_what_was_wanted_and_nothing_else() -> None:
    nothing = LOCAL.sample(Wanted())
    assert not nothing.processes
    assert not nothing.cpus
    assert not nothing.interfaces
    sample = LOCAL.sample(EVERYTHING)
    assert set(sample.processes) == {os.getpid(), GONE}
    assert not sample.processes[GONE].told
    assert "lo" in sample.interfaces
    assert sample.at_s >= nothing.at_s
    times, more = sample.cpus[CPUS[0]], LOCAL.sample(EVERYTHING).cpus[CPUS[0]]
    assert times.busy + times.idle <= more.busy + more.idle


def test_a_sample_survives_its_json() -> None:
    sample = LOCAL.sample(EVERYTHING)
    assert sampler.sample_of(sampler.as_json(sample)) == sample
    assert sampler.wanted_of(sampler.as_json(EVERYTHING)) == EVERYTHING
    assert sampler.wanted_of('{"pids": [1]}') == Wanted(pids=(1,))
    with pytest.raises(TypeError):
        sampler.wanted_of('{"pid": 1}')


def test_the_sampler_runs_as_a_program_that_has_nothing_of_the_lab_s() -> None:
    """As on a host with only Python: isolated, so that it cannot import the lab."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(sampler.__file__)],
        input=sampler.as_json(EVERYTHING),
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    there, here = sampler.sample_of(done.stdout), LOCAL.sample(EVERYTHING)
    for one, other in ((done.stdout, sampler.as_json(here)),):
        assert shape(json.loads(one)) == shape(json.loads(other))
    assert there.tick_hz == here.tick_hz
    assert set(there.processes) == set(here.processes)
    assert set(there.cpus) == set(here.cpus)
    assert set(there.interfaces) == set(here.interfaces)
    assert there.at_s <= here.at_s


def test_facts_of_a_machine_are_of_the_host(tmp_path: Path) -> None:
    release = tmp_path / "osrelease"
    release.write_text("9.9-there\n")
    there = machine.facts(Instead({"/proc/sys/kernel/osrelease": release}))
    assert there.kernel == "9.9-there"
    assert there.model_copy(update={"kernel": os.uname().release, "hugepages": []}) == (
        machine.facts().model_copy(update={"hugepages": []})
    )
