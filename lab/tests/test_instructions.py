# SPDX-License-Identifier: BSD-3-Clause
"""`linerate instructions` without programs: callgrind files, counts, and its messages."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import by_schema
import pytest
from rich.console import Console

from linerate.cli import instructions_command as command
from linerate.cli.instructions_command import asked_of, parse_max
from linerate.experiments.duel.programs import given
from linerate.experiments.instructions import callgrind, explain, profile, sentences
from linerate.experiments.instructions.callgrind import (
    Counted,
    Counting,
    Mark,
    UncountableError,
    narrowed,
    require_plain,
    require_valgrind,
)
from linerate.experiments.instructions.explain import Contestant, Runs, explanation
from linerate.experiments.instructions.functions import key, named, owner
from linerate.experiments.instructions.profile import Place, ProfileError, read
from linerate.experiments.instructions.record import Explanation, InstructionsRecord
from linerate.forwarders import FORWARDERS
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LinkError, MissingError, UsageError
from linerate.host.exit_status import ExitStatus
from linerate.host.process import RunDirectory
from linerate.links import link
from linerate.links.base import Wire
from linerate.links.eal import Memory
from linerate.trial.starts.window import Slice, Window

# -- files of callgrind ----------------------------------------------------------------------------

# Two objects that call each other; names are given once and by number afterwards; positions are
# absolute and relative; of several events, zeros at the end are left out; inclusive cost of a call;
# and a jump, which costs nothing.
PROFILE = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
cmd:  ./l2fwd -l 1
part: 2

desc: Trigger: --dump-before=rte_eth_stats_get

positions: instr line
events: Ir Dr Bc
summary: 7677 91 7

ob=(1) /opt/l2fwd
fl=(1) main.c
fn=(1) main
0x16 16 400 80 7
+2 +2 50
cob=(2) /opt/driver.so
cfi=(2) driver.c
cfn=(2) receive
calls=100 0x3 3
0x18 18 7200 10
* * 5
fi=(3) inlined.h
+1 7 1
jcnd=3/7 +4 9
+1 8
fe=(1)
ob=(2)
fl=(2)
fn=(2)
0x3 3 7000 10
-1 -1 200
cob=(1)
cfi=(1)
cfn=(3) back
calls=1 0x9 9
0x2 2 11 1
ob=(1)
fl=(1)
fn=(3)
0x9 9 11 1

totals: 7667 91 7
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "out.1.1"
    path.write_text(text)
    return path


def test_calls_are_counted_where_they_arose(tmp_path: Path) -> None:
    found = read(written(tmp_path, PROFILE))
    assert found == {
        Place("/opt/l2fwd", "main"): Counter(Ir=456, Dr=80, Bc=7),
        Place("/opt/driver.so", "receive"): Counter(Ir=7200, Dr=10),
        Place("/opt/l2fwd", "back"): Counter(Ir=11, Dr=1),
    }
    assert (profile.total(found), profile.total(found, "Dr")) == (7667, 91)


def test_names_without_numbers(tmp_path: Path) -> None:
    """A function may have a name in brackets, or no symbol at all."""
    text = """\
events: Ir
ob=/lib/libc.so.6
fn=(below main)
3 7
cfn=0x0000000000001d20
cob=/opt/fw
calls=1 5
3 100

ob=/opt/fw
fn=0x0000000000001d20
5 100
"""
    assert read(written(tmp_path, text)) == {
        Place("/lib/libc.so.6", "(below main)"): Counter(Ir=7),
        Place("/opt/fw", "0x0000000000001d20"): Counter(Ir=100),
    }


def test_an_empty_file_has_no_costs(tmp_path: Path) -> None:
    assert read(written(tmp_path, "")) == {}


@pytest.mark.parametrize("line", ["3 many", "fn=(9)"])
def test_what_is_no_profile_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, f"events: Ir\nfn=(1) main\n{line}\n")
    with pytest.raises(ProfileError, match=r"out\.1\.1, line 3: not of callgrind's format"):
        read(path)


# -- counting --------------------------------------------------------------------------------------


def part(folder: Path, number: int, loop: int, telemetry: int) -> None:
    (folder / f"out.7.{number}").write_text(
        f"events: Ir Bc\nob=/opt/fw\nfn=loop\n1 {loop} {loop // 10}\n"
        f"ob=/lib/libc.so.6\nfn=printf\n1 {telemetry}\n"
    )


def session(folder: Path, ports: int = 2) -> callgrind._Session:
    return callgrind._Session(cast(Any, SimpleNamespace(pid=7, arm=1)), ports, folder)


def test_counts_are_per_packet_and_without_what_asking_costs(tmp_path: Path) -> None:
    """Two ports of one loop, 50 instructions a packet. Each question costs 900; the second port's
    counters are read some packets later than the first's.
    """
    # Packets forwarded before each of the six answers, and the part written at that time.
    forwarded = [0, 200, 1000, 1200, 100_000, 100_200]
    marks = []
    for number, (before, now) in enumerate(zip([0, *forwarded], forwarded, strict=False), 1):
        part(tmp_path, number, 50 * (now - before), 900)
        marks.append(Mark(now // 2, now // 2, number, now * 1000))
    rounds = [marks[0:2], marks[2:4], marks[4:6]]
    found = session(tmp_path)._counted(rounds)
    assert found.costs[Place("/opt/fw", "loop")] == pytest.approx({"Ir": 50, "Bc": 5})
    assert found.costs[Place("/lib/libc.so.6", "printf")] == {"Ir": 0.0}
    # From the second round to the last, without what came between the first two.
    assert found.packets == 99_000 - 1000
    assert found.total() == pytest.approx(50)
    assert found.window.received == found.window.sent == (49_500, 49_500)
    assert found.ns == pytest.approx(1000)


def test_further_rounds_are_taken_off_as_well(tmp_path: Path) -> None:
    forwarded = [0, 1000, 50_000, 90_000]
    rounds = []
    for number, (before, now) in enumerate(zip([0, *forwarded], forwarded, strict=False), 1):
        part(tmp_path, number, 20 * (now - before), 900)
        rounds.append([Mark(now, now, number, now)])
    found = session(tmp_path, 1)._counted(rounds)
    assert found.total() == pytest.approx(20)
    assert found.packets == 89_000 - 2 * 1000
    assert callgrind._without_asking(rounds) == found.packets


def test_a_program_that_stands_still_is_not_counted(tmp_path: Path) -> None:
    rounds = []
    for number in range(1, 4):
        part(tmp_path, number, 0, 900)
        rounds.append([Mark(5, 5, number, number)])
    with pytest.raises(LinkError, match="forwarded less"):
        session(tmp_path, 1)._counted(rounds)


def test_the_command_holds_simd_to_what_valgrind_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    program = FORWARDERS["testpmd-io"]
    monkeypatch.setattr(type(program), "program", lambda self: Path("/opt/fw"))
    counting = Counting(cast(RunDirectory, None), Cores(0, 1, False), 1000)
    wire = Wire(vdevs=("net_null0",), eal_options=("-d", "x.so"))
    plain = program.command(counting.cores, Memory(hugepages=False), "pre", narrowed(wire))
    assert plain is not None
    argv = counting.under_valgrind(plain, tmp_path).argv
    assert argv[:2] == ("valgrind", "--tool=callgrind")
    assert "--force-max-simd-bitwidth=256" in argv
    assert argv[argv.index("-d") + 1] == "x.so"
    assert {"--cache-sim=yes", "--branch-sim=yes", "--trace-children=yes"} <= set(argv)


AVX512 = "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C 0x48 0x11 0x5 0x74 0x38 0x0\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (AVX512, r"does not know \(AVX-512\)\n  build it without: -mno-avx512f"),
        (AVX512.replace("0x62", "0xF"), r"valgrind does not know \(0xf 0xf1"),
        (
            "valgrind: Warning: Can't execute setuid/setgid/setcap executable: /opt/fw\n",
            "/opt/fw is setuid",
        ),
    ],
)
def test_why_valgrind_ended_a_program(tmp_path: Path, log: str, words: str) -> None:
    (tmp_path / "log.5").write_text("==5== Callgrind\n")
    (tmp_path / "log.7").write_text(f"==7== Callgrind\n{log}")
    with pytest.raises(UncountableError, match=words):
        raise callgrind._said_by_valgrind(tmp_path) or AssertionError


def test_valgrind_says_nothing_of_other_ends(tmp_path: Path) -> None:
    (tmp_path / "log.5").write_text("==5== Callgrind\n")
    assert callgrind._said_by_valgrind(tmp_path) is None


def test_programs_with_rights_are_refused(tmp_path: Path) -> None:
    program = tmp_path / "fw"
    program.write_text("")
    require_plain(program, "A (fw)")
    require_plain(None, "A (fw)")
    program.chmod(0o4755)
    with pytest.raises(UncountableError, match=r"A \(fw\): .*fw is setuid"):
        require_plain(program, "A (fw)")


# -- which program a function belongs to -----------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "whose"),
    [
        ("/home/me/fw-new", "program"),
        ("/home/me/libfw.so.1", "program"),
        ("/usr/bin/dpdk-testpmd", "program"),
        ("/usr/lib/x86_64-linux-gnu/librte_ethdev.so.23.0", "dpdk"),
        ("/home/me/dpdk/lib/librte_mempool_ring.so.23", "dpdk"),
        ("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_null.so.23.0", "driver"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "system"),
        ("/lib64/ld-linux-x86-64.so.2", "system"),
        ("???", "system"),
    ],
)
def test_whose_a_file_is(path: str, whose: str) -> None:
    assert owner(path, "net_null") == whose


def test_functions_of_two_builds_are_the_same_by_name() -> None:
    def of(file: str, name: str) -> object:
        return key(Place(file, name), "net_null")

    assert of("/a/fw-old", "flush.constprop.0") == of("/b/fw-new", "flush.part.0.cold")
    assert of("/a/fw", "l2fwd::run::h0123456789abcdef") == of("/b/fw", "l2fwd::run")
    assert of("/a/fw", "run'2") == of("/a/fw", "run")
    assert of("/a/librte_eal.so.23.0", "f") == of("/b/librte_eal.so.23.1", "f")
    assert of("/a/librte_eal.so.23.0", "f") != of("/a/fw", "f")
    # Another file has something else at that address.
    assert of("/a/fw-old", "0x0000000000001d20") != of("/b/fw-new", "0x0000000000001d20")
    assert named("0x1d20", "fw-old") == "fw-old+0x1d20"
    assert named("main", None) == "main"
    assert named("f", "librte_eal.so.23.0") == "f (librte_eal.so.23.0)"


# -- messages --------------------------------------------------------------------------------------

CONTESTANTS = [
    Contestant(FORWARDERS["c-l2fwd"], "A (old)"),
    Contestant(FORWARDERS["rust-l2fwd"], "B (new)"),
]
OLD, NEW = "/opt/old", "/opt/new"
DRIVER = "/usr/lib/librte_net_null.so.23.0"


def run(
    functions: dict[tuple[str, str], float],
    arm: int = 0,
    ns: float = 1000.0,
    packets: int = 500_000,
) -> Counted:
    costs = {
        Place(*place): {"Ir": executed, "Bc": executed / 10, "D1mr": 0.5}
        for place, executed in functions.items()
    }
    return Counted(costs, packets, Window(arm, (Slice((9,), (9,), 1),)), ns)


def explained(
    a: dict[str, float],
    b: dict[str, float] | None = None,
    again: float = 1.0,
    quick: dict[str, float] | None = None,
    packets: int = 500_000,
) -> Explanation:
    """Own functions of A and B; A's second run has this many times the first's instructions."""

    def of(file: str, functions: dict[str, float]) -> dict[tuple[str, str], float]:
        return {(DRIVER, "rx"): 60.0, **{(file, name): n for name, n in functions.items()}}

    first = of(OLD, a)
    runs = Runs(
        [run(first, packets=packets), *([run(of(NEW, b), 1)] if b else [])],
        run({place: n * again for place, n in first.items()}),
        [run(of(OLD, {**a, **(quick or {})}), ns=400), *([run(of(NEW, b), 1, 400)] if b else [])],
    )
    return explanation("net_null", CONTESTANTS[: 2 if b else 1], runs)


NAMES = ["A (old)", "B (new)"]


def test_functions_that_changed_most_come_first() -> None:
    found = explained({"loop": 30, "gone": 2, "same": 8}, {"loop": 42, "new": 1, "same": 8})
    assert [(each.name, each.a, each.b) for each in found.functions] == [
        ("loop", 30, 42), ("gone", 2, None), ("new", None, 1),
    ]  # fmt: skip
    assert found.ratio == pytest.approx(111 / 100)
    assert found.a.program == 40
    assert found.a.driver == 60
    assert found.b is not None
    assert found.b.program == 51
    assert found.b.conditional_branches == pytest.approx(11.1)
    lines = sentences.lines(found)
    assert "per packet                            A          B   B over A    A again" in lines
    assert "instructions                     100.00     111.00    +11.0 %    +0.00 %" in lines
    assert "  the link's driver               60.00      60.00     +0.0 %    +0.00 %" in lines
    assert "                                  30.00      42.00     +12.00   loop" in lines
    assert "                                   2.00          -      -2.00   gone" in lines
    assert not any("same" in line for line in lines)
    assert found.left_out == 0


def test_of_many_functions_the_rest_is_told() -> None:
    before = {f"f{n}": 10.0 for n in range(12)}
    after = {**before, **{f"f{n}": 11.0 for n in range(12)}, "f0": 15.0}
    found = explained(before, after)
    assert len(found.functions) == 10
    assert found.functions[0].name == "f0"
    assert found.left_out == 2
    assert found.left_out_share == pytest.approx(2 / 16)
    assert "2 functions more with 12.5% of all changes" in sentences.lines(found)


def test_what_differs_as_much_between_two_runs_of_one_is_no_change() -> None:
    found = explained({"loop": 40}, {"loop": 41}, again=1.01)
    assert found.functions == []
    assert "no function changed" in sentences.lines(found)


def test_one_program_alone_has_its_largest_functions() -> None:
    found = explained({"loop": 30, "little": 0.01})
    assert [(each.name, each.a, each.object) for each in found.functions] == [
        ("rx", 60, "librte_net_null.so.23.0"), ("loop", 30, None),
    ]  # fmt: skip
    assert found.ratio is None
    assert found.b is None
    assert sentences.sentence(found, NAMES).startswith("A (old): 90.01 instructions per packet")
    assert not any("B" in line.split() for line in sentences.lines(found))


def test_functions_that_follow_the_clock_are_named() -> None:
    found = explained({"loop": 30, "drain": 2}, {"loop": 31}, quick={"drain": 1.5})
    assert [(each.program, each.name, each.quick, each.slow) for each in found.clock] == [
        ("A", "drain", 1.5, 2)
    ]
    assert any(
        "A (old) follows the clock" in note and "here 400 and 1000 ns: drain 1.50 and 2.00" in note
        for note in found.notes
    )
    assert not any("B (new) follows" in note for note in found.notes)


def test_a_stripped_program_and_a_static_one_are_named() -> None:
    found = explained({"0x0000000000001d20": 30, "loop": 10}, {"loop": 40})
    assert "old+0x1d20" in "".join(sentences.lines(found))
    assert any("A (old) has no symbols for 75 %" in note for note in found.notes)
    alone = run({(OLD, "rx"): 60.0})
    static = explanation("net_null", CONTESTANTS[:1], Runs([alone], alone, [alone]))
    assert any("A (old) has DPDK linked into it" in note for note in static.notes)


@pytest.mark.parametrize(
    ("case", "answer", "status", "words"),
    [
        ((2.0, 1.0, 0.01), "more", ExitStatus.SLOWER, r"2.00 % more .*: more than \+1 %"),
        ((0.5, 1.0, 0.01), "not more", ExitStatus.DONE, r"0.50 % more .*: \+1 % is not exceeded"),
        ((-9, 1.0, 0.01), "not more", ExitStatus.DONE, r"9.00 % fewer .*: \+1 % is not exceeded"),
        # More than the limit, but not by more than the tolerance.
        ((1.5, 1.008, 0.01), "not more", ExitStatus.DONE, r"tolerance 0.80 %"),
        ((9.0, 1.02, 0.01), "undecided", ExitStatus.UNDECIDED, "^Not decided: .* larger than"),
        ((9.0, 1.0, None), None, ExitStatus.DONE, r"executes 9.00 % more .* twice\)\.$"),
        ((0.0, 1.0, None), None, ExitStatus.DONE, "executes as many instructions"),
    ],
)
def test_the_answers(
    case: tuple[float, float, float | None], answer: str | None, status: ExitStatus, words: str
) -> None:
    """Instructions by which B exceeds 100; A's second run over its first; the limit."""
    more, again, most = case
    found = explained({"loop": 40}, {"loop": 40 + more}, again)
    assert sentences.answer(found, most) == answer
    assert command._STATUSES[sentences.answer(found, most)] == status
    told = sentences.sentence(found, NAMES, most)
    assert re.search(words, told), told


def test_the_tolerance_is_never_below_a_burst_at_each_end() -> None:
    assert explained({"loop": 40}, packets=10_000).tolerance == pytest.approx(0.0064)


def test_the_record_is_by_its_schema() -> None:
    found = explained({"loop": 30, "drain": 2}, {"loop": 33}, quick={"drain": 1.5})
    record = InstructionsRecord(
        programs=[given(each.program.name, each.program) for each in CONTESTANTS],
        link="null2", size=64, explanation=found, max=0.01, answer="more",
        sentence=sentences.sentence(found, NAMES, 0.01),
    )  # fmt: skip
    by_schema.check(record.model_dump(mode="json", by_alias=True), "instructions-1.json")


# -- valid options ---------------------------------------------------------------------------------

ASKED = command.Asked("null2", "1", 64, 500_000)


@pytest.mark.parametrize(
    ("text", "share"), [("+1%", 0.01), ("1 %", 0.01), ("0.01", 0.01), ("0%", 0.0), ("150%", 1.5)]
)
def test_the_limit_is_a_share(text: str, share: float) -> None:
    assert parse_max(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["-1%", "much", "", "1%%", "1e3"])
def test_other_limits_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a share"):
        parse_max(text)


def test_options_that_fit_nothing_are_refused() -> None:
    assert asked_of(ASKED, "+2%", 2).most == pytest.approx(0.02)
    assert asked_of(ASKED, None, 1) == ASKED
    with pytest.raises(UsageError, match="compares two programs"):
        asked_of(ASKED, "+2%", 1)
    with pytest.raises(UsageError, match="--packets 5: not within"):
        asked_of(command.Asked("null2", "1", 64, 5), None, 2)
    with pytest.raises(UsageError, match="--size 9: not within"):
        asked_of(command.Asked("null2", "1", 9, 500_000), None, 2)


@pytest.mark.parametrize("name", ["memif2", "veth", "tap"])
def test_links_with_a_generator_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"--link {name}: .*always delivers") as refused:
        explain.check_link(link(name))
    assert "null, null2, nearfree2" in str(refused.value)


@pytest.mark.parametrize("name", ["null", "null2", "nearfree2", "nearfree2-ip:10-routes"])
def test_links_whose_driver_always_delivers_are_not(name: str) -> None:
    explain.check_link(link(name))


def test_without_valgrind_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "fw"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match=r"valgrind is missing.*\n.*apt-get install") as missing:
        command.run(
            [f"{program} {{eal}} --"], ASKED, Console(file=io.StringIO()), json_output=False
        )
    assert missing.value.exit_code == ExitStatus.CANNOT_RUN
    with pytest.raises(MissingError):
        require_valgrind()
