# SPDX-License-Identifier: BSD-3-Clause
"""Sends frames through l2fwd on a nearly free link: none may be lost, and no mbuf at the end."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

from linerate.host.places import rust_binary
from linerate.host.process import pause
from linerate.links import LinkContext, link
from linerate_bench.soak.bench import Bench, started, wrong_end
from linerate_bench.soak.plan import Row
from linerate_bench.soak.programs import await_traffic
from linerate_bench.soak.records import Counted

GOAL = 10**10
# `frames2` writes each packet anew; `nearfree2` only passes pointers on, and is faster.
LINKS = ("nearfree2", "frames2")
LOOK_S = 0.5
SIZE, FCS = 64, 4
# The counters of a driver that loses frames.
LOSSES = ("imissed", "ierrors", "oerrors", "rx_nombuf")


def judged(document: dict[str, Any]) -> Counted:
    """Judge the last statistics that l2fwd wrote (`--json-stats`, docs/run-l2fwd.md)."""
    total, faults = document["total"], []
    if document["state"] != "ended":
        faults.append("l2fwd wrote no last statistics")
    if total["dropped"] or total["sent"] != total["received"]:
        faults.append(
            f"{total['received']} frames received, {total['sent']} sent, {total['dropped']} dropped"
        )
    for port in document["ports"]:
        own = port["ethdev"]
        for counter, ours in (("ipackets", "received"), ("opackets", "sent")):
            if own[counter] != port[ours]:
                faults.append(
                    f"{port['name']}: {counter} {own[counter]}, but l2fwd {ours} {port[ours]}"
                )
        faults += [f"{port['name']}: {name} {own[name]}" for name in LOSSES if own[name]]
    pool = document.get("pool")
    if pool is None:
        faults.append("l2fwd did not say whether its pool is whole")
    elif pool["in_use"]:
        faults.append(f"{pool['in_use']} of {pool['size']} mbufs did not come back")
    return Counted(int(total["received"]), tuple(faults))


def count(bench: Bench, seconds: float, wanted: int) -> Counted:
    chosen = link(bench.source.choice(LINKS))
    chosen.prepare()
    ways = bench.source.choice(([], ["--burst-forwarding"]))
    prefix = bench.run.new_prefix("frames")
    file = bench.run.path / f"{prefix}.json"
    try:
        with chosen.open(LinkContext(bench.run.path, SIZE)) as wire:
            # Without `dense` packets come from l2fwd's pool, which then lacks those that are lost.
            devices = [vdev.replace(",dense=1", "") for vdev in wire.vdevs]
            argv = [
                str(rust_binary("l2fwd")), *bench.eal(prefix, *devices, lcores=1),
                *wire.eal_options, "--", "-p", "3", "-q", "2", "-T", "1", *ways,
                "--json-stats", str(file),
            ]  # fmt: skip
            with started(bench, argv, prefix) as running:
                await_traffic(running)
                deadline = time.monotonic() + seconds
                while time.monotonic() < deadline and received(file) < wanted:
                    running.child.check()
                    pause(min(LOOK_S, max(deadline - time.monotonic(), 0)))
                code, said = running.end(signal.SIGTERM)
        wrong = wrong_end(code, signal.SIGTERM, heard=True)
        found = judged(json.loads(file.read_text()))
    finally:
        file.unlink(missing_ok=True)
    more = (f"{wrong}: {said}",) if wrong else ()
    return Counted(found.number, (*found.faults, *more))


def received(file: Path) -> int:
    """Return the frames received so far; l2fwd replaces the file each second."""
    if not file.exists():
        return 0
    return int(json.loads(file.read_text())["total"]["received"])


def rows() -> list[Row]:
    return [Row("frames", "l2fwd", "frames", GOAL, count)]
