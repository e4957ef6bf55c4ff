# SPDX-License-Identifier: BSD-3-Clause
"""Routing programs between capture files, and frames for them."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv6Address
from pathlib import Path

from linerate.host.builds import c_examples
from linerate.host.process import Child, Command, RunDirectory
from linerate.links.flows import checksum
from linerate.telemetry.client import Telemetry, connect, socket_path

CPUS = sorted(os.sched_getaffinity(0))
MEMORY = ("--no-pci", "--no-huge", "--no-shconf", "-m", "512")
TIMEOUT_S = 30.0
ETHERNET = bytes.fromhex("020000000009020000000008")
IPV4, IPV6, ARP = b"\x08\x00", b"\x86\xdd", b"\x08\x06"


def ipv4(
    destination: str,
    source: str = "10.0.0.1",
    *,
    ttl: int = 64,
    protocol: int = 17,
    ports: tuple[int, int] = (1000, 2000),
    wrong_checksum: int | None = None,
    size: int = 60,
) -> bytes:
    addresses = bytes(int(octet) for octet in f"{source}.{destination}".split("."))
    header = struct.pack("!BBHHHBBH", 0x45, 0, size - 14, 1, 0, ttl, protocol, 0) + addresses
    right = checksum(header) if wrong_checksum is None else wrong_checksum
    header = header[:10] + struct.pack("!H", right) + header[12:]
    return (ETHERNET + IPV4 + header + struct.pack("!HH", *ports)).ljust(size, b"\0")


def ipv6(
    destination: str,
    source: str = "2001:db8::1",
    *,
    hops: int = 64,
    protocol: int = 17,
    ports: tuple[int, int] = (1000, 2000),
    size: int = 80,
) -> bytes:
    header = struct.pack("!IHBB", 0x60000000, size - 54, protocol, hops)
    header += IPv6Address(source).packed + IPv6Address(destination).packed
    return (ETHERNET + IPV6 + header + struct.pack("!HH", *ports)).ljust(size, b"\0")


def of_every_kind(rng: random.Random, count: int, port: int, longest: int = 1514) -> list[bytes]:
    """Return frames that are routed, frames without a route, frames that are not IP, short ones,
    and some with wrong checksums.

    None has a time to live of less than 2. Sources are in 10.PORT.0.0/16. Wrong checksums are not
    0xffff and 0xfeff, because with these the C node's answer depends on a packet's place in its
    batch.
    """

    def one() -> bytes:
        dice = rng.random()
        routed = f"198.18.{rng.randrange(4)}.{rng.randrange(256)}"
        if dice < 0.65:
            size = rng.choice([60, 61, 64, 128, 1000, longest])
            return ipv4(
                routed,
                f"10.{port}.0.{rng.randrange(256)}",
                ttl=rng.choice([2, 3, 64, 255]),
                size=size,
            )
        if dice < 0.8:
            wrong = rng.choice([0, 0xFFFE, 0xFF00, 0x00FF, rng.randrange(0xFE00)])
            return ipv4(routed, f"10.{port}.1.1", wrong_checksum=wrong)
        if dice < 0.9:
            return ipv4(".".join(str(rng.randrange(256)) for _ in range(4)))
        if dice < 0.95:
            return (ETHERNET + ARP).ljust(60, b"\1")
        return rng.randbytes(rng.choice([14, 20, 33, 34, 60]))

    return [one() for _ in range(count)]


def write_capture(path: Path, frames: Sequence[bytes]) -> Path:
    records = (struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames)
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    path.write_bytes(header + b"".join(records))
    return path


def read_capture(path: Path) -> list[bytes]:
    data, at, frames = path.read_bytes(), 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


@contextmanager
def routing(
    run: RunDirectory,
    program: Path,
    vdevs: Sequence[str],
    options: Sequence[str],
    *,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[Child, Telemetry]]:
    """Run a program that routes: lcore 0 is its main lcore, its workers are 1, 2, ...

    The first worker has another CPU than the main lcore if there are two CPUs. Without workers only
    lcore 0 runs.
    """
    prefix = run.new_prefix("routing")
    cpus = [CPUS[-lcore % len(CPUS)] for lcore in range(workers + 1)] if workers else [CPUS[-1]]
    lcores = ",".join(f"{lcore}@{cpu}" for lcore, cpu in enumerate(cpus))
    argv = [str(program), *MEMORY, "--file-prefix", prefix, "--lcores", lcores]
    argv += [f"--vdev={vdev}" for vdev in vdevs]
    command = Command(program.name, (*argv, "--", *options), tuple(cpus), dict(environment or {}))
    with (
        Child(command, run) as child,
        connect(socket_path(run.path, prefix), TIMEOUT_S, child.check) as telemetry,
    ):
        yield child, telemetry


def between_captures(port: int, capture: Path, sent: Sequence[Path]) -> str:
    """Return a port that receives a capture once and sends into files, one for each TX queue."""
    return ",".join([f"net_pcap{port},rx_pcap={capture}", *(f"tx_pcap={path}" for path in sent)])


def endless(port: int, capture: Path, queues: int) -> str:
    """Return a port that receives a capture again and again, and has so many TX queues."""
    # It sends by as many as it could receive by. Nobody polls those behind the first.
    received = [f"rx_pcap={capture}"] * queues
    return ",".join([f"net_pcap{port}", *received, "infinite_rx=1"])


def count(telemetry: Telemetry, name: str, ports: int) -> int:
    """Return the sum of a counter over all ports."""
    return sum(int(telemetry.ask(f"/ethdev/stats,{port}")[name]) for port in range(ports))


def through(
    run: RunDirectory,
    program: Path,
    frames: Sequence[Sequence[bytes]],
    options: Sequence[str],
    *,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
    sending: int = 0,
) -> list[list[bytes]]:
    """Return what leaves each port after these frames have come in, queue after queue.

    `sending`: the least number of frames that have to leave. The C l3fwd keeps the last ones in a
    buffer for 0.1 ms, and loses them if it is ended meanwhile.
    """
    folder = run.path / run.new_prefix("frames")
    folder.mkdir()
    vdevs, sent = [], []
    for port, coming in enumerate(frames):
        capture = write_capture(folder / f"in{port}.pcap", coming)
        sent.append([folder / f"out{port}.{queue}.pcap" for queue in range(max(workers, 1))])
        vdevs.append(between_captures(port, capture, sent[-1]))
    total = sum(map(len, frames))
    with routing(run, program, vdevs, options, workers=workers, environment=environment) as (
        child,
        telemetry,
    ):
        child.wait_until(
            lambda: count(telemetry, "ipackets", len(frames)) == total, TIMEOUT_S, "frames: not"
        )
        child.wait_until(
            lambda: count(telemetry, "opackets", len(frames)) >= sending, TIMEOUT_S, "sent: not"
        )
        # What an lcore received it also sends before it looks whether it is to end.
        assert child.stop() == 0, child.output()
    return [[frame for queue in port for frame in read_capture(queue)] for port in sent]


def through_c_l3fwd(
    run: RunDirectory,
    frames: Sequence[Sequence[bytes]],
    options: Sequence[str],
    *,
    sending: int = 0,
) -> list[list[bytes]]:
    """Return what leaves each port of DPDK's l3fwd, unmodified, whose main lcore polls a queue of
    each.

    `options`: the kind of lookup, and the files of rules.
    """
    program = c_examples.build("l3fwd", include="linerate_ports.h").program
    queues = ",".join(f"({port},0,0)" for port in range(len(frames)))
    ports = ["-p", f"{(1 << len(frames)) - 1:x}", "-P", "--config", queues, "--parse-ptype"]
    return through(run, program, frames, [*ports, *options], workers=0, sending=sending)
