# SPDX-License-Identifier: BSD-3-Clause
"""How xdp-fwd's speed beside xdp-bench's is told, and what is started for it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from linerate import netns, xdp_bench
from linerate.errors import MissingError
from linerate.xdp_bench import WAYS, Rate, Round, prepare, table

NAMES = {program.name: program for way in WAYS for program in way.programs}


def simulated(speeds: dict[str, float]) -> list[Round]:
    """Rounds on a machine whose speed changes from one to the next; 5 Mpps unless given."""
    source = random.Random(1)
    rounds = []
    for _ in range(40):
        now = source.choice([0.7, 1.0])
        rates = {name: 5e6 * now * speeds.get(name, 1.0) * source.gauss(1, 0.01) for name in NAMES}
        rounds.append({name: Rate(rate, rate / 2) for name, rate in rates.items()})
    return rounds


def line_of(name: str, rounds: list[Round]) -> str:
    (line,) = [line for line in table(rounds) if line.startswith(f"{name}  ")]
    return line


@pytest.mark.parametrize(("speed", "told"), [(0.9, ": reached"), (1.1, ": not reached")])
def test_the_goal_is_about_the_lower_end(speed: float, told: str) -> None:
    rounds = simulated({"xdp-bench tx": speed})
    line = line_of("xdp-bench tx", rounds)
    assert line.endswith(f"n = 40), goal >= 0.97{told}")
    assert f"{1 / speed:.2f}" in line
    # Ours against itself has no goal.
    assert "goal" not in line_of("xdp-fwd --action tx, again", rounds)


def test_what_failed_is_absent() -> None:
    rounds = simulated({})
    for each in rounds:
        del each["xdp-bench redirect-map"]
    del rounds[0]["xdp-fwd --action redirect"]
    assert line_of("xdp-bench redirect-map", rounds).endswith("absent: it never forwarded")
    assert "n = 39" in line_of("xdp-bench redirect", rounds)
    few = line_of("xdp-bench tx", simulated({})[:3])
    assert few.endswith("3 rounds are too few for an interval")


def test_programs_are_on_the_same_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xdp_bench, "rust_binary", lambda name: Path("/built") / name)
    argv = {name: program.argv(["f0", "f1"]) for name, program in NAMES.items()}
    assert argv["xdp-bench redirect"][:4] == ("xdp-bench", "redirect", "f0", "f1")
    assert argv["xdp-bench tx"][:4] == ("xdp-bench", "tx", "f0", "-i")
    assert argv["xdp-fwd --action tx"] == (
        "/built/xdp-fwd", "--vdev", "net_xdp0,iface=f0",
        "--", "-p", "1", "-T", "0", "--action", "tx",
    )  # fmt: skip
    ours = argv["xdp-fwd --action redirect"]
    assert "net_xdp1,iface=f1" in ours
    assert ours[ours.index("-p") + 1] == "3"


def test_tools_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netns, "prepare", lambda: None)
    monkeypatch.setattr(xdp_bench, "rust_binary", lambda name: Path("/built") / name)
    monkeypatch.setattr("shutil.which", lambda name: None if name == "xdp-trafficgen" else name)
    with pytest.raises(MissingError, match="there is no xdp-trafficgen on the PATH"):
        prepare()
