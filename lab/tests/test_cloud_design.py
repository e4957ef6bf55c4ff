# SPDX-License-Identifier: BSD-3-Clause
"""Designs of experiment cloud: the file, the plan that it gives, and its order."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import cloud_data
import pytest
from cloud_data import Truth, records, with_part
from pydantic import BaseModel
from typer.testing import CliRunner

from linerate.cli.commands import app
from linerate.experiments.cloud.analysis.observations import METRICS
from linerate.experiments.cloud.analysis.statements import loads
from linerate.experiments.cloud.analysis.tenants_side import neighbours
from linerate.experiments.cloud.analysis.windows import windows_of
from linerate.experiments.cloud.design import command_line as asked
from linerate.experiments.cloud.design import design_file, plan
from linerate.experiments.cloud.design.design import CloudDesign, design_of, places_of
from linerate.experiments.cloud.design.enough import fewest_blocks
from linerate.experiments.cloud.design.estimate import duration, estimate, seconds_of, told
from linerate.experiments.cloud.design.levels import (
    CPU,
    FACTORS,
    FRAMEWORK,
    KIND,
    LOAD,
    NOBODY,
    SIZE,
    TENANTS,
    Place,
    in_order,
    quota_of,
)
from linerate.experiments.cloud.design.parts import Part
from linerate.experiments.cloud.design.plan import Room
from linerate.experiments.cloud.options import Options
from linerate.experiments.cloud.session.isolation import isolation
from linerate.experiments.cloud.window import CloudCell
from linerate.experiments.paths.available import available
from linerate.host.cores.cpus import Cores
from linerate.host.errors import UsageError
from linerate.runs.agreement import as_stored, read

TWO_CPUS = Room(forwarder=1, spare=None)
PART = Part(
    name="all",
    frameworks=("c-l2fwd", "xdp-tx"),
    kinds=("container", "vm"),
    loads=("idle", "cpu"),
    tenants=(0, 1, 2),
    cpus=("shared", "own"),
    sizes=(64, 1518),
    rates=(0.5, 0.9),
)


def options(text: str, **kwargs: object) -> Options:
    found = design_file.Read("mine", design_file.parse(text, "mine.toml"))
    return asked.options_of(found, **kwargs)  # type: ignore[arg-type]


def design(text: str, **kwargs: object) -> CloudDesign:
    return design_of(options(text, **kwargs))


SMALL = """
frameworks = ["c-l2fwd", "xdp-tx"]
loads = ["idle", "cpu"]
tenants = [0, 2]
sizes = [64]
blocks = 3
"""


# --- crossing ----------------------------------------------------------------------------------


def test_levels_are_crossed_and_cells_without_tenants_are_there_once() -> None:
    places = PART.places
    assert len(places) == len(set(places))
    without = [place for place in places if not place.cell.tenants]
    # framework x size x cpu x rate, whatever kinds and loads there are.
    assert len(without) == 2 * 2 * 2 * 2
    assert {(place.cell.kind, place.cell.load) for place in without} == {("none", "none")}
    assert len(places) - len(without) == 2 * 2 * 2 * 2 * 2 * 2 * 2


def test_the_control_is_the_reference_in_each_of_its_cells() -> None:
    places = places_of([PART], "c-l2fwd")
    own = [place.cell for place in places if place.framework == "c-l2fwd"]
    again = [place.cell for place in places if place.framework == "c-l2fwd-again"]
    assert own == again
    assert own
    assert len(places_of([PART], None)) == len(PART.places)


def test_a_cell_of_two_parts_is_run_once() -> None:
    other = replace(PART, name="vm", kinds=("vm",), tenants=(1,))
    assert len(places_of([PART, other], None)) == len(PART.places)


def test_every_factor_has_its_levels_in_order() -> None:
    place = PART.places[-1]
    assert [place.level(factor) for factor in FACTORS] == [
        "xdp-tx", "vm", "cpu", "2", "own", "1518", "90 %",
    ]  # fmt: skip
    assert "xdp-tx, 1518 B at 90 %, beside 2 cpu vm, CPU own" in place.words
    assert in_order("cpu", ["own", "quota-50", "shared", "quota-5"]) == [
        "shared", "quota-5", "quota-50", "own",
    ]  # fmt: skip
    assert in_order("load", ["mixed", "network", "idle"]) == ["idle", "network", "mixed"]
    assert in_order("rate", ["100 %", "50 %", "50 %"]) == ["50 %", "100 %"]
    assert quota_of("quota-25") == 0.25
    assert quota_of("shared") is None


# --- what a machine can hold -------------------------------------------------------------------


def test_a_core_of_its_own_beside_tenants_takes_a_third_cpu() -> None:
    kept, lost = plan.held([PART], TWO_CPUS)
    places = places_of(kept, None)
    assert not [p for p in places if p.cell.cpu == "own" and p.cell.tenants]
    assert [p for p in places if p.cell.cpu == "own" and not p.cell.tenants]
    (found,) = lost
    assert found.cells == len(PART.places) - len(places)
    assert "no other core" in found.reason
    kept, lost = plan.held([PART], Room(forwarder=1, spare=2))
    assert kept == [PART]
    assert not lost


def test_tenants_are_never_on_the_generator_s_core() -> None:
    cores = Cores(control=0, forwarder=3, shared_core=False)
    room = Room.of(cores, [0, 1, 2, 3])
    assert room.tenants_cpu("shared") == 3
    assert room.tenants_cpu("quota-50") == 3
    assert room.tenants_cpu("own") == 1
    assert Room.of(cores, [0, 3]).spare is None


# --- blocks ------------------------------------------------------------------------------------


def test_each_block_has_every_cell_and_the_tenants_alone_once() -> None:
    made = design(SMALL)
    blocks = list(plan.order(made))
    assert len(blocks) == 3
    every = Counter([*made.places, *plan.alone(made.places)])
    assert all(Counter(block) == every for block in blocks)
    assert set(every.values()) == {1}
    assert blocks[0] != blocks[1]
    assert list(plan.order(made)) == blocks
    assert list(plan.order(replace(made, seed=2))) != blocks


def test_tenants_alone_are_those_that_work() -> None:
    alone = plan.alone(design(SMALL).places)
    assert [(p.framework, p.cell.load, p.cell.tenants) for p in alone] == [(NOBODY, "cpu", 2)]


def test_each_framework_s_own_rate_is_looked_for_once_for_each_size() -> None:
    made = design(SMALL.replace("[64]", "[64, 512]"))
    found = plan.own_rates(made)
    assert sorted(found) == [
        ("c-l2fwd", 64), ("c-l2fwd", 512), ("xdp-tx", 64), ("xdp-tx", 512),
    ]  # fmt: skip


# --- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", design_file.names())
def test_the_designs_that_come_with_the_lab_are_sound(name: str) -> None:
    file = design_file.read(name).file
    kept, _ = plan.held(design_file.parts_of(file, ["c-l2fwd", "xdp-tx"]), TWO_CPUS)
    assert places_of(kept, "c-l2fwd")
    assert file.note
    assert 0 in file.tenants


def test_parts_have_what_they_do_not_name_from_above() -> None:
    file = design_file.parse(
        SMALL + '[[part]]\nname = "a"\n[[part]]\nname = "b"\nrates = [50]\ncpu = ["quota-10"]\n',
        "f.toml",
    )
    first, second = design_file.parts_of(file, [])
    assert first.rates == (0.9,)
    assert second.rates == (0.5,)
    assert second.cpus == ("quota-10",)
    assert first.sizes == second.sizes == (64,)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sizes = [", "not TOML"),
        ("colour = 1", "colour: no such field (there are: note, link, frameworks"),
        ("sizes = 64", "sizes: Input should be a valid list (it is 64)"),
        ("sizes = []", "sizes: List should have at least 1 item"),
        ("sizes = [63]", "sizes.0: Input should be greater than or equal to 64 (it is 63)"),
        ("sizes = [64, 64]", "sizes: 64 is named twice"),
        ("sizes = ['64']", "sizes.0: Input should be a valid integer"),
        ("rates = ['50']", "rates.0: Input should be a valid number"),
        ("blocks = true", "blocks: Input should be a valid integer"),
        ("control = 'no'", "control: Input should be a valid boolean"),
        ("frameworks = ['xpd-tx']", "frameworks: xpd-tx: no such forwarder"),
        ("[[part]]\nname = 'a'\nframeworks = ['x']", "part a, frameworks: x: no such forwarder"),
        ("link = 'vet'", "link vet: no such link"),
        ("loads = ['none']", "loads.0: String should match"),
        ("cpu = ['quota-101']", "cpu.0: String should match"),
        ("cpu = ['quota-0']", "cpu.0: String should match"),
        ("tenants = [-1]", "tenants.0: Input should be greater than or equal to 0"),
        ("rates = [5e-324]", "rates.0: Input should be greater than or equal to 0.001"),
        ("rates = [nan]", "rates.0: Input should be a finite number"),
        ("blocks = 0", "blocks: Input should be greater than or equal to 1"),
        ("[tenant]\ncpu_quota = 1.5", "tenant.cpu_quota: Input should be less than or equal to 1"),
        ("[tenant]\ncpu_quota = 1e-9", "tenant.cpu_quota: Input should be greater than or equal"),
        ("[tenant]\nio_mib_per_s = 1e-9", "tenant.io_mib_per_s: Input should be greater than"),
        ("[tenant]\nio_mib_per_s = 1e300", "tenant.io_mib_per_s: Input should be less than"),
        ("rates = [50, 50.000000001]", "rates: 50 is named twice"),
        ("[tenant]\ncolour = 1", "tenant.colour: no such field (there are: memory_mib, "),
        ("[[part]]\nname = 'a'\nsize = [64]", "part.0.size: no such field (there are: name, "),
        ("[[part]]\nname = 'A b'", "part.0.name: String should match"),
        ("[[part]]\nname = 'a'\n[[part]]\nname = 'a'", "part a is there twice"),
        ("[[part]]\nname = 'a'\ntenants = [1, 1]", "part a, tenants: 1 is named twice"),
        ("blocks = " + "9" * 5000, "TOML that cannot be read: Exceeds the limit"),
        ("a = " + "[" * 100_000, "TOML that cannot be read: maximum recursion depth"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_wrong_in_a_file_is_named(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as raised:
        design_file.parse(text, "f.toml")
    assert str(raised.value).startswith("f.toml: ")
    assert complaint in str(raised.value)


def test_a_design_is_found_by_name_or_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL)
    assert design_file.read(str(path)).name == "mine"
    with pytest.raises(UsageError, match=r"no such design\n  a file, or one of: .*quick"):
        design_file.read("quik")
    with pytest.raises(UsageError, match="No such file"):
        design_file.read(str(tmp_path / "other.toml"))
    with pytest.raises(UsageError, match="a device, not a regular file"):
        design_file.read("/dev/zero")
    path.write_bytes(b"note = '\xff'")
    with pytest.raises(UsageError, match="not UTF-8 at byte 8"):
        design_file.read(str(path))
    with pytest.raises(UsageError, match="Is a directory"):
        design_file.read(f"{tmp_path}/")


def test_options_take_the_place_of_a_design_s_levels_in_all_parts() -> None:
    text = SMALL + '[[part]]\nname = "a"\nsizes = [512]\n'
    found = options(text, sizes=[1518], forwarders=["xdp-tx"])
    assert {part.sizes for part in found.parts} == {(1518,)}
    assert {part.frameworks for part in found.parts} == {("xdp-tx",)}
    with pytest.raises(UsageError, match="--sizes 9000: not within 64 to 1518 bytes"):
        options(text, sizes=[9000])


def test_what_does_not_fit_the_link_is_refused() -> None:
    with pytest.raises(UsageError, match="xdp-tx: it does not work on link memif"):
        design(SMALL, on="memif")
    with pytest.raises(UsageError, match="make their own frames"):
        design(SMALL, on="null")
    with pytest.raises(UsageError, match="--link vet: no such link"):
        design(SMALL, on="vet")
    with pytest.raises(UsageError, match="--design mine: frameworks: xdp-tx: it does not work"):
        design(SMALL + 'link = "memif"')
    with pytest.raises(UsageError, match="--forwarders xdp-tx: it does not work"):
        design(SMALL + 'link = "memif"', forwarders=["xdp-tx"])
    with pytest.raises(UsageError, match="--design mine: link null: its ports make"):
        design(SMALL + 'link = "null"')


def test_no_number_of_blocks_is_taken_for_none_given() -> None:
    assert design(SMALL).blocks == 3
    assert design(SMALL, blocks=5).blocks == 5
    with pytest.raises(UsageError, match="--blocks 0: at least 1"):
        design(SMALL, blocks=0)


def test_design_and_options_outlive_run_json() -> None:
    asked_for = options(SMALL, minutes=3.5)
    stored = json.loads(json.dumps(asdict(asked_for), default=BaseModel.model_dump))
    again = read(Options, stored, "options")
    made = design_of(again)
    assert as_stored(made) == as_stored(design_of(asked_for))
    assert read(CloudDesign, as_stored(made), "design").places == made.places


def test_how_tenants_are_kept_is_told_of_what_there_is() -> None:
    (told,) = isolation(design(SMALL))
    assert "256 MiB of memory, 256 processes" in told
    assert "disk" not in told
    text = SMALL.replace('"cpu"]', '"cpu", "mixed"]') + 'kinds = ["vm"]\n'
    told, network = isolation(design(text + "[tenant]\ncpu_quota = 0.5\nio_mib_per_s = 9\n"))
    assert "a disk of 32 MiB" in told
    assert "50% of a CPU, 9 MiB/s each way" in told
    assert "no route off it" in network


# --- estimate ----------------------------------------------------------------------------------


def place(tenants: int, kind: str = "container") -> Place:
    cell = CloudCell.model_validate(
        {"kind": kind if tenants else "none", "load": "cpu" if tenants else "none",
         "tenants": tenants, "cpu": "shared", "rate": 0.9}
    )  # fmt: skip
    return Place("xdp-tx", 64, cell)


def test_what_takes_longer_is_said_to_take_longer() -> None:
    assert seconds_of(place(0), 1) < seconds_of(place(1), 1) < seconds_of(place(2), 1)
    assert seconds_of(place(2), 1) < seconds_of(place(2, "vm"), 1)
    assert seconds_of(place(2), 2) == seconds_of(place(2), 1) + 1


def test_a_budget_says_how_much_fits() -> None:
    made = design(SMALL.replace("blocks = 3", "blocks = 20"))
    found = estimate(made)
    assert found.blocks_within(found.seconds / 60) in (19, 20)
    assert found.blocks_within(0.01) == 0
    half = (found.search_s + 4.5 * found.block_s) / 60
    assert found.blocks_within(half) == 4
    lines = told(found, made, half)
    assert "about 4 of 20 blocks will fit" in lines[1]
    assert "fewer than 7 blocks" in lines[2]
    assert len(told(found, made, None)) == 1
    assert len(told(found, made, 1e6)) == 1


@pytest.mark.parametrize("option", ["--plan", "--print-design"])
def test_what_would_be_run_is_not_asked_of_a_run_that_began(option: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "cloud", option, "--resume", str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(f"{option} with --resume: ")


def test_too_few_blocks_are_told_of_without_a_budget_too() -> None:
    made = design(SMALL, line_rate=1e4)
    time, warning = told(estimate(made), made, None)
    assert "find what each framework carries" not in time
    assert warning == (
        "with fewer than 7 blocks some questions of this design cannot be answered, whatever is "
        "measured: take more --blocks"
    )


@pytest.mark.parametrize("name", design_file.names())
def test_designs_that_come_with_the_lab_can_answer(name: str) -> None:
    found = design_file.read(name).file
    fitting = found.frameworks or available([found.link])[0]
    assert found.blocks >= fewest_blocks(design_file.parts_of(found, fitting))


@pytest.mark.parametrize("frameworks", [("c-l2fwd", "xdp-tx"), ("c-l2fwd", "xdp-tx", "af-xdp")])
def test_with_fewer_blocks_a_family_could_not_reject_whatever_it_finds(
    frameworks: tuple[str, ...],
) -> None:
    """The number is that of the analysis: its families, for differences that all blocks show."""
    part = with_part(frameworks=frameworks)
    worse: cloud_data.Effects = {((LOAD, "cpu"),): -1.0, ((LOAD, "network"),): -2.0}
    needed = fewest_blocks([part])

    def shown(blocks: int) -> int:
        made = cloud_data.design(part, blocks=blocks)
        windows = windows_of(records(made, Truth(throughput=worse, work=worse)))
        told = [*loads(windows, part, METRICS["throughput"]), *neighbours(windows, made)]
        families = {each.test: each for each in told if each.verdict == "held"}
        return len(families)

    assert shown(needed) > 0
    assert shown(needed - 1) == 0


def test_the_crossed_design_is_crossed_and_takes_less_than_an_hour() -> None:
    made = design_of(asked.options_of(design_file.read("crossed")))
    (first, _) = made.parts
    tenants = [place for place in first.places if place.cell.tenants]
    levels = {factor: {place.level(factor) for place in tenants} for factor in FACTORS}
    for factor in (FRAMEWORK, KIND, TENANTS, CPU, SIZE):
        assert len(levels[factor]) == 2
    assert len(tenants) == 2**5
    assert estimate(made).seconds < 3600
    assert estimate(design_of(asked.options_of(design_file.read("demo")))).seconds < 12 * 60


@pytest.mark.parametrize(
    ("seconds", "words"), [(7.4, "7 s"), (61, "1 min 01 s"), (3600 * 2 + 65, "2 h 01 min")]
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
