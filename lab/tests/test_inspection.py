# SPDX-License-Identifier: BSD-3-Clause
"""Checks of what programs do to frames; and frames given by a user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from linerate.cli.duel_options import with_traffic
from linerate.experiments.duel import inspection
from linerate.experiments.duel.inspection import (
    Work,
    described,
    differences,
    looked_at,
    refuse_unknown,
    refuse_wrong,
)
from linerate.forwarders import Forwarder, forwarder
from linerate.host.cores.cpus import Cores
from linerate.host.errors import TelemetryError, UsageError
from linerate.host.process import RunDirectory
from linerate.links import LINKS, Frames, LinkContext, flows, link, rules
from linerate.links.eal import Memory
from linerate.telemetry.client import Telemetry
from linerate.traffic import frame_files
from linerate.trial.starts.faults import FaultError, Kind, refuse
from linerate.trial.starts.window import Slice, Window
from linerate.trial.trial import Bench


class Told:
    """A program's telemetry."""

    def ask_as(self, kind: TypeAdapter[str], command: str) -> str:
        assert command == "/net_nearfree/flow,net_nearfree0,1"
        return kind.validate_python(flows.frame(next(flows.flows())).hex())


def work(received: int = 100_000, sent: int = 100_000, **counts: int) -> Work:
    made = {"sent": sent, **counts}
    return Work(
        received, 0, made, dict.fromkeys(counts, (4, 1)),
        [[sent // 2, sent // 2], [0, 0]], [[2, 2], [0, 0]],
    )  # fmt: skip


def other(one: Work, two: Work) -> list[str]:
    return differences(one, two, cast(Telemetry, Told()))


def test_wrong_packets_are_named_with_their_frame() -> None:
    refuse_wrong(0, work())
    with pytest.raises(
        FaultError, match=r"1,000 of the 100,000 .* IPv4 checksum.* frame 4 of port 1"
    ):
        refuse_wrong(1, work(wrong_header_checksum=1000))


def test_wrong_packets_whose_frame_is_not_told_are_refused_all_the_same() -> None:
    found = work(wrong_length=5)
    found.examples.clear()
    with pytest.raises(FaultError, match=r"5 of the 100,000 .* lengths that are wrong; --no-check"):
        refuse_wrong(1, found)


def test_programs_that_tell_of_other_flows_of_the_same_frames_are_not_compared() -> None:
    less = work()
    less.flows = [[100_000], [0, 0]]
    telemetry = cast(Telemetry, SimpleNamespace(path="socket"))
    inspection._refuse_other_flows(work(), work(), telemetry)
    with pytest.raises(TelemetryError, match=r"\[1, 2\] flows by port, and \[2, 2\] in the other"):
        inspection._refuse_other_flows(work(), less, telemetry)


def test_packets_of_no_frame_cannot_be_compared() -> None:
    refuse_unknown(0, work(made=1000))
    with pytest.raises(
        FaultError, match="3,000 of the 103,000 packets that it sends are not received ones"
    ):
        refuse_unknown(1, work(made=3000))
    with pytest.raises(FaultError, match="0 of the 0 packets"):
        refuse_unknown(1, work(sent=0))


def test_other_work_is_named() -> None:
    assert other(work(ttl_less=100_000), work(ttl_less=99_000)) == []
    lazy = other(work(ttl_less=100_000), work(ttl_less=0, unchanged=100_000))
    assert lazy == [
        "100.0% of its packets are left as they came, 0.0% of the other's",
        "0.0% of its packets are given a time to live that is one less, 100.0% of the other's",
    ]


def test_dropping_is_no_fault_where_both_drop_alike() -> None:
    assert other(work(sent=70_000), work(sent=70_500)) == []
    assert other(work(), work(sent=60_000)) == [
        "it drops 39.5% of the packets, the other 0.0%",
    ]


def test_a_flow_that_one_does_not_send_is_named() -> None:
    less = work()
    less.flows = [[100_000, 0], [0, 0]]
    (message,) = other(work(), less)
    less.missed = 7
    assert other(work(), less) == []
    assert message == (
        "it sends nothing of 1 flow of which the other sends packets, the first is 198.18.0.1 to "
        "198.19.0.1, UDP port 10000 to 10000"
    )


def test_a_flow_that_is_sent_elsewhere_is_named() -> None:
    back = work()
    back.left_by = [[2, 1], [0, 0]]
    assert other(work(), back) == [
        "it sends 1 flow out of another port than the other, the first is 198.18.0.1 to "
        "198.19.0.1, UDP port 10000 to 10000: received on port 0, sent on port 0, and by the other "
        "on port 1"
    ]
    # A program that spreads a flow over all ports also sends it on the other's port.
    both = work()
    both.left_by = [[3, 3], [0, 0]]
    assert other(work(), both) == []


# -- where programs are inspected ------------------------------------------------------------------


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Frames]:
    """Links on which programs are inspected; the inspection does nothing."""
    seen: list[Frames] = []

    def inspect(bench: Bench, on: Frames, programs: Sequence[Forwarder], size: int) -> Any:
        seen.append(on)
        return (work(), work())

    monkeypatch.setattr(inspection, "inspect", inspect)
    monkeypatch.setattr(inspection, "nearfree_obstacle", lambda: None)
    monkeypatch.setattr(Frames, "prepare", lambda self: None)
    monkeypatch.setattr(Forwarder, "plugin_misfit", lambda self, on: None)
    return seen


def look(tmp_path: Path, on: str, *names: str) -> tuple[int, str | None]:
    run = cast(RunDirectory, SimpleNamespace(path=tmp_path))
    bench = Bench(
        run,
        Cores(0, 1, False),
        Memory(hugepages=False),
        "duel",
        1,
        0.75,
        frame_files=(Path("a.pcap"),),
    )
    works, unseen = looked_at(bench, link(on), [forwarder(name) for name in names], 64)
    return len(works), unseen


def test_programs_are_looked_at_where_a_driver_hands_out_the_frames(
    tmp_path: Path, looks: list[Frames], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(tmp_path, "frames2", "c-l2fwd", "rust-l2fwd") == (2, None)
    for on, ports in (("memif2", 2), ("memif", 1), ("veth", 2)):
        assert look(tmp_path, on, "c-l2fwd", "rust-l2fwd") == (2, None)
        assert (looks[-1].ports, looks[-1].files) == (ports, (Path("a.pcap"),))
    assert len(looks) == 4
    seen, why = look(tmp_path, "veth", "c-l2fwd", "xdp-redirect")
    assert (seen, why) == (0, "xdp-redirect is not a DPDK program with telemetry")
    monkeypatch.setattr(inspection, "nearfree_obstacle", lambda: "DPDK is too new")
    assert look(tmp_path, "memif2", "c-l2fwd", "rust-l2fwd") == (0, "DPDK is too new")
    monkeypatch.setattr(inspection, "nearfree_obstacle", lambda: None)
    monkeypatch.setattr(Forwarder, "plugin_misfit", lambda self, on: ("it is static", ""))
    assert look(tmp_path, "memif2", "c-l2fwd", "rust-l2fwd") == (0, "c-l2fwd: it is static")
    assert len(looks) == 4


@pytest.mark.parametrize("kind", ["start", "wrong"])
def test_a_program_that_starts_only_where_it_is_to_meet_is_no_fault(
    tmp_path: Path, looks: list[Frames], monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    def fails(*_: object) -> None:
        raise FaultError(1, kind, "something")

    monkeypatch.setattr(inspection, "inspect", fails)
    if kind == "start":
        why = "rust-l2fwd does not start on --link frames2"
        assert look(tmp_path, "memif2", "c-l2fwd", "rust-l2fwd") == (0, why)
    for on in ("frames2",) if kind == "start" else ("frames2", "memif2"):
        with pytest.raises(FaultError, match="something"):
            look(tmp_path, on, "c-l2fwd", "rust-l2fwd")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"\0" * 12 + b"\x88\xcc" + b"\0" * 46, "of EtherType 0x88cc"),
        (b"\0" * 12 + b"\x08\x00", "of EtherType 0x0800"),
        (b"\0" * 12 + b"\x81\x00\0\x07" + flows.frame(next(flows.flows()))[12:], "198.18.0.1 to"),
        (b"\0" * 12 + b"\x86\xdd\x60" + b"\0" * 5 + b"\x3a" + b"\0" * 33, ":: to ::, protocol 58"),
    ],
)  # fmt: skip
def test_frames_are_described(frame: bytes, words: str) -> None:
    assert described(frame).startswith(words)


def test_packets_may_be_dropped_where_both_were_seen_to() -> None:
    dropping = [Window(arm, (Slice((1000_000,), (400_000,), 10**9),)) for arm in (0, 1)]
    refuse(dropping, dropping=True)
    with pytest.raises(FaultError, match="40%"):
        refuse(dropping)
    nothing = [Window(0, (Slice((1000_000,), (0,), 10**9),))]
    with pytest.raises(FaultError, match="0%"):
        refuse(nothing, dropping=True)


# -- frames given by a user ------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines of the generator, which does nothing."""
    seen: list[list[str]] = []

    class Host:
        def run(self, argv: list[str], **_: Any) -> Any:
            seen.append(argv)
            from linerate.host.host import Completed

            return Completed(0, "", "")

    monkeypatch.setattr(frame_files, "LOCAL", Host())
    monkeypatch.setattr(frame_files, "rust_binary", Path)
    return seen


def test_each_port_has_a_file_or_all_have_one(asked: list[list[str]], tmp_path: Path) -> None:
    one = tmp_path / "a, b.pcapng"
    one.touch()
    assert frame_files.frame_files([str(one)], 2, tmp_path) == (tmp_path / "traffic0.pcap",)
    assert f"pcap={tmp_path}/given0,rate=1Mpps,loops=1" in asked[0]
    assert "--write-limit" not in asked[0]
    both = frame_files.frame_files(["size=imix", "size=64,duration=9frames"], 2, tmp_path)
    assert [path.name for path in both] == ["traffic0.pcap", "traffic1.pcap"]
    assert "size=imix,latency=off,frames=8192" in asked[1]
    assert "size=64,duration=9frames,latency=off" in asked[2]
    with pytest.raises(UsageError, match="given 3 times, for 2 ports"):
        frame_files.frame_files(["a=1"] * 3, 2, tmp_path)


OTG = """
ports: [{name: left, location: eth1}, {name: right}]
flows: [{name: f, tx_rx: {choice: port, port: {tx_name: left}}}]
"""


def test_configurations_say_which_ports_send(asked: list[list[str]], tmp_path: Path) -> None:
    file = tmp_path / "otg.yaml"
    file.write_text(OTG)
    assert frame_files.frame_files([str(file)], 2, tmp_path) == (tmp_path / "traffic0.pcap",)
    assert f"--write=p0={tmp_path}/traffic0.pcap" in asked[0]
    config = json.loads((tmp_path / "traffic.json").read_text())
    assert config["flows"][0]["tx_rx"] == {"port": {"tx_name": "p0"}}
    for text, words in (
        ("ports: [", "not a configuration"),
        ("[1, 2]", "not a configuration"),
        ("ports: [{name: p}]\nflows: []", "no flow is sent"),
        ("ports: [{name: p}]\nflows: null", "no flow is sent"),
        ("ports: [{name: p}]\nflows: 5", "not a configuration"),
        ("ports: [{name: p}]\nflows: [{tx_rx: null}]", "not a configuration"),
        ("ports: [{name: p}]\nflows: [{tx_rx: {port: {tx_name: q}}}]", "not a configuration"),
        (f"{OTG}\nflows: [{{d: 2024-01-01, tx_rx: {{port: {{tx_name: left}}}}}}]", "not a conf"),
        ("x: &x [*x]\nports: *x", "not a configuration"),
        ("[" * 3000, "nested too deeply|not a configuration"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=words):
            frame_files.frame_files([str(file)], 2, tmp_path)
    with pytest.raises(UsageError, match="the flows of all ports"):
        frame_files.frame_files([str(file), "size=64"], 2, tmp_path)


@pytest.mark.parametrize("count", [1, 3])
def test_files_are_counted(tmp_path: Path, count: int) -> None:
    file = tmp_path / "traffic0.pcap"
    frame = flows.frame(next(flows.flows()))
    file.write_bytes(flows.capture([frame, bytes(1514), frame][:count]))
    found = frame_files.contents(file)
    assert (found.frames, found.size) == (count, [64, 0, 64 + 1518 + 64][count - 1])


def test_links_say_which_frames_they_carry(asked: list[list[str]], tmp_path: Path) -> None:
    word = "size=64"
    for name, most in (("memif2", "1518"), ("veth", "1518"), ("frames2", "9216")):
        on, files = with_traffic(link(name), [word], tmp_path)
        assert files == (tmp_path / "traffic0.pcap",)
        assert asked[-1][-2:] == ["--max-frame", most]
        assert isinstance(on, Frames) == (name == "frames2")
    assert with_traffic(link("null2"), [], tmp_path) == (link("null2"), ())
    with pytest.raises(UsageError, match="the ports of --link null2 make packets of their own"):
        with_traffic(link("null2"), [word], tmp_path)


@pytest.mark.parametrize("word", ["nowhere.pcap", "nonsense", "nowhere.json"])
def test_what_is_no_traffic_is_told(asked: list[list[str]], tmp_path: Path, word: str) -> None:
    with pytest.raises(UsageError, match=f"--traffic {word}"):
        frame_files.frame_files([word], 1, tmp_path)
    assert not asked


def test_the_link_hands_out_the_files(tmp_path: Path) -> None:
    given = tmp_path / "of, a user.pcap"
    given.write_bytes(flows.capture([flows.frame(next(flows.flows()))]))
    frames = cast(Frames, LINKS["frames2"]).with_files((given,))
    assert not frames.size_matters
    assert LINKS["frames2"].size_matters
    vdevs = [frames.checking()._further(port, LinkContext(tmp_path, 64)) for port in range(2)]
    for port, words in enumerate(vdevs):
        path = tmp_path / f"frames{port}.pcap"
        assert words == f",frames={path},check=1"
        assert path.resolve() == given


def test_frames_of_the_lab_have_the_trials_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "build_directory", lambda: tmp_path)
    frames = cast(Frames, LINKS["frames"])
    for size in (64, 512):
        frames._further(0, LinkContext(tmp_path, size))
        content = (tmp_path / "frames0.pcap").read_bytes()
        assert int.from_bytes(content[32:36], "little") == size - 4
