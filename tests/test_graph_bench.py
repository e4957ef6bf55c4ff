# SPDX-License-Identifier: BSD-3-Clause
"""`graph-bench`: every arm of a cell does the same work, and wrong requests get an error."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linerate.experiments.graph.cells import BASE, COPIES, ORDERING, WAYS
from linerate.experiments.graph.choice import CHOSEN_IN
from linerate.experiments.graph.design import cells_of, planned
from linerate.experiments.graph.options import Options
from linerate.experiments.graph.presets import PRESETS
from linerate.experiments.graph.running.conversation import Asked, CellOffer, Conversation, Slice
from linerate.experiments.graph.running.programs import (
    C_BUILDS,
    NATIVE_SUFFIX,
    PROGRAM,
    Programs,
    find,
)
from linerate.host.cores import cpus
from linerate.host.errors import MissingError
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory
from linerate.links.eal import Memory
from linerate.runs.plans.blocks import too_few_blocks

EAL = ["--no-huge", "--no-pci", "--no-shconf", "-m", "256", "--log-level", "warning"]
TIMEOUT_S = 60.0
# Nodes that look at one object at a time, and those of batches.
FUSED = ("fused/singles", "fused/batches")


class Bench:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tell(self, line: str) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def ask(self, **request: Any) -> dict[str, Any]:
        return self.tell(json.dumps(request))


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Skip if the program is not built. CI builds it, and does not allow this skip
    (.ci/allowed-skips).
    """
    try:
        rust_binary(PROGRAM, target="graph-bench")
    except MissingError as error:
        pytest.skip(f"{error.message}: {error.hint}")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Run the program with one build of the C nodes: gcc needs half a minute for each."""
    with running(find(["gcc"]), tmp_path_factory) as program:
        yield program


@contextlib.contextmanager
def running(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    assert programs.libraries, programs.left_out
    runtime = str(tmp_path_factory.mktemp("graph-bench"))
    argv = [str(programs.rust), *EAL, "--file-prefix", "graph-bench", "--"]
    for name, path in programs.libraries.items():
        argv += ["--library", f"{name}={path}"]
    with subprocess.Popen(
        argv,
        env={**os.environ, "RUNTIME_DIRECTORY": runtime, "XDG_RUNTIME_DIR": runtime},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Bench(process)
            assert process.stdin
            process.stdin.close()
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()


def test_all_arms_of_every_cell_do_the_same_work(bench: Bench) -> None:
    same_work(bench)


@pytest.mark.second_tier
def test_every_build_of_the_c_nodes_does_the_same_work(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    programs = find()
    assert set(programs.libraries) == set(C_BUILDS), programs.left_out
    with running(programs, tmp_path_factory) as bench:
        same_work(bench)


def same_work(bench: Bench) -> None:
    """Every arm of every cell does what its other arms do."""
    cells = bench.ask(do="cells")["cells"]
    arms = {arm for each in cells for arm in each["arms"]}
    assert {"c-graph/gcc", "rust-graph", *FUSED, "one-loop"} <= arms
    for each in cells:
        cell, walks = each["cell"], 3
        work = set()
        for arm in each["arms"]:
            ran = bench.ask(do="run", cell=cell, arm=arm, walks=walks)
            assert "error" not in ran, ran
            assert (ran["cell"], ran["arm"], ran["walks"]) == (cell, arm, walks)
            assert ran["objects"] == ran["sunk"] > 0, ran
            work.add(ran["work"])
        assert len(work) == 1, (cell, work)
        kind = cell.split("/")[2]
        assert (work == {untouched(bench)}) == (kind == "none"), cell


def untouched(bench: Bench) -> str:
    """Return the digest of packets that no node has written to."""
    ran = bench.ask(do="run", cell="chain4/swap/none/nostats/256", arm="fused/singles", walks=1)
    return str(ran["work"])


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_reject(bench: Bench, name: str) -> None:
    offers = [CellOffer.model_validate(each) for each in bench.ask(do="cells")["cells"]]
    asked = Options(preset=PRESETS[name])
    asked.plan = planned(asked, offers)
    assert too_few_blocks(cells_of(asked), CHOSEN_IN) == []
    names = {each.cell for each in asked.plan}
    assert {f"chain4/{each}/hash5/nostats/256" for each in (*ORDERING, *COPIES)} <= names
    assert {f"{each}/assign1/hash5/nostats/256" for each in WAYS.values()} <= names


def test_what_is_without_meaning_is_absent(bench: Bench) -> None:
    for each in bench.ask(do="cells")["cells"]:
        passing, work = each["cell"].split("/")[1:3]
        singles, batches = (arm in each["arms"] for arm in FUSED)
        assert singles == (not passing.startswith("copy"))
        assert batches == (passing in ("swap", "speculate"))
        assert ("one-loop" in each["arms"]) == (work != "none")


def test_the_arms_of_another_build_have_names_of_their_own() -> None:
    with RunDirectory() as run:
        command = find(["gcc"]).command(
            native=True,
            cpu=cpus.Cores.choose().forwarder,
            memory=Memory.choose("no"),
            prefix=run.new_prefix("graph"),
        )
        with Conversation(command, run, NATIVE_SUFFIX) as talk:
            arms = {arm for offer in talk.cells() for arm in offer.arms}
            ours = ("rust-graph", *FUSED, "one-loop")
            assert arms == {arm + NATIVE_SUFFIX for arm in ours}
            (ran,) = talk.slices([Asked(BASE, "rust-graph/native", 3)])
            assert isinstance(ran, Slice)
            assert (ran.walks, ran.sunk) == (3, 3 * 256)


def test_slices_of_arms_that_stay_open_do_the_same_work_in_any_order(bench: Bench) -> None:
    """So do two slices of one arm, and graphs with and without statistics beside each other."""
    cells = [f"chain4/assign1/hash5/{stats}/256" for stats in ("stats", "nostats")]
    arms = ["c-graph/gcc", "rust-graph", "fused/singles", "one-loop"]
    asked = [
        {"cell": cell, "arm": arm, "walks": 5, "again": again}
        for cell in cells
        for arm in arms
        for again in (False, True)
    ]
    for order in (asked, asked[::-1], asked):
        found = bench.ask(do="slices", of=order)["slices"]
        assert [(each["cell"], each["arm"]) for each in found] == [
            (each["cell"], each["arm"]) for each in order
        ]
        assert {each["work"] for each in found} == {found[0]["work"]}
        assert {(each["walks"], each["objects"], each["sunk"]) for each in found} == {
            (5, 5 * 256, 5 * 256)
        }
        assert all(each["waited_ns"] is None or each["waited_ns"] >= 0 for each in found)
    whole = bench.ask(do="run", cell=cells[0], arm="one-loop", walks=5)
    assert whole["work"] == found[0]["work"]


def test_what_no_slice_can_be_of_is_told_in_its_place(bench: Bench) -> None:
    good = {"cell": BASE, "arm": "rust-graph", "walks": 2}
    bad = [{**good, "arm": "fused"}, {**good, "walks": 0}, {**good, "cell": "chain9"}, {}]
    found = bench.ask(do="slices", of=[good, *bad, good])["slices"]
    assert [("error" in each) for each in found] == [False, True, True, True, True, False]
    assert "has no arm" in found[1]["error"]
    assert '"of" is a list' in bench.ask(do="slices")["error"]


def test_a_time_is_as_good_as_a_number_of_walks(bench: Bench) -> None:
    ran = bench.ask(do="run", cell="chain4/swap/hash5/nostats/256", arm="rust-graph", us=5000)
    assert ran["walks"] > 1
    assert ran["objects"] == ran["sunk"] == ran["walks"] * 256


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("walk", "no JSON"),
        ("{}", '"do" is "cells", "run" or "slices"'),
        (
            '{"do":"run","cell":"chain9","arm":"fused/singles","walks":1}',
            'there is no cell "chain9"',
        ),
        (
            '{"do":"run","cell":"chain4/copy8/none/nostats/256","arm":"fused/singles","walks":1}',
            "has no arm",
        ),
        (
            '{"do":"run","cell":"chain4/swap/none/nostats/256","arm":"c-graph/tcc","walks":1}',
            "has no arm",
        ),
        (
            '{"do":"run","cell":"chain4/swap/none/nostats/256","arm":"fused/singles"}',
            '"walks" is 1 to',
        ),
        (
            '{"do":"run","cell":"chain4/swap/none/nostats/256","arm":"fused/singles","walks":0}',
            '"walks" is 1 to',
        ),
        (
            '{"do":"run","cell":"chain4/swap/none/nostats/256","arm":"fused/singles","us":99999999}',
            '"us" 1 to 10000000',
        ),
    ],
)
def test_what_cannot_be_asked_is_said_and_it_goes_on(bench: Bench, line: str, said: str) -> None:
    assert said in bench.tell(line)["error"]
    assert bench.ask(do="cells")["cells"]


def test_mistakes_of_its_command_line_end_it(tmp_path: Path) -> None:
    programs = find(["gcc"])
    for options, said in (
        (["--library", "x"], "--library takes BUILD=FILE, not"),
        (["--library", f"x={tmp_path}/none.so"], f"--library x={tmp_path}/none.so"),
        (["--cells"], 'unknown option "--cells"'),
    ):
        done = subprocess.run(
            [str(programs.rust), *EAL, "--file-prefix", "wrong", "--", *options],
            env={"RUNTIME_DIRECTORY": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 1
        assert said in done.stderr
