# SPDX-License-Identifier: BSD-3-Clause
"""`linerate duel` without programs: its arguments, and what it says about windows."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import by_schema
import numpy as np
import pytest

from linerate.cli.duel_command import status_of
from linerate.cli.duel_options import asked_of, check_link, how, lcores_of, parse_time
from linerate.experiments.duel import programs
from linerate.experiments.duel.programs import (
    check_container,
    check_plugin,
    check_program,
    program_of,
)
from linerate.experiments.duel.record import described, record_of
from linerate.experiments.duel.rounds import Asked, Duel, Round
from linerate.experiments.duel.sentences import apart, called, notes, round_line, sentence, size
from linerate.experiments.duel.verdict import Verdict, log_ratio, supports
from linerate.forwarders import FORWARDERS, Forwarder, containers, registry
from linerate.host.builds import elf
from linerate.host.errors import MissingError, UsageError
from linerate.host.exit_status import ExitStatus
from linerate.links import flows, link
from linerate.links.nearfree import NearFree
from linerate.traffic import frame_files
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.faults import refuse as refuse_windows
from linerate.trial.starts.window import Offered, Slice, Window
from linerate.verdict.agreement import Agreement
from linerate.verdict.sequential import half_width

NAMES = ["A (old)", "B (new)"]


# -- what it may be asked --------------------------------------------------------------------------


def test_a_command_line_in_quotes_is_a_program() -> None:
    found = program_of("./build/my-fw {eal} -- -p {portmask}", "B")
    assert found.name == "B-my-fw"
    assert called(found, "B") == "B (my-fw)"
    assert found.definition.command == "./build/my-fw {eal} -- -p {portmask}"
    assert program_of("c-l2fwd", "A") is FORWARDERS["c-l2fwd"]
    assert called(FORWARDERS["c-l2fwd"], "A") == "A (c-l2fwd)"


def test_a_file_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FORWARDERS", dict(FORWARDERS))
    monkeypatch.setattr(programs, "FORWARDERS", registry.FORWARDERS)
    path = tmp_path / "mine.toml"
    path.write_text('name = "of-a-duel"\nkind = "dpdk"\ncommand = "./fw {eal} --"\n')
    assert program_of(str(path), "A").name == "of-a-duel"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("nosuch", "A nosuch: no such forwarder; a command line of your own looks like"),
        ("c-l2fw", "did you mean c-l2fwd?"),
        ("{eal}", "names no program"),
        ("'' {eal}", "names no program"),
        (" ", "has neither {eal}"),
        ("./fw", "has neither {eal}"),
        ("./fw -- -p 3", "has neither {eal}"),
        ("./fw --interface {port}", "{rx} or {tx} (interfaces"),
        ("./fw {eall}", 'did you mean "eal"?'),
        ("./fw {eal", "'./fw {eal'"),
        ("./fw {eal} -- -p {mask}", "unknown placeholder {mask}"),
        ("./fw {eal} 'x", "No closing quotation"),
        ("nosuch.toml", "cannot read nosuch.toml"),
    ],
)
def test_other_words_are_refused_by_name(word: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        program_of(word, "A")
    assert message in str(raised.value)


def test_a_program_that_cannot_be_started_is_refused_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fw-new").write_text("#!/bin/sh\n")
    for word, message, hint in (
        ("./fw-nwe", "no such program: ./fw-nwe", "did you mean ./fw-new?"),
        ("./fw-new", "./fw-new is not executable", "chmod +x ./fw-new"),
        ("fw-new", "no program fw-new in PATH", "./fw-new"),
        ("no-such-fw", "no program no-such-fw in PATH", "install it, or give its path"),
        ("build/fw", "no such directory: build", None),
        (str(tmp_path), f"{tmp_path} is a directory", "name the program in it"),
    ):
        with pytest.raises(MissingError) as raised:
            check_program(program_of(f"{word} {{eal}}", "B"), "B")
        assert raised.value.message == f"B: {message}"
        assert (raised.value.hint or "").endswith(hint or "")
    Path("fw-new").chmod(0o755)
    check_program(program_of("./fw-new {eal}", "B"), "B")
    check_program(FORWARDERS["c-l2fwd"], "B")


def test_a_program_is_told_the_links_it_works_on() -> None:
    found = program_of("./fw {rx} {tx}", "A")
    with pytest.raises(UsageError, match=r"A \(fw\): it does not work on link null2") as raised:
        check_link(found, "A", link("null2"))
    assert "--link veth" in str(raised.value.hint)
    check_link(found, "A", link("veth"))


def test_a_command_line_may_have_interfaces() -> None:
    found = program_of("./fw {rx} {tx}", "A").definition
    assert (found.kind, found.counted, found.ready.by) == ("kernel", "link", "forwarding")


def test_lcores_are_those_of_command_lines() -> None:
    found = program_of("./fw {eal} --", "A", lcores_of("2")).definition
    assert (found.lcores, found.cpus) == ("one", 2)
    found = program_of("dpdk-testpmd {eal} --", "A", lcores_of("idle-main")).definition
    # testpmd ends at the end of its standard input.
    assert (found.lcores, found.cpus, found.stdin) == ("idle-main", 1, "open")
    for text in ("0", "-1", "two", "65", "100"):
        with pytest.raises(UsageError, match=f"--lcores {text}: must be 1 to 64, or idle-main"):
            lcores_of(text)


L2FWD, TWO_LCORES = FORWARDERS["c-l2fwd"], program_of("./fw {eal} --", "B", ("one", 2))


@pytest.mark.parametrize(
    ("on", "second", "method", "per"),
    [
        ("null2", L2FWD, "standing", "cpu"),
        ("nearfree2", L2FWD, "standing", "cpu"),
        ("null2", TWO_LCORES, "turns", "cpu"),
        ("memif", L2FWD, "turns", "cpu"),
        ("veth", FORWARDERS["xdp-redirect"], "turns", "cpu-and-napi"),
        # For DPDK programs there, the kernel's work is in no process's CPU time either.
        ("veth", L2FWD, "turns", "cpu-and-napi"),
    ],
)
def test_the_link_and_the_programs_say_how_they_meet(
    on: str, second: Forwarder, method: str, per: str
) -> None:
    found = how(link(on), [L2FWD, second], "auto", Asked())
    assert (found.method, found.per) == (method, per)
    assert how(link(on), [L2FWD, second], "turns", Asked()).method == "turns"
    if method == "turns":
        with pytest.raises(UsageError, match="--method standing: programs need"):
            how(link(on), [L2FWD, second], "standing", Asked())


def test_devices_that_are_there_once_are_refused() -> None:
    with pytest.raises(UsageError, match="--link ports: each start needs devices of its own"):
        how(link("ports"), [L2FWD, L2FWD], "auto", Asked())


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("2m", 120), ("1.5 min", 90), ("45", 45)]
)
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "values",
    [
        {"within": "0"},
        {"within": "soon"},
        {"within": "1000000s"},
        {"margin": "lots"},
        {"starts": 1},
        {"starts": 17},
        {"size": 63},
    ],
)
def test_wrong_values_are_refused_with_the_option(values: dict[str, object]) -> None:
    given = {"margin": "2%", "within": "60s", "starts": 4, "size": 64, "seed": 1} | values
    with pytest.raises(UsageError) as raised:
        asked_of(**given, bisect=False)  # type: ignore[arg-type]
    (option,) = values
    assert f"--{option}" in str(raised.value)


# -- faults ----------------------------------------------------------------------------------------


def window(
    arm: int = 0,
    received: tuple[int, ...] = (1000, 1000),
    sent: tuple[int, ...] = (1000, 1000),
    cpu_ns: int = 10_000_000,
    *,
    slices: int = 3,
    offered: Offered | None = None,
) -> Window:
    return Window(arm, (Slice(received, sent, cpu_ns, offered),) * slices)


def test_sound_windows_are_taken() -> None:
    refuse_windows([window(0), window(1)])
    # Some frames are in transit when counters are read.
    refuse_windows([window(0, sent=(900, 1000))])
    # Some frames of a flood are lost on the way to the program, and on the way back.
    refuse_windows([window(0, (10**6, 10**6), (10**5, 10**5), offered=Offered(3 * 10**6, 0))])
    # A program that is slower than its generator keeps the ring full.
    refuse_windows([window(0, offered=Offered(2000, 80_000))])


@pytest.mark.parametrize(
    ("spoilt", "kind", "message"),
    [
        (window(1, cpu_ns=0), "stuck", "did no work"),
        (window(1, received=(0, 0), sent=(0, 0)), "stuck", "received no packet"),
        (window(1, received=(10**6, 10**6), sent=(0, 0)), "drops", "sent on 0%"),
        (window(1, received=(10**6, 10**6), sent=(10**6, 9 * 10**5)), "drops", "95%"),
        (window(1, (10**6,) * 2, (0, 0), offered=Offered(10**7, 0)), "drops", "sent on 0%"),
        (window(1, sent=(0, 0), offered=Offered(2000, 0)), "drops", "sent on 0%"),
        (
            Window(1, (Slice((9, 9), (9, 9), 1000), *(Slice((9, 9), (0, 0), 1000),) * 2)),
            "stuck",
            "no packet in most",
        ),
        (window(1, offered=Offered(2000, 20)), "unsaturated", "all that the generator offered"),
        # A generator that was slower than the program, while others briefly had its CPU.
        (window(1, offered=Offered(2000, 800)), "unsaturated", "all that the generator offered"),
        (window(1, received=(1000, 0), sent=(1000, 0)), "ports", "on 1 of 2 ports, not on 1"),
    ],
)
def test_faults_are_named(spoilt: Window, kind: str, message: str) -> None:
    with pytest.raises(FaultError, match=message) as raised:
        refuse_windows([window(0), spoilt])
    assert (raised.value.arm, raised.value.kind) == (1, kind)


def test_one_slice_in_which_the_hypervisor_had_the_cpu_does_not_decide() -> None:
    good, bad = Slice((100,), (100,), 1000), Slice((2,), (2,), 1000)
    assert Window(0, (good, bad, good)).pps == good.pps
    assert Window(0, (good, bad, good)).sent == (202,)


# -- verdicts --------------------------------------------------------------------------------------


def duel(
    ratio: float,
    rounds: int,
    *,
    margin: float = 0.02,
    spread: float = 0.005,
    moves: float = 0.0,
    itself: float = 0.0,
) -> Duel:
    """Return a duel as `fight` leaves it. `itself`: by how much half of the first program's starts
    differ from the other half.
    """
    source = np.random.default_rng(5)
    shuffled = random.Random(5)
    found = Duel(Verdict(margin), took_s=4.0 * rounds)
    for number in range(rounds):
        order = [0] * 4 + [1] * 4
        shuffled.shuffle(order)
        state, moved, windows, slot = source.normal(0, 0.3), source.normal(0, moves), [], 0
        for arm in order:
            log = state + source.normal(0, spread) + arm * (math.log(ratio) + moved)
            if not arm:
                log += itself * (slot % 2)
                slot += 1
            packets = round(50e6 * math.exp(log) * 0.1)
            windows.append(window(arm, (packets,), (packets,), 100_000_000))
        found.rounds.append(Round(number, tuple(windows), 0))
        found.verdict.add(found.rounds[-1].figures(0), found.rounds[-1].figures(1))
        if found.verdict.answer != "undecided":
            break
    return found


@pytest.mark.parametrize(
    ("ratio", "answer", "status", "words"),
    [
        (0.9, "slower", ExitStatus.SLOWER, "B (new) is slower than A (old) by more than 2 %: 0.9"),
        (1.2, "faster", ExitStatus.DONE, "B (new) is faster than A (old) by more than 2 %: 1.2"),
        (1.0, "equal", ExitStatus.DONE, "B (new) is as fast as A (old), within 2 %: "),
        (0.99, "equal", ExitStatus.DONE, "B (new) is slower than A (old), by less than 2 %: 0.99"),
    ],
)
def test_the_answers(ratio: float, answer: str, status: ExitStatus, words: str) -> None:
    found = duel(ratio, 30)
    assert found.verdict.answer == answer
    assert status_of(found) == status
    assert sentence(found, NAMES, Asked()).startswith(words)
    assert "rounds in" in sentence(found, NAMES, Asked())


def test_what_is_not_decided_says_what_it_could_have_found() -> None:
    found = duel(0.995, 9, spread=0.03)
    assert status_of(found) == ExitStatus.UNDECIDED
    told = sentence(found, NAMES, Asked())
    assert told.startswith(
        "Not decided: B (new) may be slower than A (old) by more than 2 %, or not: "
    )
    assert "Only a difference of " in told
    # Also before there is an interval.
    assert "rounds from" in sentence(duel(0.995, 2, spread=0.03), NAMES, Asked())


@pytest.mark.parametrize(("rounds", "within"), [(1, 180), (2, 90)])
def test_too_few_rounds_for_any_answer_say_how_much_time_takes_enough(
    rounds: int, within: int
) -> None:
    found = duel(0.5, rounds)
    assert status_of(found) == ExitStatus.UNDECIDED
    told = sentence(found, NAMES, Asked(within_s=60))
    assert told.endswith(f". An answer takes at least 3 rounds: --within {within}s.")
    assert "at least" not in sentence(duel(0.97, 3, spread=0.03), NAMES, Asked(within_s=60))


def test_how_much_more_time_would_show_that_they_are_equal() -> None:
    found = duel(0.998, 8, spread=0.03)
    told = sentence(found, NAMES, Asked(within_s=60))
    said = re.search(
        r"(\d+) rounds? more like these would show that it is not: --within (\d+)s", told
    )
    assert said, told
    assert found.verdict.more_for_equal == int(said[1])
    assert int(said[2]) > 60
    # With that many more rounds like these it is decided, and not with one less.
    rounds = found.verdict.rounds
    most = 1 / (1 - 0.02)
    for more, decided in ((int(said[1]), True), (int(said[1]) - 1, False)):
        n = len(rounds) + more
        half = half_width(n, statistics.pstdev(rounds))
        assert half is not None
        assert (math.exp(abs(statistics.fmean(rounds)) + half) < most) is decided
    # Programs that differ by more than the margin will not be found equal.
    assert duel(0.94, 5, spread=0.03).verdict.more_for_equal is None


def test_an_interval_that_ends_at_the_margin_is_told_with_more_digits() -> None:
    verdict = Verdict(0.02)
    verdict.rounds = [0.0, 0.001, 0.002, 0.001, 0.0, 0.003]
    found = verdict.interval
    assert found
    assert f"(99 % interval {found.low:.3f} to {found.high:.3f})" in size(verdict)
    verdict.margin = 1 - round(found.low, 3)
    assert f"(99 % interval {found.low:.4f} to {found.high:.4f})" in size(verdict)


def test_an_interval_that_would_contradict_the_answer_is_not_told() -> None:
    # The ranks of the starts are clear, and the mean of the rounds is not.
    found = duel(1.06, 12, spread=0.03, moves=0.05)
    verdict = found.verdict
    assert found.answer == "faster"
    assert verdict.interval
    assert verdict.interval.low < 1
    assert not verdict.moves
    low, high = verdict.range
    assert f"(rounds from {low:.3f} to {high:.3f})" in size(verdict)
    assert supports(1.03, 1.2, 0.02, "faster", "faster")
    assert not supports(1.01, 1.2, 0.02, "faster", "faster")
    assert supports(0.9, 0.97, 0.02, "slower", "slower")
    assert not supports(0.9, 0.99, 0.02, "slower", "slower")
    assert supports(1.001, 1.2, 0.02, "undecided", "faster")
    assert not supports(0.999, 1.2, 0.02, "undecided", "faster")
    assert supports(0.9, 1.2, 0.02, "undecided", None)


def test_a_direction_is_told_where_the_margin_is_not_decided() -> None:
    found = duel(0.95, 4, margin=0.05, spread=0.004)
    assert found.verdict.direction == "slower"
    assert sentence(found, NAMES, Asked(margin=0.05)).startswith(
        "B (new) is slower than A (old), but it is not decided whether by more than 5 %"
    )


def test_a_ratio_that_moves_is_told_as_a_range() -> None:
    found = duel(1.65, 12, moves=0.15)
    assert found.verdict.answer == "faster"
    again = duel(1.65, 12, moves=0.15, margin=0.5)
    assert again.verdict.moves
    assert "rounds from" in sentence(again, NAMES, Asked(margin=0.5))
    assert any("the ratio itself moved between rounds" in note for note in notes(again, NAMES))


def test_a_control_that_differs_takes_the_verdict() -> None:
    found = duel(0.8, 40, margin=0.5, itself=0.2)
    assert found.verdict.unsound
    assert found.verdict.direction is None
    assert status_of(found) == ExitStatus.UNDECIDED
    assert "A (old) differed from itself" in sentence(found, NAMES, Asked())


def test_a_fault_is_no_verdict() -> None:
    found = duel(0.8, 2)
    found.fault = FaultError(1, "ended", "forwarder was killed by signal 11")
    assert status_of(found) == ExitStatus.UNDECIDED
    assert sentence(found, NAMES, Asked()) == (
        "No comparison: B (new) ended: forwarder was killed by signal 11."
    )
    found.fault = FaultError(0, "start", "no such device")
    assert status_of(found) == ExitStatus.CANNOT_RUN


@pytest.mark.parametrize(
    ("one", "other", "called"),
    [
        ("./fw {eal}", "./fw {eal}", ["fw", "fw"]),
        ("./fw {eal}", "./fw {eal} -- --burst=4", ["fw", "fw --burst=4"]),
        ("./fw {eal} -- -b 4 -p 3", "./fw {eal} -- -b 32 -p 3", ["fw -b 4", "fw -b 32"]),
        ("./fw {eal} --b=4", "./fw {eal} --b=32", ["fw --b=4", "fw --b=32"]),
        ("./old/fw {eal}", "./new/fw {eal}", ["old/fw", "new/fw"]),
        ("/w/old/b/fw {eal}", "/w/new/b/fw {eal} -x", ["old/b/fw", "new/b/fw -x"]),
        ("./fw {eal}", "new/fw {eal}", ["./fw", "new/fw"]),
        ("/x/fw /x/a.o {rx} {tx}", "/x/fw /x/b.o {rx} {tx}", ["fw a.o", "fw b.o"]),
        ("./fw a b c", "./fw d c", ["fw a b", "fw d"]),
        # The part that differs is too long to be printed.
        (f"./fw {'a' * 70}b", f"./fw {'a' * 70}c", ["fw", "fw"]),
        ("./fw 'a", "./fw b", ["fw", "fw"]),
    ],
)  # fmt: skip
def test_programs_of_one_name_are_told_apart(one: str, other: str, called: list[str]) -> None:
    assert apart(["fw", "fw"], [one, other]) == called
    assert apart(["fw-old", "fw-new"], [one, other]) == ["fw-old", "fw-new"]


def test_what_a_program_complains_of_is_told_where_it_does_nothing() -> None:
    found = duel(0.8, 2)
    found.fault = FaultError(1, "stuck", "it received nothing", "ERR|Failed to create mempool x")
    assert sentence(found, NAMES, Asked()) == (
        "No comparison: B (new) does nothing: it received nothing. It printed: ERR|Failed to "
        "create mempool x."
    )
    assert any("per-port-memory" in note for note in notes(found, NAMES))


def test_a_fault_comes_with_the_words_of_the_start_that_has_it() -> None:
    with pytest.raises(FaultError) as raised:
        refuse_windows(
            [window(0), window(1), window(1, received=(0, 0))], said=lambda at: f"of {at}"
        )
    assert (raised.value.arm, raised.value.said) == (1, "of 2")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("Cause: Not enough cores", "--lcores 2"),
        ("Cause: check_lcore_params failed; error: lcore 2 is not enabled in lcore mask", "-q 2"),
        ("Cause: I need 2 lcores, one for each port; have 1", "--lcores 2"),
        ("Cause: No cores defined for forwarding", "--lcores idle-main"),
        ("Cause: Creation of mbuf pool for socket 0 failed: No buffer space available", "mbufs"),
        ("Cause: Cannot configure device: err=-22, port=0", "offloads"),
        ("forwarder ended with exit code 127: x.sh: line 2: ./fw: No such file or directory",
         "absolute paths"),
        ("net_nearfree: not the driver interface that this was written for: the DPDK that is "
         "loaded is not release 22.11; EAL: Bus (vdev) probe failed.", "--link null2"),
        ("EAL: RTE_RING tailq is already registered; 18: libc.so.6", "linked statically"),
        ('EAL: failed to parse device "net_nearfree0"', "--link null2"),
        ('EAL: failed to parse device "net_null0"', "-d DIRECTORY"),
        ("Error: runc: runc create failed: error setting rlimits: OCI permission denied", "engine"),
        ("bridge|ERR|failed to create bridge br0; ofproto|ERR|failed to open datapath br0: No such "
         "device", 'network = "own"'),
        ("netdev_dpdk|ERR|Failed to create memory pool for netdev p0", "per-port-memory"),
        ("no telemetry socket /tmp/linerate-0-1-2/dpdk/x after 40 s", "container"),
    ],
)  # fmt: skip
def test_a_program_that_does_not_start_gets_advice(words: str, what: str) -> None:
    found = duel(0.8, 0)
    found.fault = FaultError(1, "start", f"forwarder ended with exit code 127: {words}")
    assert len(notes(found, NAMES)) == 1
    assert what in notes(found, NAMES)[0]
    found.fault = FaultError(1, "start", "forwarder ended with exit code 0")
    assert not notes(found, NAMES)


@pytest.mark.parametrize(
    ("line", "lacking"),
    [
        ("podman run --rm fw {eal}", "/tmp, where"),
        ("docker run -v /tmp:/var/tmp -e RUNTIME_DIRECTORY fw {eal}", "/tmp, where"),
        ("sudo podman run -v /tmp:/tmp fw {eal}", "RUNTIME_DIRECTORY, which"),
        ("/usr/bin/nerdctl run --mount=type=bind,src=/tmp,dst=/tmp fw {eal}", "RUNTIME_DIRECTORY,"),
        ("podman run -v /tmp:/tmp -e RUNTIME_DIRECTORY fw {rx} {tx}", "telemetry, and this has"),
        ("podman run -v /tmp:/tmp -e RUNTIME_DIRECTORY fw {eal}", None),
        ("podman run --volume=/tmp:/tmp:z --env-host fw {eal}", None),
        ("podman run -v /:/ --env=RUNTIME_DIRECTORY fw {eal}", None),
        (
            "docker run --mount type=bind,source=/tmp,target=/tmp -e RUNTIME_DIRECTORY fw {eal}",
            None,
        ),
        ("./podman-fw {eal} run", None),
    ],
)
def test_a_container_needs_the_directory_and_the_variable_of_telemetry(
    monkeypatch: pytest.MonkeyPatch, line: str, lacking: str | None
) -> None:
    monkeypatch.setattr(containers, "base_directory", lambda: Path("/tmp"))
    program = program_of(line, "B")
    if lacking is None:
        check_container(program, "B")
        return
    with pytest.raises(UsageError, match=r"^B \(\w+\): ") as raised:
        check_container(program, "B")
    assert lacking in raised.value.message
    if "{eal}" in line:
        assert "run --rm -v /tmp:/tmp -e RUNTIME_DIRECTORY" in str(raised.value.hint)


def elf_file(path: Path, content: bytes) -> Path:
    path.write_bytes(elf.MAGIC + content)
    path.chmod(0o755)
    return path


class WithPlugin(NearFree):
    def plugin(self) -> Path:
        return Path("driver.so")


def test_a_static_program_is_refused_where_the_driver_is_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elf, "needed_eal", lambda plugin: "librte_eal.so.23")
    path = elf_file(tmp_path / "fw", b"..Detected static linkage of DPDK")
    program = program_of(f"{path} {{eal}}", "B")
    with pytest.raises(UsageError, match=r"^B \(fw\): DPDK is linked into it statically") as caught:
        check_plugin(program, "B", WithPlugin(2))
    assert "--link null2" in str(caught.value.hint)
    check_plugin(program, "B", link("null2"))
    path.write_text("#!/bin/sh\n# linkage of DPDK\n")
    check_plugin(program, "B", WithPlugin(2))


@pytest.mark.parametrize("loaded", ["librte_eal.so.25", "librte_eal.so.23", None])
def test_a_program_of_another_dpdk_is_refused_where_the_driver_is_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: str | None
) -> None:
    monkeypatch.setattr(elf, "needed_eal", lambda plugin: "librte_eal.so.23")
    monkeypatch.setattr(elf, "loaded_eal", lambda path: loaded)
    program = program_of(f"{elf_file(tmp_path / 'fw', b'')} {{eal}}", "A")
    if loaded == "librte_eal.so.25":
        with pytest.raises(UsageError, match=r"loaded with librte_eal.so.25, and the driver of"):
            check_plugin(program, "A", WithPlugin(2))
    else:
        check_plugin(program, "A", WithPlugin(2))


def test_a_round_has_its_line() -> None:
    found = duel(0.9, 2)
    found.rounds[-1] = Round(1, found.rounds[-1].windows, 3)
    told = round_line(found)
    assert told.startswith("round 2, 8 s: ")
    assert "M packets per CPU second, the hypervisor took 30 ms of the CPU; so far 0.9" in told
    found.per = "time"
    assert "M packets per second, the hypervisor took 30 ms" in round_line(found)
    assert any("hypervisor took 30 ms" in note for note in notes(found, NAMES))


# -- beside each other, and alone ------------------------------------------------------------------


def meet(agreement: Agreement, beside: float, alone: float) -> None:
    """Return a round in which the second program has these ratios to the first."""

    def windows(ratio: float) -> list[Window]:
        return [window(arm, (10**6,), (round(10**6 * (ratio if arm else 1)),)) for arm in (0, 1)]

    agreement.add(log_ratio(windows(beside)), log_ratio(windows(alone)))


def test_programs_that_compare_alike_beside_each_other_and_alone_agree() -> None:
    agreement = Agreement()
    for noise in (0.01, -0.01, 0.02, -0.02):
        meet(agreement, 0.9, 0.9 * math.exp(noise))
        assert not agreement.broken
        assert not agreement.doubtful


def test_a_program_that_follows_the_clock_is_found() -> None:
    """A program that spins for 5 % of its time also does so while others have the CPU."""
    agreement = Agreement()
    for noise in (0.01, -0.01, 0.02):
        assert not agreement.broken
        meet(agreement, 0.76, 0.95 * math.exp(noise))
    assert agreement.broken


def test_an_answer_waits_while_the_programs_may_compare_otherwise_alone() -> None:
    found = duel(0.9, 30)
    for noise in (0.08, -0.01, 0.09):
        meet(found.agreement, 0.9, 0.9 * math.exp(noise))
    assert (found.agreement.broken, found.agreement.doubtful) == (False, True)
    assert (found.verdict.answer, found.answer) == ("slower", "undecided")
    assert status_of(found) == ExitStatus.UNDECIDED
    assert sentence(found, NAMES, Asked()).startswith("No verdict yet: A (old) and B (new) may")


def test_two_that_do_not_start_for_one_reason_share_its_words() -> None:
    found = duel(1.0, 0)
    found.fault = FaultError(1, "start", "ended: no port")
    found.other_fault = FaultError(0, "start", "ended: no port")
    told = sentence(found, NAMES, Asked())
    assert told.endswith("ended: no port. A (old) does not start either: for the same reason.")
    found.other_fault = FaultError(0, "start", "ended: no core")
    assert sentence(found, NAMES, Asked()).endswith("does not start either: ended: no core.")


def test_what_was_given_up_is_told() -> None:
    found = duel(0.95, 30)
    found.method, found.given_up = "turns", duel(0.76, 3).verdict
    assert any("in turns, each with the CPU for itself" in note for note in notes(found, NAMES))


def test_the_record_is_by_its_schema() -> None:
    found = duel(0.9, 30)
    programs = [FORWARDERS["c-l2fwd"], FORWARDERS["rust-l2fwd"]]
    asked, words = Asked(), ["c-l2fwd", "rust-l2fwd"]
    record = record_of(
        found, words, programs, "frames2", asked, ["words.", "a note"], "repeat", hugepages=False
    )
    data = json.loads(record.model_dump_json(by_alias=True, exclude_none=True))
    by_schema.check(data, "duel-1.json")
    assert data["answer"] == "slower"
    assert data["rounds"][0]["order"].count("A") == 4
    assert "frame_files" in data
    assert not any(each["carried"] for each in data["rounds"])
    found.fault = FaultError(1, "drops", "it sent on 0%")
    spoilt = record_of(found, words, programs, "null2", asked, ["words."], "", hugepages=True)
    assert spoilt.fault is not None
    assert (spoilt.fault.program, spoilt.fault.kind) == ("B", "drops")


def test_the_record_says_what_was_sent(tmp_path: Path) -> None:
    files = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    for file, count in zip(files, (2, 3), strict=True):
        file.write_bytes(flows.capture([bytes(60)] * count))
    found = duel(0.9, 3)
    offered = Offered(taken=1000, refused=50)
    slices = (Slice((400, 390), (380, 370), 10**9, offered), Slice((5, 5), (5, 5), 10**6, offered))
    found.rounds[0] = replace(found.rounds[0], windows=(Window(0, slices),))
    record = record_of(
        found, ["a", "b"], [L2FWD, L2FWD], "memif2", Asked(), ["words."], "", ["a", "b"],
        described(files, 2), hugepages=False,
    )  # fmt: skip
    data = json.loads(record.model_dump_json(by_alias=True, exclude_none=True))
    by_schema.check(data, "duel-1.json")
    assert data["frame_files"] == [
        {"ports": [0], "frames": 2, "size": 128},
        {"ports": [1], "frames": 3, "size": 192},
    ]
    assert [each.ports for each in described(files[:1], 2)] == [[0, 1]]
    (carried,) = data["rounds"][0]["carried"]
    assert carried == {"offered": 2000, "refused": 100, "received": 800, "sent": 760}


@pytest.mark.parametrize(
    ("word", "said", "told"),
    [
        (
            "a b.pcap",
            '--flow "f0": pcap: {link}: is neither pcap nor pcapng',
            "is neither pcap nor",
        ),
        ("size=9", '--flow "f0": size=9: at least 64', "size=9: at least 64"),
    ],
)
def test_what_is_wrong_with_frames_is_said_of_what_the_user_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, said: str, told: str
) -> None:
    """The generator's message named a link in a directory that no longer exists."""
    (tmp_path / "a b.pcap").write_text("x")
    monkeypatch.chdir(tmp_path)
    errors = f"generator: {said.format(link=tmp_path / 'given0')}\n"
    failed = SimpleNamespace(exit_code=1, errors=errors)
    monkeypatch.setattr(frame_files, "LOCAL", SimpleNamespace(run=lambda *_, **__: failed))
    monkeypatch.setattr(frame_files, "rust_binary", Path)
    with pytest.raises(UsageError) as refused:
        frame_files.frame_files([word], 2, tmp_path)
    assert str(refused.value).startswith(f"--traffic {word}: {told}")
