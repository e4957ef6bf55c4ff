# SPDX-License-Identifier: BSD-3-Clause
"""Real runs of experiment cloud: tenants beside forwarders, a budget, two at once, random kills."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import by_schema
import pytest
from cloud_data import levels, window, work_beside
from conftest import wait_for
from test_e2e import Run, disturbed, need, runtime
from test_e2e_resume import KILLED, KILLS, Session

from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import NOBODY, place_of
from linerate.experiments.cloud.design.plan import alone
from linerate.experiments.cloud.session.exclusive import PATH
from linerate.experiments.cloud.window import levels_of
from linerate.host.exit_status import ExitStatus
from linerate.host.leftovers.traces import Traces
from linerate.records import run_file
from linerate.records.run_file import RUN
from linerate.records.trial import InvalidCode, Trial
from linerate.runs.agreement import read

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]

DESIGN_TEXT = """
note = "as little as there can be of everything"
frameworks = ["c-l2fwd", "xdp-tx"]
loads = ["mixed"]
tenants = [0, 2]
sizes = [64]
rates = [100]
blocks = {blocks}
window_s = 0.1
"""
SEARCHED_TEXT = """
note = "one framework beside one container, at rates that are looked for"
frameworks = ["xdp-tx"]
loads = ["cpu"]
tenants = [0, 1]
sizes = [64]
rates = [90]
blocks = 1
window_s = 0.1
"""
# Low enough for any machine to send on time.
RATE = "10000"
# What other work does to a window, and what a kill does to it.
DISTURBED: tuple[InvalidCode, ...] = ("late", "link")
CELLS, ALONE = 6, 1


@pytest.fixture
def design(tmp_path: Path) -> Path:
    """Return a design for what this machine has; what it lacks is reported."""
    need("l2fwd", "generator", "xdp-fwd")
    path = tmp_path / "small.toml"
    path.write_text(DESIGN_TEXT.format(blocks=1))
    told = planned(path)
    if missing := [line for line in told.splitlines() if line.startswith("missing: ")]:
        pytest.skip(f"no tenants can run here: {'; '.join(missing)}")
    return path


def planned(path: Path) -> str:
    return subprocess.run(
        [sys.executable, "-m", "linerate", "run", "cloud", "--design", str(path), "--plan"],
        check=True, capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip


def begun(runtime: Path, out: Path, design: Path, *options: str) -> Run:
    return Run(
        runtime, out, "--design", str(design), "--line-rate", RATE, *options, experiment="cloud"
    )


@dataclass(frozen=True)
class Places:
    """Everything that tenants could leave behind on the machine."""

    groups: frozenset[str]
    namespaces: frozenset[str]
    locks: frozenset[str]

    @classmethod
    def now(cls) -> Places:
        groups = Path("/sys/fs/cgroup").glob("**/linerate-*")
        return cls(
            frozenset(map(str, groups)),
            frozenset(path.name for path in Path("/run/netns").glob("linerate-*")),
            frozenset(map(str, [PATH] if PATH.exists() else [])),
        )

    def more_than(self, before: Places) -> list[str]:
        return [
            *(f"control group {name}" for name in self.groups - before.groups),
            *(f"namespace {name}" for name in self.namespaces - before.namespaces),
            *(f"lock {name}" for name in self.locks - before.locks),
        ]


def check_left(runtime: Path, before: tuple[Traces, Places]) -> None:
    left: list[str] = []

    def nothing_left() -> bool:
        left[:] = Traces.of(runtime).more_than(before[0]) + Places.now().more_than(before[1])
        return not left

    with contextlib.suppress(pytest.fail.Exception):
        wait_for("nothing to be left", nothing_left)
    assert left == []


def check_records(run: Run, blocks: int) -> list[Trial]:
    """Check that every cell of every block was measured, unless the machine was too busy."""
    trials = run.trials()
    kept = run_file.load(run.out)
    by_schema.check(json.loads((run.out / RUN).read_text()), "run-1.json")
    by_schema.check(run.summary(), "summary-1.json")
    for trial in trials:
        line = json.loads(trial.model_dump_json(by_alias=True, exclude_none=True))
        by_schema.check(line, "trial-2.json")
    asked = read(CloudDesign, kept.design, "design")
    for block in range(blocks):
        found = {place_of(t) for t in trials if t.block == block and levels_of(t)}
        assert found == {*asked.places, *alone(asked.places)}
    return trials


def test_tenants_work_beside_forwarders(tmp_path: Path, runtime: Path, design: Path) -> None:
    before = Traces.of(runtime), Places.now()
    run = begun(runtime, tmp_path / "run", design)
    code, output, errors = run.finish()
    assert code == 0, errors
    assert "A/A" in output
    trials = check_records(run, 1)
    assert (run.out / "report.html").is_file()
    for trial in trials:
        assert trial.valid or disturbed(trial, *DISTURBED), trial.invalid
        if not trial.valid:
            continue
        core = work_beside(trial).core
        assert core
        assert core.seconds > 0
        assert len(work_beside(trial).tenants) == levels(trial).tenants
        for tenant in work_beside(trial).tenants:
            assert tenant.seconds > 0
            assert tenant.io_operations is not None
            assert tenant.network_bytes is not None
            assert tenant.bogo_ops is not None
            # Together they have no more than the core.
            assert tenant.cpu_s is not None
            assert tenant.cpu_s <= core.seconds * 1.1
        if levels(trial).tenants:
            assert work_beside(trial).bridge_bytes
        if trial.arm != NOBODY:
            assert trial.request.maximum_pps == float(RATE)
            assert trial.frames.latency
            assert window(trial).forwarder_cpu_s is not None
            assert trial.frames.intended
            assert trial.frames.accepted == (trial.frames.received or 0) + (
                trial.frames.forwarder_drops or 0
            ) + sum(trial.frames.link_drops.values()) + (trial.frames.unattributed or 0)
    takeaways = run.summary()["takeaways"]
    assert {each["verdict"] for each in takeaways} <= {"held", "not held", "undecided"}
    assert [each for each in takeaways if each["origin"] == "study"]
    check_left(runtime, before)


@pytest.mark.second_tier
def test_100_percent_is_what_a_framework_carries(tmp_path: Path, runtime: Path) -> None:
    """Without --line-rate: its NDR alone, then the share that the sender keeps beside a tenant."""
    need("generator", "xdp-fwd")
    design = tmp_path / "searched.toml"
    design.write_text(SEARCHED_TEXT)
    if missing := [line for line in planned(design).splitlines() if line.startswith("missing: ")]:
        pytest.skip(f"no tenants can run here: {'; '.join(missing)}")
    before = Traces.of(runtime), Places.now()
    run = Run(runtime, tmp_path / "run", "--design", str(design), experiment="cloud")
    code, output, errors = run.finish()
    if code == ExitStatus.BUSY:
        # A machine may be too busy for any window of a search: the run says which processes it was.
        assert "the reference xdp-tx, 64 B: " in errors
        assert "run it when the machine is quieter" in errors
        return
    assert code == 0, errors
    trials = run.trials()
    searched = [trial for trial in trials if trial.role == "search"]
    tried = [trial for trial in trials if trial.role == "self-test" and levels_of(trial)]
    summary = run.summary()["cloud"]
    (own,) = summary["own_rates"]
    # A window of the search lost nothing at this rate, and the rate is reported.
    assert [
        each for each in searched if each.valid and each.frames.intended == each.frames.received
    ]
    assert f"{own['ndr_pps'] / 1000:,.1f} kpps" in output
    kept = [trial for trial in tried if trial.valid]
    assert own["pps"] <= own["ndr_pps"]
    assert {trial.request.maximum_pps for trial in kept if levels_of(trial)} == {own["ndr_pps"]}
    assert {levels(trial).tenants for trial in kept if levels_of(trial)} == {1}
    # Its cells were offered shares of that rate.
    for trial in trials:
        if trial.role != "self-test" and levels_of(trial) and trial.arm != NOBODY:
            assert trial.request.maximum_pps == pytest.approx(own["pps"])
    check_left(runtime, before)


@pytest.mark.second_tier
def test_what_does_not_fit_is_listed_and_run_later(
    tmp_path: Path, runtime: Path, design: Path
) -> None:
    before = Traces.of(runtime), Places.now()
    run = begun(runtime, tmp_path / "run", design, "--minutes", "0.06")
    code, output, errors = run.finish()
    assert code == 0, errors
    assert "--minutes 0.06: about 0 of 1 block will fit" in output
    summary = run.summary()
    assert summary["interrupted"]
    assert [each for each in summary["cloud"]["not_run"] if "--minutes" in each["reason"]]
    seen = run.trials()
    assert len({place_of(trial) for trial in seen}) < CELLS + ALONE
    for _ in range(20):
        again = Session("cloud", runtime, run.out)
        assert again.finish()[0] == 0
        done = again.trials()
        assert done[: len(seen)] == seen
        assert len(done) > len(seen)
        seen = done
        if not again.summary()["interrupted"]:
            break
    assert not run.summary()["interrupted"]
    assert not [each for each in run.summary()["cloud"]["not_run"] if "--minutes" in each["reason"]]
    check_records(run, 1)
    check_left(runtime, before)


@pytest.mark.second_tier
@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) >= 6, reason="two runs have three CPUs each, and do not wait"
)
def test_a_second_run_waits_for_the_first(tmp_path: Path, runtime: Path, design: Path) -> None:
    before = Traces.of(runtime), Places.now()
    first = begun(runtime, tmp_path / "first", design)
    first.await_trials(1)
    second = begun(runtime, tmp_path / "second", design)
    # While waiting it keeps off the CPU of the first lab's forwarder.
    wait_for(
        "the second to wait",
        lambda: len(os.sched_getaffinity(second.lab.pid)) < len(os.sched_getaffinity(0)),
        60,
    )
    first.lab.send_signal(signal.SIGINT)
    assert first.finish(60)[0] == 128 + signal.SIGINT
    second.await_trials(1)
    second.lab.send_signal(signal.SIGINT)
    assert second.finish(60)[0] == 128 + signal.SIGINT
    began = [[trial.started_at for trial in run.trials()] for run in (first, second)]
    assert max(began[0]) < min(began[1])
    check_left(runtime, before)


def test_who_is_not_root_is_told_all_that_is_missing(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    path = tmp_path / "small.toml"
    path.write_text(DESIGN_TEXT.format(blocks=1))
    asked = (
        "import os, sys;"
        "from linerate.experiments.cloud.design import needs, design_file, command_line, design;"
        "file = design_file.Read('x', design_file.parse(sys.argv[1], 'x'));"
        "places = design.design_of(command_line.options_of(file)).places;"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534);"
        "print('\\n'.join(needs.missing(places)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked, path.read_text()],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "control groups are made by root, and this is user 65534" in done.stdout
    assert "CAP_NET_ADMIN" in done.stdout
    assert len(done.stdout.splitlines()) >= 2


# --- kills -------------------------------------------------------------------------------------

VICTIMS = ("tenant", "lab", "generator", "forwarder")


def kill_one(run: Session, victim: str, moments: random.Random) -> None:
    if victim == "tenant":
        pids = [
            int(word)
            for path in Path("/sys/fs/cgroup").glob(f"**/linerate-{run.lab.pid}-*/ct*/cgroup.procs")
            for word in _text(path).split()
        ]
        for pid in moments.sample(pids, min(len(pids), 1)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        for program in {"generator": ("generator",), "forwarder": ("l2fwd", "xdp-fwd")}[victim]:
            run.kill_child(program)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.mark.second_tier
def test_killed_at_random_moments(tmp_path: Path, runtime: Path, design: Path) -> None:
    moments = random.Random("9:cloud")
    blocks = max(1, KILLS // 5)
    design.write_text(DESIGN_TEXT.format(blocks=blocks))
    out = tmp_path / "run"
    before = Traces.of(runtime), Places.now()
    options = ("--design", str(design), "--line-rate", RATE)
    run = Session("cloud", runtime, out, options)
    seen: list[Trial] = []
    victims = [VICTIMS[number % len(VICTIMS)] for number in range(KILLS)]
    moments.shuffle(victims)
    for victim in victims:
        run.await_further(len(seen) + moments.randint(0, 2))
        time.sleep(moments.uniform(0, 2))
        if victim == "lab" or not run.running:
            run.kill()
            run = Session("cloud", runtime, out, options)
        else:
            kill_one(run, victim, moments)
        done = run.trials()
        # Finished records stay as they were.
        assert done[: len(seen)] == seen
        seen = done
    code, _, errors = run.finish()
    assert code == 0, errors
    trials = check_records(run, blocks)
    assert trials[: len(seen)] == seen
    assert [trial.position for trial in trials] == list(range(len(trials)))
    for trial in trials:
        assert trial.valid or disturbed(trial, *DISTURBED, *KILLED, "tenant"), trial.invalid
    assert run_file.load(out).complete(len(trials))
    assert run.summary()["interrupted"] is False
    check_left(runtime, before)
