# SPDX-License-Identifier: BSD-3-Clause
"""Real runs: forwarders, generator and links of this machine, a few blocks each."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import by_schema
import pytest
from conftest import wait_for

from linerate.host.builds.bench_programs import nearfree_obstacle
from linerate.host.builds.compilers import clang
from linerate.host.exit_status import ExitStatus
from linerate.host.machine import hugepage_memory_mib
from linerate.host.places import project_root
from linerate.links.eal import MEMORY_MIB
from linerate.records import trial as records

pytestmark = pytest.mark.e2e

BENCH = project_root() / "bench" / "lab"
RELEASE = project_root() / "target" / "release"


def need(*programs: str) -> None:
    missing = [name for name in programs if not (RELEASE / name).is_file()]
    if missing:
        pytest.fail(f"not built: {', '.join(missing)}. Run: make build")


@contextlib.contextmanager
def empty_before_and_after() -> Iterator[Path]:
    """The run directory's parent: a short path of its own."""
    base = Path(f"/tmp/lr-e2e-{os.getpid()}")
    base.mkdir(mode=0o700)
    yield base
    left = [str(path) for path in base.rglob("*")]
    for path in sorted(base.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    base.rmdir()
    assert left == []


@pytest.fixture
def runtime() -> Iterator[Path]:
    with empty_before_and_after() as base:
        yield base


# Frames/s of which any machine can send a share on time; otherwise 100 % is what peers carry.
EASY = "200000"
# One forwarder per language, and the smallest possible run.
BOTH = ("--forwarders", "c-l2fwd,rust-l2fwd")
LEAST = ("--forwarders", "rust-l2fwd", "--no-probe")


class Run:
    """One `linerate run` in the background.

    A busy machine may spoil any number of trials; the tests look at the others.
    """

    def __init__(
        self,
        runtime: Path,
        out: Path,
        *options: str,
        hugepages: str = "no",
        experiment: str = "overload",
    ) -> None:
        self.out = out
        self.runtime = runtime
        always = ["--out", str(out), "--hugepages", hugepages, "--keep-going"]
        self.lab = subprocess.Popen(
            [sys.executable, "-m", "linerate", "run", experiment, *always, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        )

    def finish(self, timeout_s: float = 300) -> tuple[int, str, str]:
        try:
            output, errors = self.lab.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.lab.terminate()
            output, errors = self.lab.communicate(timeout=30)
            pytest.fail(f"not done after {timeout_s:g} s\n{output}\n{errors}")
        return self.lab.returncode, output, errors

    def trials(self) -> list[records.Trial]:
        path = self.out / "records.jsonl"
        return records.read(path) if path.exists() else []

    def await_trials(self, count: int) -> None:
        """Wait for records; a lab that gave up (its core is taken) fails at once."""
        wait_for(
            f"{count} trials",
            lambda: len(self.trials()) >= count or self.lab.poll() is not None,
            180,
        )
        if len(self.trials()) < count:
            pytest.fail(f"the lab ended early: {self.finish()[2]}")

    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "summary.json").read_text())
        return found

    def children(self, program: str) -> list[int]:
        """Return the pids of the lab's own children that run this program."""
        found = []
        tasks = Path(f"/proc/{self.lab.pid}/task").glob("*/children")
        for pid in [int(word) for task in tasks for word in task.read_text().split()]:
            try:
                first = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
            except OSError:
                continue
            if Path(first).name == program:
                found.append(pid)
        return found


# Reasons for which a machine with other work may invalidate a trial.
LATE: records.InvalidCode = "late"
STARVED: records.InvalidCode = "starved"
SILENT: records.InvalidCode = "telemetry"
# Its counters could not be read in time.
UNREADABLE: records.InvalidCode = "unreadable"


def disturbed(trial: records.Trial, *codes: records.InvalidCode) -> bool:
    return trial.invalid_code in (*codes, UNREADABLE)


def kill_in_mid_trial(run: Run, victim: str, within: int) -> int:
    """Kill `victim` until one of the next trials, at most so many, reports it: a process that was
    just ending does not count.

    Returns how many trials were done before.
    """
    for _ in range(10):
        wait_for(f"a running {victim}", lambda: run.children(victim), 60)
        done = len(run.trials())
        for pid in run.children(victim):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.await_trials(done + within)
        if any("killed by signal 9" in (trial.invalid_why or "") for trial in run.trials()[done:]):
            return done
    pytest.fail(f"no trial noticed the end of its {victim}")


def check_files(run: Run) -> None:
    for line in (run.out / "records.jsonl").read_text().splitlines():
        by_schema.check(json.loads(line), "trial-2.json")
    by_schema.check(run.summary(), "summary-1.json")
    assert (run.out / "report.html").stat().st_size > 10_000


@dataclass(frozen=True)
class Ended:
    """A run that is over, which tests only read."""

    run: Run
    output: str
    # The directory in which its files were made.
    folder: Path


def ended(folder: Path, *options: str) -> Ended:
    """Return an ended run of `overload` in this folder, which left nothing where it ran."""
    with empty_before_and_after() as base:
        run = Run(base, folder / "run", *options)
        code, output, errors = run.finish()
        assert code == 0, errors
    check_files(run)
    return Ended(run, output, folder)


@pytest.fixture(scope="module")
def null2_run(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run with a user's program: the lab's own, under another name."""
    need("l2fwd", "reflect")
    folder = tmp_path_factory.mktemp("null2")
    (folder / "fwd").symlink_to(RELEASE / "l2fwd")
    mine = folder / "mine.toml"
    mine.write_text(
        'name = "mine"\nkind = "dpdk"\ncommand = "./fwd {eal} -- -p {portmask} -q {ports} -T 0"\n'
        'directory = "."\nstop = { signal = "SIGTERM" }\n'
    )
    return ended(
        folder, "--link", "null2", "--blocks", "1", "--seed", "7",
        "--forwarders", f"c-l2fwd,rust-l2fwd,{mine}",
    )  # fmt: skip


def memif2_ended(folder: Path) -> Ended:
    need("l2fwd", "reflect", "generator")
    return ended(folder, "--link", "memif2", "--blocks", "1", "--line-rate", EASY, *BOTH)


def check_without_generator(found: Ended, *links: str) -> None:
    run, output = found.run, found.output
    summary = run.summary()
    trials = run.trials()
    if all(trial.valid for trial in trials):
        assert {c["verdict"] for c in summary["comparisons"]} == {"undecided"}
    assert summary["tsc_hz"] > 1e8
    for trial in trials:
        # A forwarder that shares its core answers late if the machine stands still for seconds.
        assert trial.valid or disturbed(trial, STARVED, SILENT), trial.invalid
        if not trial.has_frames:
            continue
        assert trial.window_cycles_per_packet is not None
        assert trial.window_cycles_per_packet > 1
        assert trial.program.processes[0].cpus == [max(os.sched_getaffinity(0))]
    assert "cycles/packet" in output
    # Null ports always have a burst, and the probe sees it in C and in Rust.
    seen = [trial for trial in trials if trial.role == "probed" and trial.frames.duration_s]
    for link in links:
        probed = {trial.forwarder for trial in seen if trial.cell.name == link}
        assert probed >= {"c-l2fwd", "rust-l2fwd", "testpmd-io"}
    assert [trial.frames.average_rx_burst for trial in seen] == [32] * len(seen)
    assert {trial.program.probe for trial in trials if trial.role != "probed"} == {False}


def test_null2(null2_run: Ended) -> None:
    check_without_generator(null2_run, "null2")


@pytest.mark.second_tier
def test_null_and_null2(tmp_path: Path) -> None:
    need("l2fwd", "reflect")
    found = ended(tmp_path, "--link", "null,null2", "--blocks", "1", "--seed", "7", *BOTH)
    check_without_generator(found, "null", "null2")


def check_polling(trial: records.Trial) -> None:
    """Check that the probe looks in the trials that are only for that, and at every program."""
    if trial.role in ("measure", "self-test"):
        assert trial.frames.polling is None
        assert not any("-d" in process.argv for process in trial.program.processes)
    elif trial.valid:
        seen = sum(entry.packets for entry in trial.frames.polling or ())
        received = trial.frames.forwarder_rx or 0
        # Polls are read within a flood, and around paced frames.
        assert 0 < seen < received if trial.request.load == "flood" else seen == received


def check_books(found: Ended, link: str, sizes: tuple[int, ...]) -> None:
    run, output = found.run, found.output
    summary = run.summary()
    assert summary["books_checked"] == sum(trial.valid for trial in run.trials())
    assert summary["books_closed"] is (True if summary["books_checked"] else None)
    assert [(cell["link"], cell["size"]) for cell in summary["cells"]] == [
        (link, size) for size in sizes
    ]
    # A line rate far below what the link carries is the user's choice.
    assert {cell["ceiling"]["peer"] for cell in summary["cells"]} == {"--line-rate"}
    trials = run.trials()
    for size in sizes:
        mine = [t for t in trials if t.cell.key[1] == size]
        assert {(t.role, t.request.load) for t in mine} == {
            ("measure", "flood"), ("self-test", "flood"), ("probed", "flood"),
            ("lower-load", "paced"),
        }  # fmt: skip
    for trial in trials:
        # The books close in each trial, even if the machine disturbed it.
        assert trial.valid or disturbed(trial, LATE, STARVED), trial.invalid
        assert trial.request.load == "paced" or not disturbed(trial, LATE)
        sent = (
            (trial.frames.accepted or 0)
            + (trial.frames.lost_at_ingress or 0)
            + (trial.frames.refused or 0)
        )
        assert trial.frames.attempted == sent > 0
        assert trial.frames.accepted == (trial.frames.received or 0) + (
            trial.frames.forwarder_drops or 0
        )
        assert trial.frames.unattributed == 0
        assert trial.frames.accepted == trial.frames.forwarder_rx
        assert trial.frames.received == trial.frames.forwarder_tx
        check_polling(trial)
    blocks = {
        (t.cell.key[1], t.block): [
            o.role for o in trials if (o.cell.key[1], o.block) == (t.cell.key[1], t.block)
        ]
        for t in trials
        if t.role == "measure"
    }
    assert all(roles.count("self-test") == 2 for roles in blocks.values())
    assert "gen TX" in output


def test_memif2_closes_its_books(memif2_run: Ended) -> None:
    check_books(memif2_run, "memif2", (64,))


@pytest.mark.second_tier
def test_memif_closes_its_books(tmp_path: Path) -> None:
    need("l2fwd", "reflect", "generator")
    found = ended(
        tmp_path, "--link", "memif", "--blocks", "1", "--sizes", "64,1518", "--line-rate", EASY,
        *BOTH,
    )  # fmt: skip
    check_books(found, "memif", (64, 1518))


def ends(runtime: Path, kind: str, place: int) -> list[str]:
    """Return options for a pair of virtual devices on one socket."""
    socket = runtime / f"{kind}{place}.sock"
    generator, forwarder = {
        "memif": (
            f"vdev:net_memif{place},role=server,socket={socket},socket-abstract=no",
            f"vdev:net_memif{place},role=client,socket={socket},socket-abstract=no",
        ),
        "vhost": (f"vhost:{socket}", f"vdev:net_virtio_user{place},path={socket}"),
    }[kind]
    return ["--generator-port", generator, "--forwarder-port", forwarder]


@pytest.mark.parametrize(
    ("kind", "count", "forwarders"),
    [
        pytest.param("memif", 1, "c-l2fwd,rust-l2fwd", marks=pytest.mark.second_tier),
        pytest.param("memif", 2, "c-l2fwd,rust-l2fwd", marks=pytest.mark.second_tier),
        pytest.param("vhost", 1, "c-l2fwd,rust-l2fwd", marks=pytest.mark.second_tier),
        ("vhost", 1, "c-l2fwd"),
    ],
)
def test_own_devices_close_their_books(
    tmp_path: Path, runtime: Path, kind: str, count: int, forwarders: str
) -> None:
    need("l2fwd", "reflect", "generator")
    run = Run(
        runtime, tmp_path / "run", "--link", "ports", "--blocks", "1", "--no-probe",
        "--forwarders", forwarders,
        *(word for place in range(count) for word in ends(runtime, kind, place)),
        # After loads were set to shares of what the peers carry.
        *(["--line-rate", EASY] if (kind, count) != ("memif", 1) else []),
    )  # fmt: skip
    code, output, errors = run.finish()
    assert code == 0, errors
    check_files(run)
    assert "ports, 64 B" in output
    trials = run.trials()
    assert {trial.cell.name for trial in trials} == {"ports"}
    assert {trial.arm for trial in trials} >= {"c-l2fwd-again", *forwarders.split(",")}
    carried = [trial for trial in trials if trial.frames.accepted]
    assert carried
    for trial in carried:
        assert trial.valid or disturbed(trial, LATE, STARVED), trial.invalid
        assert trial.frames.accepted == trial.frames.forwarder_rx
        assert trial.frames.received == trial.frames.forwarder_tx
        assert trial.frames.accepted == (trial.frames.received or 0) + (
            trial.frames.forwarder_drops or 0
        )


def test_with_hugepages(tmp_path: Path, runtime: Path) -> None:
    need("l2fwd", "reflect", "generator")
    free = hugepage_memory_mib()
    if free < 2 * MEMORY_MIB:
        pytest.skip(f"{free} MiB of free hugepages, {2 * MEMORY_MIB} are needed")
    run = Run(
        runtime, tmp_path / "run", "--link", "memif", "--blocks", "1", "--line-rate", EASY,
        # Of the programs in C, testpmd is always installed.
        "--forwarders", "rust-l2fwd", hugepages="yes",
    )  # fmt: skip
    code, _, errors = run.finish()
    assert code == 0, errors
    check_files(run)
    for trial in run.trials():
        assert trial.program.memory == "hugepages"
        assert all("--in-memory" in process.argv for process in trial.program.processes)
        assert trial.valid or disturbed(trial, LATE, STARVED), trial.invalid
    assert run.summary()["books_closed"] is not False
    # No hugepage is held: EAL makes no files with --in-memory, and the processes have ended.
    wait_for("free hugepages", lambda: hugepage_memory_mib() >= free)


PEERS = [
    "c-l2fwd",
    "c-l2fwd-native",
    "plain-c",
    "plain-c-burst",
    "raw-rust",
    "raw-rust-burst",
    "slowed-10",
]


def nearfree_or_skip() -> None:
    if obstacle := nearfree_obstacle():
        pytest.skip(obstacle)


@pytest.mark.second_tier
@pytest.mark.parametrize("compiler", ["cc", "clang"])
def test_the_peers_of_the_benchmark(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("LINERATE_FORWARDERS", str(BENCH / "linerate_bench" / "forwarders"))
    monkeypatch.setenv("PYTHONPATH", str(BENCH))
    need("l2fwd", "raw-l2fwd")
    nearfree_or_skip()
    names = [*PEERS, "rust-l2fwd", "rust-l2fwd-burst"]
    if compiler == "clang":
        if clang() is None:
            pytest.skip("there is no clang here: make bench installs it")
        names = ["c-l2fwd", "c-l2fwd-clang", "c-l2fwd-clang-native"]
    run = Run(
        runtime, tmp_path / "run", "--link", "nearfree2", "--blocks", "1", "--no-probe",
        "--forwarders", ",".join(names),
    )  # fmt: skip
    code, _, errors = run.finish()
    assert code == 0, errors
    check_files(run)
    trials = run.trials()
    assert {trial.forwarder for trial in trials if trial.role == "measure"} == set(names)
    for trial in trials:
        assert trial.valid or disturbed(trial, STARVED), trial.invalid
        assert (trial.frames.forwarder_rx or 0) > 1_000_000
    goals = subprocess.run(
        [sys.executable, "-m", "linerate_bench.goals", str(run.out / "records.jsonl")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert goals.returncode == 0, goals.stderr
    measured = {trial.forwarder for trial in trials if trial.role == "measure" and trial.valid}
    # One block: cells that the machine disturbed have no ratio.
    if measured == set(names):
        assert all(name in goals.stdout for name in names if name.startswith("rust"))


def test_a_program_of_the_reader_s(null2_run: Ended) -> None:
    """By its definition: under its own name, beside the same program under the lab's."""
    run = null2_run.run
    trials = [trial for trial in run.trials() if trial.forwarder == "mine"]
    assert {trial.role for trial in trials} == {"measure", "probed"}
    known = json.loads((run.out / "run.json").read_text())["sessions"][0]["forwarders"]
    for trial in trials:
        assert trial.valid or disturbed(trial, STARVED), trial.invalid
        assert trial.program is not None
        assert trial.program.described
        assert trial.program.described.definition == known["mine"]["sha256"]
        assert trial.program.processes[0].argv[0] == str(null2_run.folder / "fwd")
        assert (trial.frames.polling is not None) == (trial.role == "probed")


def test_instructions_are_counted(runtime: Path) -> None:
    nearfree_or_skip()
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: make bench-packages (Debian: valgrind)")
    done = subprocess.run(
        [sys.executable, "-m", "linerate_bench.instructions", "plain-c-burst", "no-such-forwarder"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(BENCH)},
    )
    assert done.returncode == ExitStatus.CANNOT_RUN
    assert done.stderr == "instructions per packet: not counted: no-such-forwarder\n"
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()[2:]}
    own, driver, others = map(float, lines["plain-c-burst"])
    # At least two stores for the addresses, and the cost of polling.
    assert 2 < own < 100
    assert 1 < driver < 100
    assert others < 1
    assert lines["no-such-forwarder"][0] == "absent:"


@pytest.mark.parametrize(
    ("victim", "method"),
    [
        ("l2fwd", "auto"),
        pytest.param("l2fwd", "fresh", marks=pytest.mark.second_tier),
        pytest.param("generator", "fresh", marks=pytest.mark.second_tier),
    ],
)
def test_a_process_killed_in_mid_trial_makes_that_trial_invalid(
    tmp_path: Path, runtime: Path, victim: str, method: str
) -> None:
    """Alone, or as one of two of four, in any order, that run together and take turns."""
    most, within, blocks = (1, 2, 2) if method == "fresh" else (2, 5, 1)
    need("l2fwd", "reflect", "generator")
    run = Run(
        runtime, tmp_path / "run", "--link", "memif", "--blocks", str(blocks), "--no-probe",
        "--forwarders", "c-l2fwd", "--line-rate", EASY, "--method", method, "--seed", "1",
    )  # fmt: skip
    wait_for(
        "a measured trial",
        lambda: any(t.role == "measure" for t in run.trials()) and run.children(victim),
        90,
    )
    done = kill_in_mid_trial(run, victim, within)
    code, _, errors = run.finish()
    assert code == 0, errors
    check_files(run)
    killed = [t for t in run.trials() if "killed by signal 9" in (t.invalid_why or "")]
    assert 1 <= len(killed) <= most
    assert all(done <= t.position < done + within for t in killed)
    # The run continued: later trials were measured. Other disturbed trials are listed.
    after = [t for t in run.trials() if t.position > killed[-1].position]
    sound = [t for t in after if t.valid or disturbed(t, LATE, STARVED)]
    assert len(sound) >= 4, [t.invalid for t in after]
    assert not [t for t in after if "killed" in (t.invalid_why or "")]


def test_interrupted(tmp_path: Path, runtime: Path) -> None:
    """SIGINT ends a run of `rfc2544` in its own test."""
    need("l2fwd", "reflect")
    run = Run(runtime, tmp_path / "run", "--link", "null", "--blocks", "50", *LEAST)
    run.await_trials(3)
    run.lab.send_signal(signal.SIGTERM)
    code, _, errors = run.finish(60)
    assert code == 128 + signal.SIGTERM
    assert "linerate: interrupted\n" in errors
    assert f"to go on with this run: linerate run overload --resume {run.out}" in errors
    assert run.summary()["interrupted"] is True
    check_files(run)


def test_sigkill_of_the_lab_leaves_whole_records_and_the_next_run_cleans_up(
    tmp_path: Path, runtime: Path
) -> None:
    need("l2fwd", "reflect")
    run = Run(runtime, tmp_path / "run", "--link", "null", "--blocks", "50", *LEAST)
    run.await_trials(3)
    wait_for("a forwarder", lambda: run.children("l2fwd"), 30)
    pids = run.children("l2fwd")
    run.lab.kill()
    run.lab.communicate(timeout=30)
    wait_for("the forwarder's end", lambda: not any(Path(f"/proc/{p}").exists() for p in pids))
    assert (run.out / "records.jsonl").read_text().endswith("\n")
    assert list(runtime.iterdir())
    again = Run(runtime, tmp_path / "again", "--link", "null", "--blocks", "1", *LEAST)
    code, _, errors = again.finish()
    assert code == 0, errors


@pytest.mark.second_tier
def test_a_socket_that_is_taken_is_no_obstacle(tmp_path: Path, runtime: Path) -> None:
    """Two labs at once: each has its own run directory and prefixes."""
    need("l2fwd", "reflect")
    options = ("--link", "null", "--blocks", "1", *LEAST)
    runs = [Run(runtime, tmp_path / str(n), *options) for n in range(2)]
    ended = [run.finish() for run in runs]
    assert 0 in [code for code, _, _ in ended], ended
    for code, _, errors in ended:
        assert code == 0 or "is taken" in errors, errors
