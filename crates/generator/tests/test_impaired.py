# SPDX-License-Identifier: BSD-3-Clause
"""Every figure of the generator checked against a link that does harm and says what it did.

The forwarder is our impair over memif. Counts are held against its own, and against a model: its
rules applied to a list of numbers, and the definitions of RFC 4737 and RFC 3393 to what comes out.
Of times only that is asserted which no busy machine can change: no frame is faster than its delay.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import snappi
from farend import Forwarder, forwarder, memif, part
from harness import Generator, eventually, generator
from traffic import flow

from linerate.telemetry import hdr

pytest_plugins = ["rig"]

FRAMES = 2000
EXTENTS = "reordering_extent_hdr"


@pytest.fixture(scope="module")
def running() -> Iterator[Generator]:
    """Nothing is late here: all frames are in the latency, whatever else this machine does."""
    options = ("--late-after", "10000000")
    with tempfile.TemporaryDirectory(prefix="otg") as path, generator(Path(path), *options) as one:
        yield one


@pytest.fixture
def directory(running: Generator) -> Path:
    """The generator's own: its sockets may be nowhere else."""
    return running.log.parent


def histogram(parts: list[str]) -> hdr.Histogram:
    """A histogram as telemetry has it: in pieces, for its strings are short."""
    return hdr.decode("".join(parts))


def rule(options: str, name: str) -> tuple[int, int]:
    """N and what stands behind the colon of `--NAME N[:M]`; N is 0 without the rule."""
    found = re.search(rf"--{name} (\d+)(?::(-?\d+))?", options)
    return (int(found[1]), int(found[2] or 1)) if found else (0, 0)


def impaired(options: str, frames: int) -> list[int]:
    """The numbers of the frames that come out, in order."""
    count = {"drop": 0, "duplicate": 0, "reorder": 0}

    def hits(name: str) -> bool:
        n, _ = rule(options, name)
        count[name] += 1
        return n > 0 and count[name] % n == 0

    passed: list[int] = []
    for number in range(frames):
        if not hits("drop"):
            passed += [number] * (2 if hits("duplicate") else 1)
    _, distance = rule(options, "reorder")
    held: dict[int, list[int]] = {}
    out = []
    for place, number in enumerate(passed):
        if hits("reorder"):
            held.setdefault(place + distance, []).append(number)
        else:
            out.append(number)
        out += held.pop(place, [])
    return out


@dataclass
class Order:
    """What the definitions say of frames that arrived in some order."""

    duplicates: int = 0
    extents: list[int] = field(default_factory=list)
    neighbours: int = 0

    @property
    def reordered(self) -> int:
        return len(self.extents)

    @property
    def extent(self) -> int:
        return max(self.extents, default=0)

    @classmethod
    def of(cls, arrivals: Sequence[int]) -> Order:
        order, came = cls(), list[int]()
        for number in arrivals:
            if number in came:
                order.duplicates += 1
                continue
            larger = (place for place, other in enumerate(came) if other > number)
            earliest = next(larger, None)
            if earliest is not None:
                order.extents.append(len(came) - earliest)
            came.append(number)
        pairs = itertools.pairwise(arrivals)
        order.neighbours = sum(after == before + 1 for before, after in pairs)
        return order


@dataclass
class Outcome:
    """What the generator and the forwarder say after the same traffic."""

    metric: Any
    port_metric: Any
    flow: dict[str, Any]
    port: dict[str, Any]
    far: dict[str, int]
    extents: dict[str, Any] | None


def settle(running: Generator, link: Forwarder, ports: Sequence[str] = ("p1",)) -> None:
    """Waits until all flows have ended and all is back that the forwarder does not hold or drop."""
    eventually(running.stopped)

    def still() -> bool:
        books = [running.port(port) for port in ports]
        far = link.ask("/linerate/impair")
        accepted = sum(book["accepted"] for book in books)
        returned = sum(book["rx_frames"] for book in books)
        # What its delay holds leaves by itself; what reordering holds does not.
        over = far["delayed"] in (0, far["sent"])
        return over and (accepted, returned) == (far["received"], far["sent"])

    eventually(still, lambda: (running.port(), link.ask("/linerate/impair")))


def run(
    running: Generator,
    directory: Path,
    options: str,
    *,
    size: int = 64,
    frames: int = FRAMES,
    integrity: bool = False,
    latency: bool = True,
) -> Outcome:
    config = snappi.Config()
    config.ports.port(name="p1", location=f"memif:{directory}/s")
    config.options.port_options.data_integrity = integrity
    flow(config, "f0", "p1", ["p1"], size=size, frames=frames, latency=latency)
    running.api.set_config(config)
    with forwarder(directory, "impair", [memif(directory / "s")], options.split()) as link:
        link.wait()
        eventually(lambda: running.link() == "up")
        running.transmit("start")
        settle(running, link)
        outcome = Outcome(
            running.flows()["f0"],
            running.ports()["p1"],
            running.flow(),
            running.port(),
            link.ask("/linerate/impair"),
            running.ask(f"/linerate/generator/histogram,f0,{EXTENTS}"),
        )
        part(running, link)
    # Neither had to drop any by itself, or nothing below would be exact.
    flow_books, far = outcome.flow, outcome.far
    assert (flow_books["lost_at_ingress"], far["tx_refused"]) == (0, 0)
    assert (far["dropped_no_mbuf"], far["not_duplicated"], far["dropped_delay_full"]) == (0, 0, 0)
    assert flow_books["intended"] == flow_books["attempted"] == flow_books["accepted"] == frames
    assert (outcome.metric.frames_tx, outcome.metric.bytes_tx) == (frames, frames * size)
    assert outcome.metric.frames_rx == flow_books["received"]
    assert (outcome.port["stale"], outcome.port["misdirected"]) == (0, 0)
    return outcome


def check_extents(outcome: Outcome, order: Order) -> None:
    """How late each frame was, in arrivals: small numbers are told exactly."""
    if not order.extents:
        assert (EXTENTS in outcome.flow, outcome.extents) == (False, None)
        return
    assert max(order.extents) < 256
    told = histogram(outcome.flow[EXTENTS])
    assert told.buckets == tuple(sorted(Counter(order.extents).items()))
    assert outcome.extents == {EXTENTS: outcome.flow[EXTENTS]}


def check_times(outcome: Outcome, hz: int, least_us: int) -> None:
    """Least, mean, most and the histogram agree, and no frame was faster than its delay."""
    latency = outcome.metric.latency
    assert least_us * 1000 <= latency.minimum_ns <= latency.average_ns <= latency.maximum_ns
    times = histogram(outcome.flow["latency_hdr"])
    assert times.total == outcome.flow["received"]
    assert times.maximum is not None
    # The histogram has buckets; the maximum is exact.
    assert times.buckets[0][0] >= latency.minimum_ns * hz / 1e9
    assert times.maximum == pytest.approx(latency.maximum_ns * hz / 1e9, rel=0.02)
    assert outcome.flow["jitter_rfc3550_ns"] >= 0


@pytest.mark.parametrize(
    "options",
    [
        "",
        *(
            pytest.param(rules, marks=pytest.mark.second_tier)
            for rules in (
                "--drop 7",
                "--duplicate 9",
                "--reorder 11",
                "--reorder 40:25",
                "--reorder 3:8",
                "--delay 3000",
                "--drop 3 --duplicate 5 --reorder 8:3",
            )
        ),
        "--drop 10 --duplicate 2 --reorder 2:5 --delay 1000:500",
    ],
)
def test_counts_are_those_of_the_link_and_of_the_model(
    running: Generator, directory: Path, options: str
) -> None:
    outcome = run(running, directory, options)
    books, far = outcome.flow, outcome.far
    model = impaired(options, FRAMES)
    order = Order.of(model)
    assert books["received"] == outcome.port["rx_frames"] == far["sent"] == len(model)
    assert books["duplicates"] == order.duplicates
    # A frame and its copy may both be held back at the end.
    assert 0 <= far["duplicated"] - order.duplicates <= far["held"]
    assert (books["reordered"], books["max_reordering_extent"]) == (order.reordered, order.extent)
    check_extents(outcome, order)
    assert books["reordered_or_duplicate"] == books["corrupt"] == 0
    for name in ("received", "duplicates", "reordered", "corrupt"):
        assert outcome.port[name] == books[name]
    assert outcome.port["foreign"] == 0
    if "--duplicate" not in options:
        # Of copies the later one is no reordered frame but a duplicate.
        dropped = far["dropped_on_purpose"]
        assert len(model) == FRAMES - dropped - far["held"]
        late = far["reordered"] - far["held"]
        assert books["reordered"] == late or rule(options, "reorder") == (3, 8)
    lost = FRAMES - len(set(model))
    assert outcome.metric.loss == pytest.approx(100 * lost / FRAMES, rel=1e-6)
    assert histogram(books["ipdv_hdr"]).total == order.neighbours
    delay, _ = rule(options, "delay")
    check_times(outcome, running.ask("/linerate/clock")["tsc_hz"], delay)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.second_tier)])
def test_chance_is_counted_too(running: Generator, directory: Path, seed: int) -> None:
    rules = f"--drop 6 --duplicate 5 --corrupt 9 --delay 500:3000 --random {seed}"
    outcome = run(running, directory, rules)
    books, port, far = outcome.flow, outcome.port, outcome.far
    assert far["dropped_on_purpose"] > 0
    assert port["rx_frames"] == far["sent"]
    assert port["rx_frames"] == books["received"] + port["corrupt"] + port["foreign"]
    # Damage comes before the copies: a copy of a damaged frame is damaged, and no duplicate.
    assert port["corrupt"] >= far["corrupted"] > 0
    damaged_copies = port["corrupt"] - far["corrupted"]
    assert books["duplicates"] == far["duplicated"] - damaged_copies
    assert port["foreign"] == books["reordered"] == 0
    gone = far["dropped_on_purpose"] + far["corrupted"]
    assert outcome.metric.loss == pytest.approx(100 * gone / FRAMES, rel=1e-6)
    assert outcome.metric.latency.minimum_ns >= 500_000
    # The longest of 1700 delays from 0.5 to 3.5 ms is above 3 ms, and neighbours differ.
    assert outcome.metric.latency.maximum_ns >= 3_000_000
    assert books["jitter_rfc3550_ns"] > 0
    assert (histogram(books["ipdv_hdr"]).maximum or 0) > 0


# A frame of 128 bytes is 124 in memory: 42 of headers, 60 of payload, 4 of the payload's check, 18
# of signature.
@pytest.mark.parametrize(
    ("offset", "where"),
    [
        (26, "header"), (41, "header"), (42, "payload"), (101, "payload"), (-22, "payload"),
        (-19, "payload"), (-18, "magic"), (-15, "signature"), (-9, "signature"),
        (-4, "signature"), (-1, "signature"),
    ],
)  # fmt: skip
def test_damage_is_found_where_it_was_done(
    running: Generator, directory: Path, offset: int, where: str
) -> None:
    outcome = run(running, directory, f"--corrupt 6:{offset}", size=128, frames=600, integrity=True)
    damaged = outcome.far["corrupted"]
    assert damaged == 100
    found = {"header": 0, "payload": 0, "magic": 0, "signature": 0, where: damaged}
    books, port = outcome.flow, outcome.port
    # A forwarder may change headers: that is no damage. Whose a frame with a wrong signature was
    # nobody can tell.
    assert books["corrupt"] == found["payload"]
    assert port["corrupt"] == found["payload"] + found["signature"]
    assert port["foreign"] == found["magic"]
    assert books["received"] == 600 - found["magic"] - found["signature"]
    assert port["rx_frames"] == outcome.far["sent"] == 600
    assert books["duplicates"] == books["reordered"] == 0
    integrity = outcome.port_metric.data_integrity
    assert int(integrity.total_frames_rx) == 600
    assert int(integrity.error_frames_rx) == port["corrupt"]


@pytest.mark.parametrize("size", [85, 200, 1518])
def test_payloads_of_any_length_are_checked(running: Generator, directory: Path, size: int) -> None:
    damage = "--drop 5 --corrupt 4:50 --duplicate 3"
    outcome = run(running, directory, damage, size=size, frames=600, integrity=True)
    # Of 480 frames left each fourth is damaged (120), each third copied (160), each twelfth both.
    assert (outcome.far["corrupted"], outcome.far["duplicated"]) == (120, 160)
    assert outcome.flow["corrupt"] == outcome.port["corrupt"] == 120 + 40
    assert outcome.flow["received"] == 480 + 160
    assert outcome.flow["duplicates"] == 160
    assert outcome.metric.bytes_rx == (480 + 160) * size


def test_damage_goes_unseen_without_a_check_of_the_payload(
    running: Generator, directory: Path
) -> None:
    outcome = run(running, directory, "--corrupt 6:50", size=128, frames=600)
    assert (outcome.flow["received"], outcome.flow["corrupt"]) == (600, 0)


def test_each_direction_of_two_ports_is_told_apart(running: Generator, directory: Path) -> None:
    config = snappi.Config()
    for number, name in enumerate(("p1", "p2")):
        config.ports.port(name=name, location=f"memif:{directory}/s,id={number}")
    flow(config, "there", "p1", ["p2"], frames=1200, latency=True)
    flow(config, "back", "p2", ["p1"], frames=600, size=300, latency=True)
    # What comes to another port than it should: those that p2 gets belong to p1.
    flow(config, "astray", "p1", ["p1"], frames=300)
    running.api.set_config(config)
    devices = [memif(directory / "s", number, number) for number in (0, 1)]
    with forwarder(directory, "impair", devices, ["--drop", "4", "--delay", "2000"]) as link:
        link.wait()
        eventually(lambda: running.link("p1") == running.link("p2") == "up")
        running.transmit("start")
        settle(running, link, ["p1", "p2"])
        books = {name: running.flow(name) for name in ("there", "back", "astray")}
        ports = {name: running.port(name) for name in ("p1", "p2")}
        metrics = running.flows()
        paths = [link.ask(f"/linerate/impair,{port}") for port in (0, 1)]
        part(running, link)
    assert [path["received"] for path in paths] == [1500, 600]
    assert [path["dropped_on_purpose"] for path in paths] == [375, 150]
    assert (ports["p1"]["accepted"], ports["p2"]["accepted"]) == (1500, 600)
    assert books["back"]["received"] == ports["p1"]["rx_frames"] == ports["p1"]["received"] == 450
    assert books["astray"]["received"] == 0
    assert ports["p2"]["rx_frames"] == paths[0]["sent"] == 1125
    assert ports["p2"]["received"] == books["there"]["received"]
    assert ports["p2"]["misdirected"] == 1125 - books["there"]["received"] > 0
    assert metrics["astray"].loss == 100
    assert metrics["back"].loss == pytest.approx(25)
    assert (metrics["back"].port_tx, metrics["back"].port_rx) == ("p2", "p1")
    for name in ("there", "back"):
        assert books[name]["duplicates"] == books[name]["reordered"] == 0
        assert metrics[name].latency.minimum_ns >= 2_000_000
