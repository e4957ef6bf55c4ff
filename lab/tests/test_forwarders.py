# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders as command lines, and the rules that carry the lab's flows through them."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from linerate.forwarders import FORWARDERS, forwarder, recipes, surroundings
from linerate.host.builds import c_examples
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LabError, MissingError, UsageError
from linerate.host.host import InNamespace
from linerate.host.netns import Interface
from linerate.host.places import project_root
from linerate.host.process import Command
from linerate.links import Wire, flows, rules
from linerate.links.eal import Memory
from linerate.traffic.otg import OtgClient, Traffic

SMALL = Memory(hugepages=False)
CORES = Cores(0, 3, shared_core=False)
ONE = Wire(vdevs=("net_memif0",))
TWO = Wire(vdevs=("net_memif0", "net_memif1"))
VETH = Wire(
    vdevs=("net_af_packet0,iface=f0", "net_af_packet1,iface=f1"),
    host=InNamespace("fwd"),
    sender_host=InNamespace("gen"),
    interfaces=tuple(
        Interface(InNamespace(end[:3]), f"{end[0]}{n}", end)
        for n in range(2)
        for end in (Interface.GENERATOR, Interface.FORWARDER)
    ),
)
ROUTING = ["c-l3fwd-lpm", "c-l3fwd-em", "c-l3fwd-acl", "c-l3fwd-graph"]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lab builds into a directory of the test's own, and the build is faked."""
    monkeypatch.setattr(rules, "build_directory", lambda: tmp_path)

    def pretend(name: str, *arguments: object, **options: object) -> c_examples.CExample:
        return c_examples.CExample(Path("/built") / name, {"include": str(options.get("include"))})

    monkeypatch.setattr(c_examples, "build", pretend)
    for module in (recipes, surroundings):
        monkeypatch.setattr(module, "rust_binary", lambda name: Path("/built") / name)
    for each in FORWARDERS.values():
        monkeypatch.setattr(each, "_built", None)
    monkeypatch.setattr("shutil.which", lambda name, *_: f"/bin/{name}")
    return tmp_path


def start(name: str, wire: Wire, memory: Memory = SMALL) -> Command:
    found = forwarder(name).command(CORES, memory, "prefix", wire)
    assert found is not None
    return found


def command(name: str, wire: Wire, memory: Memory = SMALL) -> tuple[list[str], list[str]]:
    """EAL's options and the program's own."""
    argv = list(start(name, wire, memory).argv)
    split = argv.index("--")
    return argv[:split], argv[split + 1 :]


def value(options: list[str], name: str) -> str:
    """The value of an option that is given once."""
    (found,) = [option for option in options if option.startswith(f"{name}=")]
    return found.partition("=")[2]


def test_names_are_the_keys_and_differ() -> None:
    assert all(name == each.name for name, each in FORWARDERS.items())
    assert {each.language for each in FORWARDERS.values()} == {"C", "Rust"}


def test_the_page_names_them_all() -> None:
    page = (project_root() / "docs" / "compare-forwarders.md").read_text()
    assert not {name for name in FORWARDERS if f"`{name}`" not in page}


@pytest.mark.parametrize("mode", ["io", "mac", "macswap", "csum", "5tswap"])
def test_testpmd(build: Path, mode: str) -> None:
    eal, own = command(f"testpmd-{mode}", TWO)
    assert eal[:3] == ["/bin/dpdk-testpmd", "--lcores", "(0,1)@3"]
    assert value(own, "--forward-mode") == mode
    assert value(own, "--port-topology") == "paired"
    peers = [option for option in own if option.startswith("--eth-peer")]
    named = ["--eth-peer=0,02:00:00:00:01:00", "--eth-peer=1,02:00:00:00:01:01"]
    assert peers == (named if mode in ("mac", "csum") else [])
    assert value(command(f"testpmd-{mode}", ONE)[1], "--port-topology") == "loop"


def test_testpmd_on_another_driver(build: Path) -> None:
    eal, own = command("testpmd-af-xdp", VETH)
    assert [word for word in eal if word.startswith("net_")] == [
        "net_af_xdp0,iface=f0", "net_af_xdp1,iface=f1",
    ]  # fmt: skip
    assert own == command("testpmd-io", VETH)[1]


@pytest.mark.parametrize("name", ["testpmd-af-xdp", "af-xdp", "xdp-tx", "xdp-fib"])
def test_what_needs_interfaces_says_so(build: Path, name: str) -> None:
    for wire in (ONE, Wire(pci=("0000:01:00.0",))):
        with pytest.raises(UsageError, match=f"{name}: .* network interfaces only"):
            start(name, wire)


def test_xdp_tx_has_a_program_at_the_other_end(build: Path) -> None:
    assert command("xdp-tx", VETH)[1][-2:] == ["--action", "tx"]
    beside = forwarder("xdp-tx").companion(0, "beside", VETH)
    assert beside is not None
    assert beside.cpus == (0,)
    assert beside.argv == (
        "/built/xdp-fwd", "-l", "0", "--file-prefix", "beside",
        "--vdev", "net_xdp0,iface=g0", "--vdev", "net_xdp1,iface=g1",
        "--", "-p", "3", "-q", "2", "-T", "0", "--action", "pass",
    )  # fmt: skip
    assert forwarder("xdp-redirect").companion(0, "beside", VETH) is None
    # AF_XDP attaches a program, and an interface accepts no second one.
    own = replace(VETH, sender_has_xdp=True)
    assert forwarder("xdp-tx").companion(0, "beside", own) is None
    with pytest.raises(UsageError, match="generator's end"):
        forwarder("xdp-tx").companion(0, "beside", replace(VETH, interfaces=()))


def test_xdp_fib_needs_the_routes_of_two_ports(build: Path) -> None:
    one = replace(VETH, interfaces=VETH.interfaces[:2])
    with (
        pytest.raises(UsageError, match=r"xdp-fib: .* this link has one"),
        forwarder("xdp-fib").configured(one),
    ):
        pass


def test_testpmd_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_: None)
    with pytest.raises(MissingError, match="dpdk-testpmd") as caught:
        forwarder("testpmd-5tswap").prepare()
    assert "make setup" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "program"), [("c-skeleton", "skeleton"), ("c-rxtx-callbacks", "rxtx_callbacks")]
)
def test_the_smallest_examples_take_no_options(build: Path, name: str, program: str) -> None:
    forwarder(name).prepare()
    eal, own = command(name, TWO)
    assert eal[:3] == [f"/built/{program}", "-l", "3"]
    assert own == []
    assert forwarder(name).definition.ports.number == "even"


@pytest.mark.parametrize("lookup", ["lpm", "em", "acl"])
def test_l3fwd(build: Path, lookup: str) -> None:
    name = f"c-l3fwd-{lookup}"
    forwarder(name).prepare()
    eal, own = command(name, TWO)
    assert eal[:3] == ["/built/l3fwd", "--lcores", "0@3"]
    assert own[:5] == ["-p", "3", "-P", "--config", "(0,0,0),(1,0,0)"]
    assert own[5:8] == [
        "--eth-dest=0,02:00:00:00:01:00", "--eth-dest=1,02:00:00:00:01:01", f"--lookup={lookup}",
    ]  # fmt: skip
    assert own[-1] == "--parse-ptype"
    for version in (4, 6):
        text = Path(value(own, f"--rule_ipv{version}")).read_text()
        assert text == rules.LOOKUPS[lookup](version, 2)
    one = command(name, ONE)[1]
    assert one[:5] == ["-p", "1", "-P", "--config", "(0,0,0)"]
    assert Path(value(one, "--rule_ipv4")).read_text() == rules.LOOKUPS[lookup](4, 1)
    facts = forwarder(name).build_facts()
    assert facts["include"] == "linerate_ports.h"
    assert "offloads" in facts["changes"]


def test_l3fwd_parses_packet_types_where_the_driver_does_not(build: Path) -> None:
    for wire, needed in (
        (Wire(vdevs=("net_tap0,iface=a", "net_tap1,iface=b")), False),
        (Wire(vdevs=("net_tap0,iface=a", "net_memif0")), True),
        (Wire(pci=("0000:01:00.0",)), False),
        (Wire(vdevs=("net_null0,size=60",)), True),
    ):
        assert ("--parse-ptype" in command("c-l3fwd-lpm", wire)[1]) is needed


def test_exact_match_has_the_memory_that_its_tables_need(build: Path) -> None:
    def memory(name: str) -> int:
        eal, _ = command(name, ONE)
        return int(eal[eal.index("-m") + 1])

    # Two tables of 4 Mi entries; rte_hash.h: a key with its data, a ring of slots, buckets.
    assert memory("c-l3fwd-em") >= 640
    assert {memory(name) for name in ROUTING if name != "c-l3fwd-em"} == {512}
    assert "-m" not in command("c-l3fwd-em", ONE, Memory(hugepages=True))[0]


def test_l3fwd_graph(build: Path) -> None:
    forwarder("c-l3fwd-graph").prepare()
    eal, own = command("c-l3fwd-graph", TWO)
    assert eal[:3] == ["/built/l3fwd-graph", "--lcores", "(0,1)@3"]
    assert own[:5] == ["-p", "3", "-P", "--config", "(0,0,1),(1,0,1)"]
    # It supports none of l3fwd's other options.
    assert own[5:] == ["--eth-dest=0,02:00:00:00:01:00", "--eth-dest=1,02:00:00:00:01:01"]
    environment = start("c-l3fwd-graph", TWO).environment
    assert Path(environment["LINERATE_ROUTES"]).read_text() == rules.lpm(4, 2)
    assert forwarder("c-l3fwd-graph").build_facts()["include"] == "linerate_graph.h"


@pytest.mark.parametrize("executor", ["dpdk", "fused"])
def test_l3fwd_graph_in_rust(build: Path, executor: str) -> None:
    name = "rust-l3fwd-graph" + ("-fused" if executor == "fused" else "")
    eal, own = command(name, TWO)
    assert eal[:3] == ["/built/l3fwd-graph", "--lcores", "(0,1)@3"]
    # The C program's options, and the routes that a patch gives it.
    assert own[:7] == command("c-l3fwd-graph", TWO)[1]
    assert Path(value(own, "--routes_ipv4")).read_text() == rules.lpm(4, 2)
    assert Path(value(own, "--routes_ipv6")).read_text() == rules.lpm(6, 2)
    assert value(own, "--executor") == executor
    with pytest.raises(UsageError, match=f"{name}: .* no addresses"):
        start(name, Wire(vdevs=("net_null0",)))


@pytest.mark.parametrize("name", ROUTING)
def test_ports_without_frames_are_given_the_lab_s(build: Path, name: str) -> None:
    environment = start(name, ONE).environment
    frames = Path(environment["LINERATE_FRAMES"]).read_bytes()
    assert frames == b"".join(flows.frame(flow) for flow in flows.flows())


def test_frames_of_two_ports_leave_by_them_in_turn(build: Path) -> None:
    frames = rules.mixed_frame_file(2).read_bytes()
    step = flows.FRAME_BYTES
    assert len(frames) > 0.9 * flows.FLOWS * step
    to = [ip_address(frames[at + 30 : at + 34]) for at in range(0, len(frames), step)]
    assert [rules.out_port(each, 2) for each in to] == [0, 1] * (len(to) // 2)
    assert len(set(to)) == len(to)


@pytest.mark.parametrize("name", [*ROUTING, "c-l2fwd"])
def test_an_example_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(c_examples, "PLACES", (tmp_path,))
    with pytest.raises(MissingError, match="example is not installed") as caught:
        forwarder(name).prepare()
    assert "make setup" in str(caught.value.hint)


def test_the_directory_that_l3fwd_shares_with_others_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "l3fwd").mkdir()
    (tmp_path / "l3fwd" / "Makefile").write_text("CFLAGS += -I../common\n")
    monkeypatch.setattr(c_examples, "PLACES", (tmp_path,))
    monkeypatch.setattr(c_examples, "first_line", lambda *_: "cc 1")
    monkeypatch.setattr(c_examples, "dpdk_version", lambda: "22.11")
    with pytest.raises(MissingError, match="common is missing"):
        c_examples.build("l3fwd", include="linerate_ports.h")


def test_an_example_is_built_unmodified_with_our_header_and_what_it_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a real make, whose compiler only records its arguments."""
    source = tmp_path / "examples" / "l3fwd"
    (tmp_path / "examples" / "common" / "sse").mkdir(parents=True)
    (tmp_path / "examples" / "common" / "sse" / "x.h").write_text("/* x */\n")
    source.mkdir()
    (source / "main.c").write_text("int main(void) { return 0; }\n")
    (source / "Makefile").write_text(
        "APP = l3fwd\nCFLAGS += -I../common\n"
        "all:\n\tls ../common/sse/x.h\n"
        "\tmkdir build\n\techo $(CFLAGS) main.c | tee build/l3fwd\n"
        "\tls linerate_*.h >> build/l3fwd || true\n"
    )
    before = {path: path.read_bytes() for path in source.iterdir()}
    monkeypatch.setattr(c_examples, "PLACES", (tmp_path / "examples",))
    monkeypatch.setattr(c_examples, "build_directory", lambda: tmp_path / "out")
    monkeypatch.setattr(c_examples, "first_line", lambda *_: "cc 1")
    monkeypatch.setattr(c_examples, "dpdk_version", lambda: "22.11")
    monkeypatch.setenv("CFLAGS", "-O1")
    built = c_examples.build("l3fwd", include="linerate_ports.h")
    assert built.program.read_text() == (
        "-O1 -include linerate_ports.h -I../common main.c\n"
        "linerate_graph.h\nlinerate_graph_acl.h\nlinerate_ports.h\n"
    )
    assert built.facts["include"] == "bench/examples/linerate_ports.h"
    assert "-include linerate_ports.h" in built.facts["command"]
    assert {path: path.read_bytes() for path in source.iterdir()} == before
    # A build takes a minute beside other work, so it is announced, and only when there is one.
    assert capsys.readouterr().err == "linerate: building the C l3fwd, once (cc)\n"
    assert c_examples.build("l3fwd", include="linerate_ports.h") == built
    assert not capsys.readouterr().err
    plain = c_examples.build("l3fwd", native=True).program
    assert plain != built.program
    assert capsys.readouterr().err.endswith("(cc -march=native)\n")
    assert c_examples.build("l3fwd", include="linerate_ports.h").program == built.program
    (tmp_path / "examples" / "common" / "sse" / "x.h").write_text("/* y */\n")
    assert c_examples.build("l3fwd", include="linerate_ports.h").program != built.program


def test_sources_of_ours_are_compiled_beside_those_that_an_example_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "examples" / "l3fwd-graph"
    source.mkdir(parents=True)
    (source / "main.c").write_text("int main(void) { return 0; }\n")
    makefile = (
        "APP = l3fwd-graph\nSRCS-y := main.c\nall:\n\tmkdir build\n"
        "\tls $(SRCS-y) > build/l3fwd-graph\n\techo $(SRCS-y)\n"
    )
    (source / "Makefile").write_text(makefile)
    monkeypatch.setattr(c_examples, "PLACES", (tmp_path / "examples",))
    monkeypatch.setattr(c_examples, "build_directory", lambda: tmp_path / "out")
    monkeypatch.setattr(c_examples, "first_line", lambda *_: "cc 1")
    monkeypatch.setattr(c_examples, "dpdk_version", lambda: "22.11")
    built = c_examples.build("l3fwd-graph", sources=["pkt_acl.c", "acl_rules.c"])
    assert built.program.read_text() == "acl_rules.c\nmain.c\npkt_acl.c\n"
    assert built.facts["sources"] == "bench/examples/pkt_acl.c bench/examples/acl_rules.c"
    assert c_examples.build("l3fwd-graph").program != built.program
    assert sorted(path.name for path in source.iterdir()) == ["Makefile", "main.c"]
    with pytest.raises(MissingError, match=r"none\.c is not there"):
        c_examples.build("l3fwd-graph", sources=["none.c"])
    (source / "Makefile").write_text(makefile.replace("SRCS-y", "SOURCES"))
    with pytest.raises(LabError, match="its Makefile has no line SRCS-y"):
        c_examples.build("l3fwd-graph", sources=["pkt_acl.c"])


def test_rule_files_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(rules, "build_directory", lambda: tmp_path / "file")
    with pytest.raises(LabError, match="rule files"):
        rules.rule_files("lpm", 1)


def test_rule_files_are_written_once_and_named_by_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "build_directory", lambda: tmp_path)
    first = rules.rule_files("em", 2)
    before = first.ipv4.stat().st_mtime_ns
    assert rules.rule_files("em", 2) == first
    assert first.ipv4.stat().st_mtime_ns == before
    monkeypatch.setattr(flows, "FLOWS", 10)
    assert rules.rule_files("em", 2).ipv4 != first.ipv4
    assert {path.suffix for path in (tmp_path / "rules").iterdir() if path.is_file()} == {
        ".cfg", "",
    }  # fmt: skip


# -- what the rules do, evaluated by readers of l3fwd's formats that do not know how they were made

Lookup = Callable[[flows.Flow], int | None]


def lpm_lookup(text: str) -> Lookup:
    """The longest prefix that holds the destination."""
    table = {}
    for line in text.splitlines():
        network, port = line.removeprefix("R").split()
        assert line[0] == "R"
        table[ip_network(network)] = int(port)

    def find(flow: flows.Flow) -> int | None:
        held = [network for network in table if flow.destination in network]
        return table[max(held, key=lambda network: network.prefixlen)] if held else None

    return find


def em_lookup(text: str) -> Lookup:
    """As l3fwd orders the fields: the destination comes first."""
    table = {}
    for line in text.splitlines():
        assert line[0] == "R"
        to, source, to_port, from_port, protocol, port = line.removeprefix("R").split()
        key = (ip_address(to), ip_address(source), int(to_port), int(from_port), int(protocol))
        assert key not in table
        table[key] = int(port)
    return lambda flow: table.get((flow.destination, flow.source, flow.port, flow.port, 17))


RULE = re.compile(
    r"([@R])(\S+)\s+(\S+)\s+(\d+) : (\d+)\s+(\d+) : (\d+)\s+(\d+)/(0x[0-9a-f]+|\d+)(?:\s+(\d+))?"
)


def acl_lookup(text: str) -> Lookup:
    """The first rule that matches; None if it denies, or if none matches."""
    found = []
    for line in text.splitlines():
        match = RULE.fullmatch(line)
        assert match, line
        kind, source, to, *numbers, port = match.groups()
        assert (kind == "R") == (port is not None)
        if ":" in source:
            # Its reader accepts exactly eight groups.
            assert source.count(":") == to.count(":") == 7
        values = [int(number, 0) for number in numbers]
        found.append((ip_network(source), ip_network(to), values, port))

    def find(flow: flows.Flow) -> int | None:
        for source, to, (low, high, to_low, to_high, protocol, mask), port in found:
            if (
                flow.source in source
                and flow.destination in to
                and low <= flow.port <= high
                and to_low <= flow.port <= to_high
                and protocol & mask == 17 & mask
            ):
                return None if port is None else int(port)
        return None

    return find


READERS = {"lpm": lpm_lookup, "em": em_lookup, "acl": acl_lookup}


@pytest.mark.parametrize("lookup", READERS)
@pytest.mark.parametrize("version", [4, 6])
def test_every_flow_of_the_lab_has_its_way_out(lookup: str, version: int) -> None:
    all_flows = list(flows.flows(version))
    one = READERS[lookup](rules.LOOKUPS[lookup](version, 1))
    assert {one(flow) for flow in all_flows} == {0}
    two = READERS[lookup](rules.LOOKUPS[lookup](version, 2))
    out = Counter(two(flow) for flow in all_flows)
    # Neither port is to send much more than the other.
    assert set(out) == {0, 1}
    assert abs(out[0] - out[1]) < 0.05 * flows.FLOWS
    # Every mode sends a flow to the same port, so that modes can be compared.
    assert all(two(flow) == rules.out_port(flow.destination, 2) for flow in all_flows)


@pytest.mark.parametrize("version", [4, 6])
def test_access_lists_deny_what_the_lab_never_sends(version: int) -> None:
    allow = acl_lookup(rules.acl(version, 1))
    flow = next(flows.flows(version))
    assert allow(flow) == 0
    assert allow(flows.Flow(flow.source, flow.destination, 53)) is None
    assert allow(flows.Flow(flow.source, flow.source, flow.port)) is None
    if version == 4:
        assert allow(flows.Flow(ip_address("10.1.2.3"), flow.destination, flow.port)) is None


def test_the_rules_are_for_what_the_sender_sends() -> None:
    client = OtgClient("http://127.0.0.1:1")
    traffic = Traffic(("a", "b"), 64, 1.0)
    config = client._configuration(traffic).serialize("dict")
    client.close()
    all_flows = list(flows.flows())
    assert len(all_flows) == traffic.flows
    for index, flow in enumerate(config["flows"]):
        ethernet, ipv4, udp = (header[header["choice"]] for header in flow["packet"])
        assert ethernet["src"]["value"] == f"02:00:00:00:01:{index:02x}"
        assert ethernet["dst"]["value"] == f"02:00:00:00:02:{index:02x}"
        for place in (0, 1, len(all_flows) - 1):
            sent = [
                counted(ipv4["src"], place), counted(ipv4["dst"], place),
                counted(udp["src_port"], place), counted(udp["dst_port"], place),
            ]  # fmt: skip
            known = all_flows[place]
            assert sent == [int(known.source), int(known.destination), known.port, known.port]


def counted(field: dict[str, dict[str, int | str]], place: int) -> int:
    """Value number `place` of a field that counts up."""

    def number(text: int | str) -> int:
        return int(ip_address(text)) if isinstance(text, str) else text

    pattern = field["increment"]
    assert place < int(pattern["count"])
    return number(pattern["start"]) + place * number(pattern["step"])


def test_frames_are_sound() -> None:
    for flow in (next(flows.flows()), list(flows.flows())[-1]):
        frame = flows.frame(flow)
        assert len(frame) == flows.FRAME_BYTES
        assert frame[12:14] == b"\x08\x00"
        header = frame[14:34]
        words = [int.from_bytes(header[at : at + 2], "big") for at in range(0, 20, 2)]
        total = sum(words)
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        assert total == 0xFFFF
        assert words[1] == flows.FRAME_BYTES - 14
        assert (header[8], header[9]) == (64, 17)
        assert header[12:16] == socket.inet_aton(str(flow.source))
        assert header[16:20] == socket.inet_aton(str(flow.destination))
        assert int.from_bytes(frame[34:36], "big") == int.from_bytes(frame[36:38], "big")
        assert int.from_bytes(frame[38:40], "big") == flows.FRAME_BYTES - 34


def test_our_headers_and_the_lab_agree() -> None:
    text = (project_root() / "bench" / "examples" / "linerate_ports.h").read_text()
    numbers = dict(re.findall(r"^#define (LINERATE_\w+) (\d+)$", text, re.MULTILINE))
    assert int(numbers["LINERATE_FRAME"]) == flows.FRAME_BYTES
    assert int(numbers["LINERATE_MAX_FRAMES"]) >= flows.FLOWS
