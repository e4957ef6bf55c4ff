# SPDX-License-Identifier: BSD-3-Clause
"""The probe's figures of forwarding programs equal the programs' own, packet by packet.

Traffic comes over memif after the probe has found every queue and stops before anything is
compared, so that nothing needs a tolerance.
"""

from __future__ import annotations

from forwarding_programs import Feed, Program, numbers, offsets, one_offset, running

from linerate.host.builds import c_examples
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory


def screens(program: Program) -> str:
    """Return the last complete one of l2fwd's screens of statistics."""
    text = program.child.output()
    assert "linerate probe" not in text
    return text.rpartition("====\n")[0].rpartition("Port statistics")[2]


def test_c_l2fwd_counts_as_the_probe_does() -> None:
    l2fwd = c_examples.build("l2fwd").program
    with RunDirectory() as run:
        feed = Feed(run)
        options = ["-p", "3", "-q", "2", "-T", "1"]
        with feed.started(), running(run, l2fwd, feed.ends, options, one_in=1) as program:
            program.await_polls(2)
            feed.send(program)
            feed.send(program)
            sent = 2 * feed.PACKETS
            polling = program.polling()
            assert program.packets() == {(0, 0): sent, (1, 0): sent}
            assert {entry["burst_limit"] for entry in polling.values()} == {32}
            assert {entry["lcore"] for entry in polling.values()} == {0}
            # One burst in one is stamped; what arrived on one port leaves by the other.
            assert program.ask("/linerate/probe")["stamped"] == 2 * sent
            program.wait("all sent", lambda: program.stats(1)["opackets"] == sent)
            assert [program.sent(port) for port in (0, 1)] == [sent, sent]
            program.wait(
                "a screen with all",
                lambda: numbers(r"received: +(\d+)", screens(program))[:2] == [sent] * 2,
            )
            assert numbers(r"Packets sent: +(\d+)", screens(program)) == [sent, sent]
            assert numbers(r"Packets dropped: +(\d+)", screens(program)) == [0, 0]
            assert [feed.returned(port) for port in (0, 1)] == [sent, sent]
            assert program.child.stop() == 0


def test_our_own_l2fwd_keeps_its_figures_and_both_agree() -> None:
    with RunDirectory() as run:
        feed = Feed(run)
        options = ["-p", "3", "-q", "2", "-T", "0"]
        l2fwd = rust_binary("l2fwd")
        with feed.started(), running(run, l2fwd, feed.ends, options) as program:
            program.await_polls(2)
            early = compared(program)
            feed.send(program)
            late = compared(program)
            for port in (0, 1):
                for name in ("polls", "empty_polls", "total_tsc"):
                    slack = 0 if name == "total_tsc" else 1
                    one_offset([early[port][name], late[port][name]], slack)
            own, probes = program.polling("/linerate/polling"), program.polling()
            for queue in ((0, 0), (1, 0)):
                mine, its = own[queue], probes[queue]
                assert mine["packets"] == its["packets"] == feed.PACKETS
                assert mine["burst_histogram"][1:] == its["burst_histogram"][1:]
                assert mine["lcore"] == its["lcore"]
                # Both see the same polls, from places a few instructions apart; what else comes
                # between them is what the scheduler took.
                bursts = mine["polls"] - mine["empty_polls"]
                taken = program.child.activity().waited_s * program.ask("/linerate/clock")["tsc_hz"]
                apart = abs(mine["busy_tsc"] - its["busy_tsc"])
                assert apart <= 0.25 * mine["busy_tsc"] + 1000 * bursts + taken
            assert program.child.stop() == 0


def compared(program: Program) -> dict[int, dict[str, tuple[int, int]]]:
    """Return by how much the program's own figure is ahead, at least and at most, by port and
    counter.
    """
    before = program.polling("/linerate/polling")
    probes = program.polling()
    after = program.polling("/linerate/polling")
    return {
        port: {
            name: (before[port, 0][name] - its, after[port, 0][name] - its)
            for name, its in probes[port, 0].items()
            if name in {"polls", "empty_polls", "total_tsc"}
        }
        for port in (0, 1)
    }


def test_l3fwd_graph_polls_for_bursts_of_256() -> None:
    l3fwd = c_examples.build("l3fwd-graph").program
    with RunDirectory() as run:
        # Its main lcore, which only prints, has a queue to send on too.
        feed = Feed(run, ports=1, returns=2)
        options = ["-p", "1", "--config", "(0,0,1)"]
        with (
            feed.started(),
            running(run, l3fwd, feed.ends, options, lcores=2, one_in=1) as program,
        ):
            program.await_polls(1)
            feed.send(program)
            small = program.polling()[0, 0]["burst_histogram"]
            feed.send(program, at_once=True)
            sent = 2 * feed.PACKETS
            (entry,) = program.polling().values()
            assert (entry["lcore"], entry["burst_limit"], entry["packets"]) == (1, 256, sent)
            large = entry["burst_histogram"]
            assert len(large) == 257
            assert large[256] - small[256] == feed.PACKETS // 256
            assert large[feed.PACKETS % 256] - small[feed.PACKETS % 256] == 1
            # testpmd's packets are for 198.18.0.2, to which the route is back by port 0.
            program.wait("all sent", lambda: program.stats(0)["opackets"] == sent)
            assert program.sent(0) == program.ask("/linerate/probe")["stamped"] == sent
            row = r"\|ethdev_[rt]x-0(?:-0)? +\|\d+ +\|(\d+)"
            program.wait(
                "a table with all", lambda: numbers(row, program.child.output())[-2:] == [sent] * 2
            )
            assert program.child.stop() == 0


def test_rxtx_callbacks_and_the_probe_stamp_the_same_packets() -> None:
    rxtx = c_examples.build("rxtx_callbacks").program
    with RunDirectory() as run:
        ports = ["net_null0,size=64", "net_null1,size=64"]
        with running(run, rxtx, ports) as program:
            program.await_polls(2)
            early = offsets(program)
            # It prints the mean of each 100 million packets that it sends.
            program.wait("its figure", lambda: "Latency" in program.child.output())
            packets = sum(program.packets().values())
            late = offsets(program)
            for port in (0, 1):
                one_offset([early[port], late[port]], slack=32)
            assert packets + sum(high for _, high in late) >= 100_000_000
            latency = program.ask("/linerate/probe/latency")
            assert {entry["port"] for entry in latency} == {0, 1}
            for entry in latency:
                assert 0 < entry["min_tsc"] <= entry["mean_tsc"] <= entry["max_tsc"]
            # A probe that sampled something else than one burst in 64 would be far from this.
            stamped = program.ask("/linerate/probe")["stamped"]
            assert 0.9 < 64 * stamped / sum(program.packets().values()) < 1.1
            program.child.stop()
