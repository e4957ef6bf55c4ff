# SPDX-License-Identifier: BSD-3-Clause
"""Whether two programs run the same code, with real processes of small programs."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from linerate.experiments.duel.programs import program_of
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.sentences import sentence
from linerate.experiments.duel.verdict import Verdict
from linerate.forwarders import Forwarder
from linerate.host.builds import elf
from linerate.trial.starts.code import Executables, same_code
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.start import Start

NAMES = ["A (old)", "B (new)"]
LIBRARY = "int own(void) { return %d; }\n"
# Reports that all is loaded, and waits for the end of its input.
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    if (argc > 2 && !dlopen(argv[2], RTLD_NOW))
        return 1;
    if (argc > 3 && fork() == 0) {
        while (read(0, &argc, 1) > 0)
            ;
        _exit(0);
    }
    puts("ready");
    fflush(stdout);
    return getchar() %% %d == 77;
}
"""


def made(folder: Path, divisor: int = 100, answer: int = 1) -> Path:
    """A program and a plugin in a directory, with what debuggers read, such as its path."""
    folder.mkdir()
    (folder / "main.c").write_text(PROGRAM % divisor)
    (folder / "own.c").write_text(LIBRARY % answer)
    flags = ["-g", "-O1", "-Wl,--build-id"]
    for argv in (
        ["cc", *flags, "main.c", "-o", "fw"],
        ["cc", *flags, "-shared", "-fPIC", "own.c", "-o", "own.so"],
    ):
        subprocess.run(argv, cwd=folder, check=True)
    return folder / "fw"


def dpdk(path: Path, words: str = "", letter: str = "A") -> Forwarder:
    """As a command line in quotes names it."""
    return program_of(f"{shlex.quote(str(path))} {{eal}} {words}", letter)


@contextmanager
def running(*argvs: Sequence[str | Path]) -> Iterator[list[Start]]:
    """Starts of A, B and so on."""
    with ExitStack() as stack:
        found = []
        for arm, argv in enumerate(argvs):
            process = stack.enter_context(
                subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            found.append(cast(Start, SimpleNamespace(arm=arm, pid=process.pid)))
        yield found


def test_what_debuggers_read_does_not_count(tmp_path: Path) -> None:
    one, other = made(tmp_path / "a"), made(tmp_path / "b")
    assert one.read_bytes() != other.read_bytes()
    assert elf.loaded_digest(one) == elf.loaded_digest(other)
    assert elf.loaded_digest(one) != elf.loaded_digest(made(tmp_path / "c", divisor=101))
    with pytest.raises(elf.UnreadableError):
        elf.loaded_digest(tmp_path / "a" / "main.c")
    short = tmp_path / "short"
    short.write_bytes(one.read_bytes()[:70])
    with pytest.raises(elf.UnreadableError):
        elf.loaded_digest(short)


@pytest.mark.parametrize(
    ("divisor", "plugin", "same"), [(100, 1, True), (101, 1, False), (100, 2, False)]
)
def test_programs_and_the_plugins_that_they_opened(
    tmp_path: Path, divisor: int, plugin: int, same: bool
) -> None:
    """The command lines are the same, but each program finds the plugin in its own directory."""
    one, other = made(tmp_path / "a"), made(tmp_path / "b", divisor, plugin)
    programs = [dpdk(one), dpdk(other, letter="B")]
    argvs = [(each, "eal", each.with_name("own.so")) for each in (one, other)]
    with running(*argvs) as starts:
        assert same_code(programs, starts) is same


def test_other_arguments_other_environment_and_what_is_no_such_program(tmp_path: Path) -> None:
    one, other = made(tmp_path / "a"), made(tmp_path / "b")
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nexec {one} eal\n")
    script.chmod(0o755)
    kernel = [program_of(f"{each} {{rx}} {{tx}}", "A") for each in (one, other)]
    with running((one, "eal"), (other, "eal")) as starts:
        assert same_code([dpdk(one), dpdk(other)], starts)
        assert not same_code([dpdk(one), dpdk(other, "--slow")], starts)
        # A script starts another program, and shows nothing of it.
        assert not same_code([dpdk(script), dpdk(script)], starts)
        # The kernel runs what such a program loads.
        assert not same_code(kernel, starts)
        # Other processes may do the work.
        with running((one, "eal", one.with_name("own.so"), "fork"), (other, "eal")) as parents:
            assert not same_code([dpdk(one), dpdk(other)], parents)
        # One of the two is not there.
        assert not same_code([dpdk(one), dpdk(other)], starts[:1])


def test_a_program_that_was_replaced_while_it_runs(tmp_path: Path) -> None:
    one, other = made(tmp_path / "a"), made(tmp_path / "b")
    with running((one, "eal"), (other, "eal")) as starts:
        made(tmp_path / "c").replace(other)
        assert not same_code([dpdk(one), dpdk(other)], starts)


def duel(rounds: Sequence[Sequence[float]], *, same: bool | None) -> Duel:
    """A duel with rounds in which B's four starts had these rates, and A's about 100."""
    verdict = Verdict(0.02)
    for number, starts in enumerate(rounds):
        first = [99.0 + number / 8, 101.0, 100.0, 100.5]
        verdict.add(first[:: 1 - 2 * (number % 2)], starts)
    found = Duel(verdict, same_code=same, took_s=12.0)
    found.rounds = [cast(object, None)] * len(rounds)  # type: ignore[list-item]
    return found


LIKE = [[98.0, 102.5, 100.2, 99.1], [97.0, 103.0, 101.2, 98.5], [99.3, 100.9, 96.0, 104.0]]
SLOW = [[50.0, 51.0, 52.0, 53.0]] * 6


def test_the_same_code_answers_after_three_rounds() -> None:
    assert duel(LIKE[:2], same=True).answer == "undecided"
    assert duel(LIKE, same=False).answer == "undecided"
    found = duel(LIKE, same=True)
    assert (found.answer, found.by_code) == ("equal", True)
    assert sentence(found, NAMES, Asked()).startswith(
        "B (new) is as fast as A (old): both run the same code, byte for byte, with the same "
        "arguments"
    )


def test_figures_that_differ_come_before_the_code() -> None:
    """What a program reads is not compared."""
    found = duel(SLOW, same=True)
    assert (found.answer, found.by_code) == ("slower", False)


def test_a_ratio_beyond_the_margin_is_measured_on() -> None:
    """Three rounds of two starts each cannot show a direction, however slow one is."""
    verdict = Verdict(0.02)
    for _ in range(3):
        verdict.add([100.0, 101.0], [50.0, 51.0])
    assert not verdict.direction
    assert Duel(verdict, same_code=True).answer == "undecided"
    for _ in range(3):
        verdict.add([100.0, 101.0], [50.0, 51.0])
    assert Duel(verdict, same_code=True).answer == "slower"


def test_code_of_no_file_is_not_compared(tmp_path: Path) -> None:
    """For example from a just-in-time compiler, or a program that unpacks itself."""
    text = (
        "#include <stdio.h>\n#include <sys/mman.h>\n"
        "int main(void) {\n"
        "    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
        '    puts("ready");\n    fflush(stdout);\n    return getchar() == 77;\n}\n'
    )
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
        (folder / "main.c").write_text(text)
        subprocess.run(["cc", "main.c", "-o", "fw"], cwd=folder, check=True)
    one, other = (folder / "fw" for folder in folders)
    with running((one, "eal"), (other, "eal")) as starts:
        assert not same_code([dpdk(one), dpdk(other)], starts)


def test_one_file_by_two_names(tmp_path: Path) -> None:
    """As with busybox, which does what its name says."""
    one = made(tmp_path / "a")
    same, other = tmp_path / "fw", tmp_path / "bridge"
    for link in (same, other):
        link.symlink_to(one)
    with running((one, "eal"), (one, "eal")) as starts:
        assert same_code([dpdk(one), dpdk(same)], starts)
        assert not same_code([dpdk(one), dpdk(other)], starts)


def test_a_program_that_is_built_anew_during_the_duel_is_a_fault(tmp_path: Path) -> None:
    one, other = made(tmp_path / "a"), made(tmp_path / "b")
    programs = [dpdk(one), dpdk(other, letter="B")]
    for program in programs:
        program.prepare()
    executables = Executables(programs)
    executables.check()
    made(tmp_path / "c").replace(other)
    with pytest.raises(FaultError, match="not the file that it was") as raised:
        executables.check()
    assert (raised.value.arm, raised.value.kind) == (1, "replaced")
    other.unlink()
    with pytest.raises(FaultError):
        executables.check()
