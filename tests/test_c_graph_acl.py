# SPDX-License-Identifier: BSD-3-Clause
"""The C l3fwd-graph with our node pkt_acl: with the same rules it lets pass what ours does."""

from __future__ import annotations

import random
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from routed import (
    ETHERNET,
    IPV4,
    MEMORY,
    TIMEOUT_S,
    ipv6,
    of_every_kind,
    through,
    through_c_l3fwd,
)

from linerate.forwarders import forwarder
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory
from linerate.links.flows import checksum

NAME = "c-l3fwd-graph-acl"
OPTIONS = ["-p", "3", "-P", "--config", "(0,0,1),(1,0,1)"]
EVERYTHING = "R0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0/0 0\n"


def c_program() -> Path:
    program = forwarder(NAME).program()
    assert program
    return program


@dataclass(frozen=True)
class Drawn:
    """Rules, the file with them, and frames that come in by two ports."""

    file: Path
    frames: list[list[bytes]]
    # The ends of those that have routes and good headers; each has another one.
    numbered: set[bytes]


def end(frame: bytes) -> bytes:
    return frame[-12:]


def drawn_rules(rng: random.Random, count: int) -> str:
    """Draw rules with few addresses and ports, so that packets match several; no two rules are
    equal.
    """
    networks = ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/30", "10.0.0.2/32", "10.128.0.0/9"]
    behind = ["0.0.0.0/0", "198.18.0.0/16", "198.18.0.0/24", "198.18.1.0/25", "198.18.1.3/32"]
    lines = ["# drawn\n", "\n"]
    seen: set[str] = set()
    while len(seen) < count:
        low, far = rng.randrange(20), rng.randrange(20)
        high = rng.choice([low + 3, 0xFFFF, 0xFFFF])
        rule = (
            f"{rng.choice(networks)} {rng.choice(behind)} {low} : {high} "
            f"{far} : {far + rng.randrange(6)} {rng.choice(['6/0xff', '0x11/255', '0/0', '4/0x6'])}"
        )
        if rule not in seen:
            seen.add(rule)
            denies = rng.random() < 0.3
            lines.append(f"@{rule}\n" if denies else f"R{rule} {rng.randrange(2)}\n")
    return "".join(lines)


def drawn_frame(rng: random.Random, port: int, serial: int) -> bytes:
    """Return a frame of TCP, UDP or another protocol, some behind options, some fragments; each
    ends in a number of its own.
    """
    options = rng.randbytes(4 * rng.choice([0, 0, 0, 1, 10]))
    fragment = rng.choice([0, 0, 0, 0x2000, 0x4000, 1, 0x2003])
    # Its port is the network's that it came in by or the other one's.
    addresses = bytes([10, rng.choice([0, 200]), 0, rng.randrange(6)])
    addresses += bytes([198, 18, rng.randrange(2), rng.randrange(6)])
    size = 20 + len(options) + 40
    header = struct.pack(
        "!BBHHHBBH",
        0x45 + len(options) // 4,
        0,
        size,
        port,
        fragment,
        64,
        rng.choice([1, 6, 17]),
        0,
    )
    header += addresses + options
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    ports = struct.pack("!HH", rng.randrange(24), rng.randrange(24))
    return ETHERNET + IPV4 + header + ports + bytes(24) + struct.pack("!8sI", b"numbered", serial)


@pytest.fixture(scope="module", params=[1, 2, pytest.param(3, marks=pytest.mark.second_tier)])
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    rng = random.Random(request.param)
    file = tmp_path_factory.mktemp("rules") / "rules"
    file.write_text(drawn_rules(rng, 150))
    frames, numbered = [], set()
    for port in range(2):
        plain = [drawn_frame(rng, port, port << 16 | serial) for serial in range(4000)]
        numbered |= set(plain)
        # And what has no rules, no route or no ports.
        others = of_every_kind(rng, 500, port)
        others += [ipv6("2001:200:0:1::1")] * 20
        others += [frame[: rng.choice([36, 37, 38, 60])] for frame in plain[:50]]
        mixed = plain + others
        rng.shuffle(mixed)
        frames.append(mixed)
    return Drawn(file, frames, {end(frame) for frame in numbered})


@pytest.fixture(scope="module")
def in_c(drawn: Drawn) -> list[list[bytes]]:
    with RunDirectory() as run:
        rules = {"LINERATE_RULES": str(drawn.file)}
        return through(run, c_program(), drawn.frames, OPTIONS, environment=rules)


def routed_ipv4(made: list[list[bytes]]) -> list[list[bytes]]:
    return [sorted(frame for frame in port if frame[12:14] == IPV4) for port in made]


@pytest.mark.parametrize("executor", ["dpdk", "fused"])
def test_it_lets_pass_what_ours_does(drawn: Drawn, in_c: list[list[bytes]], executor: str) -> None:
    """The frames are equal byte by byte, if ours reads ports as C does; the order of ports may
    differ. Ours routes IPv6 as well, for which there are no rules.
    """
    ours = [*OPTIONS, f"--rule_ipv4={drawn.file}", "--acl-as-c", "--executor", executor]
    with RunDirectory() as run:
        made = through(run, rust_binary("l3fwd-graph"), drawn.frames, ours)
    assert routed_ipv4(made) == routed_ipv4(in_c)
    # Neither everything nor nothing.
    passed = sum(map(len, in_c)) / sum(map(len, drawn.frames))
    assert 0.1 < passed < 0.9


def test_ours_judges_otherwise_where_it_looks_for_ports(
    drawn: Drawn, in_c: list[list[bytes]]
) -> None:
    """So the test above would notice if either of the two looked for ports elsewhere."""
    with RunDirectory() as run:
        ours = [*OPTIONS, f"--rule_ipv4={drawn.file}"]
        made = through(run, rust_binary("l3fwd-graph"), drawn.frames, ours)
    assert routed_ipv4(made) != routed_ipv4(in_c)


def test_it_lets_pass_what_the_c_l3fwd_does(
    drawn: Drawn, in_c: list[list[bytes]], tmp_path: Path
) -> None:
    """Compared are frames that both can route: l3fwd uses the rule's port, and no routes."""
    ipv6_rules = tmp_path / "ipv6"
    nobody = "0000:0000:0000:0000:0000:0000:0000:0000/0"
    ipv6_rules.write_text(f"R{nobody} {nobody} 0 : 65535 0 : 65535 0/0 0\n")
    files = [f"--rule_ipv4={drawn.file}", f"--rule_ipv6={ipv6_rules}"]
    with RunDirectory() as run:
        made = through_c_l3fwd(run, drawn.frames, ["--lookup=acl", *files])
    passed, expected = (
        {end(frame) for port in each for frame in port} & drawn.numbered for each in (in_c, made)
    )
    assert passed == expected


def test_mistakes_are_told_with_their_line(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    ten = "1.2.3.0/24 0.0.0.0/0 0 : 65535 1 : 2 6/0xff"
    for text, said in (
        ("# only a remark\n\n", "there is no rule"),
        (f"@{ten}\nnone\n", "line 2: begins neither with @"),
        (f"#\nR{ten}\n", "line 2: a rule that forwards has ten words"),
        (f"@{ten} 1\n", "line 1: a rule that denies has nine words"),
        (f"@{ten.replace('/24', '/33')}\n", "line 1: the source is no network"),
        (f"@{ten.replace('/0 0', '/x 0')}\n", "line 1: the destination is no network"),
        (f"@{ten.replace('65535', '65536')}\n", "line 1: the source's ports are no range"),
        (f"@{ten.replace('1 : 2', '2 : 1')}\n", "line 1: the destination's ports are no range"),
        (f"@{ten.replace('0xff', '0x100')}\n", "line 1: the protocol and its mask"),
        (f"R{ten} -1\n", "line 1: the port is no number"),
    ):
        rules.write_text(text)
        assert f"linerate: {rules}: {said}" in refusal(tmp_path, str(rules))
    assert "No such file" in refusal(tmp_path, str(tmp_path / "nothing"))
    assert "LINERATE_RULES names no file of rules" in refusal(tmp_path, None)


def refusal(folder: Path, rules: str | None) -> str:
    """Return what the program prints when it ends without having started."""
    environment = {"RUNTIME_DIRECTORY": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    if rules is not None:
        environment["LINERATE_RULES"] = rules
    done = subprocess.run(
        [str(c_program()), *MEMORY, "--file-prefix", "wrong", "--lcores=0,1", "--vdev",
         "net_null0", "--", "-p", "1", "--config", "(0,0,1)"],
        env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    return done.stderr
