# SPDX-License-Identifier: BSD-3-Clause
"""`linerate trex-convert`: configurations, refusals, rates, and what a profile may do.

That frames are as the profiles say is tested where the generator is: crates/generator/tests.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Linerate

from linerate.host.errors import UsageError
from linerate.traffic.trex import captures, execution
from linerate.traffic.trex.convert import Asked, Converted, convert
from linerate.traffic.trex.profile import confinement

PROFILES = Path(__file__).parent / "trex_profiles"
HEAD = "from trex_stl_lib.api import *\n"
PLAIN = "Ether() / IP(src='16.0.0.1', dst='48.0.0.1') / UDP(sport=1, dport=2) / ('x' * 60)"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    # Profiles of root's are run as nobody.
    tmp_path.chmod(0o755)
    return tmp_path / "profile.py"


def streams_of(profile: Path, *streams: str, before: str = "") -> Path:
    """A profile with these streams."""
    profile.write_text(
        f"{HEAD}{before}\n\nPACKET = STLPktBuilder(pkt={PLAIN})\n\n\nclass Profile:\n"
        "    def get_streams(self, direction=0, **kwargs):\n        return [\n"
        + "".join(f"            {each},\n" for each in streams)
        + "        ]\n\n\ndef register():\n    return Profile()\n"
    )
    return profile


def flows(converted: Converted) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in converted.config["flows"]}


def refusals(profile: Path, **options: Any) -> list[str]:
    with pytest.raises(UsageError) as refused:
        convert(Asked(profile, **options))
    return [each.removeprefix(f"{profile}:") for each in str(refused.value).splitlines()]


def test_a_file_is_written_and_differences_are_told(linerate: Linerate, tmp_path: Path) -> None:
    done = linerate("trex-convert", str(PROFILES / "statistics.py"), "-o", "config.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(
        "note: packets without Ethernet addresses in the profile go from 0"
    )
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["ports"] == [{"name": "p0", "location": "ring:loop"}]
    assert [each["name"] for each in config["flows"]] == ["counted", "plain", "latency"]
    counted, plain, latency = config["flows"]
    assert counted["metrics"] == {"enable": True, "loss": True}
    assert "metrics" not in plain
    assert latency["metrics"]["latency"]["enable"] is True
    printed = linerate("trex-convert", str(PROFILES / "statistics.py"))
    assert json.loads(printed.stdout) == config


def test_each_port_has_the_streams_of_its_direction() -> None:
    asked = Asked(PROFILES / "statistics.py", ports=["west=veth0", "null:x,size=64", "e=ring:c"])
    converted = convert(asked)
    assert converted.config["ports"] == [
        {"name": "west", "location": "veth0"},
        {"name": "p1", "location": "null:x,size=64"},
        {"name": "e", "location": "ring:c"},
    ]
    found = flows(converted)
    assert list(found) == [
        "counted", "plain", "latency", "counted.p1", "plain.p1", "latency.p1",
        "counted.e", "plain.e", "latency.e",
    ]  # fmt: skip
    sources = [found[name]["packet"][1]["ipv4"]["src"]["value"]
               for name in ("counted", "counted.p1", "counted.e")]  # fmt: skip
    assert sources == ["16.0.0.1", "48.0.0.1", "16.0.0.1"]
    assert found["plain.p1"]["tx_rx"]["port"]["tx_name"] == "p1"


# Each conversion runs a process that imports scapy, a second of a CPU: refusals are told together.
def test_what_has_no_counterpart_is_refused_by_name_and_line() -> None:
    told = refusals(PROFILES / "unsuitable.py")
    for found, (line, stream, reason) in zip(told, [
        (15, "payload", "writes 'v' to bytes 50 to 53, which are not all fields of the model's"),
        (22, "nested", "variable 'v' steps only when 'w' begins anew (next_var)"),
        (15, "checksum", "writes the checksum of udp"),
        (24, "middle", "init_value 5 of variable 'v' is in the middle of a round of 1048577"),
        (15, "unknown", "writes 'v', which is no variable (none)"),
        (15, "layer", "offset 'TCP.sport': the packet has no such layer"),
        (27, "size", "trims to 40 to 70 bytes (variable 'v'), a packet of 102"),
    ], strict=True):  # fmt: skip
        assert found.startswith(f"{line}: stream {stream}: {reason}")


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        ("late", "bursts begin after 10 us (isg, or a stream before it)"),
        ("there+back", "streams 'there' -> 'back' -> 'there' repeat"),
        ("rare", "a rate of 0.25 frames per second is 252 bits per second"),
        ("endless", "next 'back' never begins: this stream has no end"),
    ],
)
def test_streams_that_cannot_be_sent_are_refused(stream: str, reason: str) -> None:
    (told,) = refusals(PROFILES / "unsuitable.py", tunables=f"only={stream}")
    assert told.startswith(f"11: stream {stream.rpartition('+')[2]}: {reason}")


def test_instructions_that_cannot_be_are_refused(profile: Path) -> None:
    impossible = [
        ("vm.var('v', 5, 4); vm.write('v', 26)", "goes from 5 to 4, which is no range of 4 bytes"),
        ("vm.var('v', 0, 300, size=1); vm.write('v', 26)", "goes from 0 to 300"),
        ("vm.var('v', step=-1); vm.write('v', 26)", "step -1 of variable 'v': below 0"),
        ("vm.var('v'); vm.write('v', 100)", "writes 'v' to bytes 100 to 103 of a packet of 102"),
        ("vm.var('v'); vm.write('v', 'IP.nothing')", "IP has no field nothing; it has version"),
        ("vm.var('v'); vm.write('v', 'Snmp.id')", "give bytes of this layer by their number"),
        ("vm.var('v'); vm.write('v', 'IP src')", "is neither a number nor LAYER.FIELD"),
        ("vm.trim('v')", "trims to 'v', which is no variable"),
        ("vm.fix_chksum(offset=15)", "makes a checksum at byte 15, where no header begins"),
        ("vm.var('a', 0, 65520, size=2); vm.var('b', 0, 1, size=1); vm.write('a', 'IP.src'); "
         "vm.write('b', 'IP.src', offset_fixup=3)", "takes 131042 packets until they meet again"),
        ("vm.var('v', 0, 1 << 20); vm.write('v', 'IP.src', is_big=False)", "has 1048577 values"),
        ("vm.var('s', 64, 90, size=2, op='random'); vm.trim('s'); vm.write('s', 'IP.id')",
         "identification of ipv4 follows the size of the frame"),
        ("vm.tuple_var('t', '16.0.0.1', '16.0.1.144', 1, 400, 0); vm.write('t.ip', 'IP.src')",
         "has 160000 flows of 400 addresses and 400 ports"),
    ]  # fmt: skip
    # Ten are told of a profile.
    for part in (impossible[:7], impossible[7:]):
        many(profile, [vm for vm, _ in part])
        told = refusals(profile)
        for number, (found, (_, reason)) in enumerate(zip(told, part, strict=True)):
            assert re.match(rf"\d+: stream s{number}: ", found)
            assert reason in found


def test_a_tuple_of_as_many_addresses_as_ports_is_converted(profile: Path) -> None:
    many(profile, [
        "vm.tuple_var('t', '16.0.0.1', '16.0.0.200', 1000, 1199); vm.write('t.ip', 'IP.src')"
    ])  # fmt: skip
    assert convert(Asked(profile)).config["flows"]


def many(profile: Path, instructions: list[str]) -> None:
    """A profile with a stream for each of these, s0 and so on."""
    before = "".join(
        f"vm = vm{number} = STLVM()\n{each}\n" for number, each in enumerate(instructions)
    )
    streams = (
        f"STLStream(name='s{number}', packet=STLPktBuilder(pkt={PLAIN}, vm=vm{number}))"
        for number in range(len(instructions))
    )
    streams_of(profile, *streams, before=before)


def test_long_tuples_keep_their_flows_in_another_order(profile: Path) -> None:
    before = (
        "vm = STLVM()\nvm.tuple_var('t', '16.0.0.1', '16.0.0.255')\n"
        "vm.write('t.ip', 'IP.src')\nvm.write('t.port', 'UDP.sport')\n"
    )
    streams_of(profile, f"STLStream(packet=STLPktBuilder(pkt={PLAIN}, vm=vm))", before=before)
    converted = convert(Asked(profile))
    _, ip, udp = converted.config["flows"][0]["packet"]
    assert ip["ipv4"]["src"]["increment"]["count"] == 255
    # 255 and 394 have no common divisor: each pair comes once.
    assert udp["udp"]["src_port"]["increment"] == {"start": 1025, "step": 1, "count": 394}
    assert any("100470 flows instead of 100000" in note for note in converted.notes)


def test_rates_are_multiplied_as_trex_does(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams_of(
        profile,
        "STLStream(packet=PACKET, mode=STLTXCont(pps=3000))",
        "STLStream(packet=PACKET, mode=STLTXCont(pps=1000))",
    )
    described = execution.describe(profile, execution.Tunables({}, []), 1)
    monkeypatch.setattr(execution, "describe", lambda *_: described)
    for multiplier, rates in (
        ("1", [{"pps": 3000}, {"pps": 1000}]),
        ("2.5", [{"pps": 7500}, {"pps": 2500}]),
        ("40kpps", [{"pps": 30_000}, {"pps": 10_000}]),
        # Frames of 106 bytes on layer 2, and 20 more on layer 1.
        ("84.8kbps", [{"pps": 75}, {"pps": 25}]),
        ("1mbpsl1", [{"bps": 750_000}, {"bps": 250_000}]),
        ("50%", [{"percentage": 37.5}, {"percentage": 12.5}]),
    ):
        found = convert(Asked(profile, multiplier=multiplier)).config["flows"]
        wanted = [{"choice": next(iter(each)), **each} for each in rates]
        assert [each["rate"] for each in found] == wanted, multiplier


def test_rates_have_every_unit(profile: Path) -> None:
    rates = {
        "STLTXCont(percentage=10)": {"choice": "percentage", "percentage": 10.0},
        "STLTXCont(bps_L1=1e6)": {"choice": "bps", "bps": 1_000_000},
        # A bit on layer 2 is not one on layer 1: 106 bytes of 126.
        "STLTXCont(bps_L2=848)": {"choice": "pps", "pps": 1},
        "STLTXCont(pps=1.5)": {"choice": "bps", "bps": 1512},
        "STLTXCont()": {"choice": "pps", "pps": 1},
    }
    streams_of(profile, *(f"STLStream(packet=PACKET, mode={mode})" for mode in rates))
    found = convert(Asked(profile)).config["flows"]
    assert [flow["rate"] for flow in found] == list(rates.values())


def test_streams_start_others_after_their_last_packet() -> None:
    found = flows(convert(Asked(PROFILES / "bursts.py")))

    def delay(name: str) -> float:
        details = found[name]["duration"][found[name]["duration"]["choice"]]
        return float(details.get("delay", {}).get("microseconds", 0))

    # 11 packets at 1,000 pps take 10 ms, 5 at 672,000 bits/s of 84 bytes on the line 4 ms.
    assert [delay(name) for name in ("first", "second", "third")] == [500, 11_500, 15_500]
    assert found["multi"]["duration"]["burst"] == {
        "bursts": 3, "packets": 4,
        "inter_burst_gap": {"choice": "microseconds", "microseconds": 400.0},
    }  # fmt: skip
    assert found["again"]["duration"]["burst"]["bursts"] == 6
    assert "off" not in found
    # With a multiplier they end sooner.
    found = flows(convert(Asked(PROFILES / "bursts.py", multiplier="10")))
    assert [delay(name) for name in ("first", "second", "third")] == [500, 2500, 2900]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "fast"], "-m fast: no multiplier"),
        (["-m", "0"], "-m 0: no multiplier"),
        (["-t", "fsize"], "-t fsize: 'fsize' is not NAME=VALUE"),
        (["--src-mac", "1:2"], "--src-mac 1:2: no Ethernet address"),
        (["--port", "p0="], "--port p0=: no location"),
        (["--port", "a=ring:a", "--port", "a=ring:b"], "--port a=ring:b: there are two ports a"),
        (["-t", "size=9"], "has no tunable size; it has: op"),
        (["-t", "--size 9"], "takes tunables as NAME=VALUE, not --size"),
        (["-t", "op=up"], "counters.py:12: op 'up' of variable 'src': not one of inc, dec, random"),
    ],
)
def test_options_that_cannot_be_are_named(
    linerate: Linerate, options: list[str], message: str
) -> None:
    done = linerate("trex-convert", str(PROFILES / "counters.py"), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_tunables_reach_a_profile_by_name_and_as_words(linerate: Linerate) -> None:
    for given in ("fsize=100", "--fsize 100"):
        done = linerate("trex-convert", str(PROFILES / "bursts.py"), "-t", given)
        assert {each["size"]["fixed"] for each in json.loads(done.stdout)["flows"]} == {100}
    done = linerate("trex-convert", str(PROFILES / "bursts.py"), "-t", "--wrong 100")
    assert done.returncode == 2
    assert "unrecognized arguments: --wrong 100" in done.stderr


def test_packets_without_addresses_get_those_of_the_options(profile: Path) -> None:
    streams_of(
        profile,
        "STLStream(packet=PACKET)",
        "STLStream(packet=PACKET, mac_src_override_by_pkt=True, mac_dst_override_mode=1)",
    )
    asked = Asked(profile, src_mac="02:00:00:00:00:aa", dst_mac="02:00:00:00:00:bb")
    ours, own = (each["packet"][0]["ethernet"] for each in convert(asked).config["flows"])
    assert ours["src"]["value"] == "02:00:00:00:00:aa"
    assert ours["dst"]["value"] == "02:00:00:00:00:bb"
    assert "src" not in own


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\n", ": has no function register()"),
        ("def register(:\n", ":1: SyntaxError"),
        ("x = 1\ny = x / 0\n", ":2: ZeroDivisionError: division by zero"),
        ("import absent_module\n", ":1: ModuleNotFoundError: No module named 'absent_module'"),
        ("from trex.astf.api import *\n", "; stateful profiles cannot be converted"),
        (f"{HEAD}STLStream(name='s', packet=7)\n", ":2: packet is a int, not STLPktBuilder"),
        (f"{HEAD}STLTXCont(pps=1, percentage=2)\n", ":2: a rate is one of pps"),
        (f"{HEAD}def register():\n    return 7\n", ": what register() returns has no method"),
        ("import os\nos._exit(0)\n", ": ended before it had described its streams"),
    ],
)
def test_a_profile_that_fails_is_told_with_its_line(
    linerate: Linerate, profile: Path, source: str, told: str
) -> None:
    profile.write_text(source)
    done = linerate("trex-convert", str(profile))
    assert done.returncode == 2
    assert f"{profile}{told}" in done.stderr or told in done.stderr
    assert "Traceback" not in done.stderr


def test_files_that_are_no_profile_are_named(linerate: Linerate, tmp_path: Path) -> None:
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe")
    os.mkfifo(tmp_path / "pipe.py")
    for name, message in (
        ("absent.py", "No such file"), ("binary.py", "not a text file"), ("pipe.py", "a pipe"),
    ):  # fmt: skip
        done = linerate("trex-convert", name)
        assert done.returncode == 2
        assert f"{name}: " in done.stderr
        assert message in done.stderr


# What each line would do, and why it is not possible.
ATTEMPTS = {
    "write": "open(HERE + '/written', 'w').write('x')",
    "make": "import os; os.mkdir(HERE + '/made')",
    "remove": "import os; os.unlink(HERE + '/profile.py')",
    "connect": "import socket; socket.create_connection(('127.0.0.1', PORT), 2)",
    "listen": "import socket; s = socket.socket(); s.bind(('0.0.0.0', 0)); s.listen()",
    "fork": "import os; os.fork()",
    "start": "import subprocess; subprocess.run(['true'])",
    "thread": "import threading; threading.Thread(target=print).start()",
    "memory": "bytearray(2 << 30)",
    "kill": "import os; os.kill(PARENT, 9)",
    "root": "import os; os.setuid(0)",
    "secret": "open(SECRET).read()",
    "files": "[open('/dev/null') for _ in range(100)]",
    "mount": "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
             "if libc.mount(b'x', b'/tmp', b'tmpfs', 0, None): raise OSError(ctypes.get_errno())",
}  # fmt: skip


# It makes all attempts, and then says how each ended.
ATTEMPT = """
ended = {}
for name, code in ATTEMPTS.items():
    try:
        exec(code)
        ended[name] = "done"
    except (Exception, SystemExit) as error:
        ended[name] = type(error).__name__
raise RuntimeError(json.dumps(ended))
"""


def test_a_profile_cannot(profile: Path, tmp_path_factory: Any) -> None:
    import socket

    elsewhere = tmp_path_factory.mktemp("elsewhere")
    secret = elsewhere / "secret"
    secret.write_text("secret")
    elsewhere.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        names = {
            "HERE": str(profile.parent), "PORT": server.getsockname()[1],
            "PARENT": os.getpid(), "SECRET": str(secret), "ATTEMPTS": ATTEMPTS,
        }  # fmt: skip
        profile.write_text(
            "import json\n"
            + "".join(f"{name} = {value!r}\n" for name, value in names.items())
            + ATTEMPT
        )
        (told,) = refusals(profile)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    said = re.fullmatch(r"\d+: RuntimeError: (\{.*\})", told)
    assert said, told
    ended = json.loads(said[1])
    assert list(ended) == list(ATTEMPTS)
    assert all(error.endswith(("Error", "error")) for error in ended.values()), ended
    assert [each.name for each in profile.parent.iterdir()] == ["profile.py"]


def test_a_profile_sees_nothing_of_the_environment(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    profile.write_text(
        "import os\n"
        "assert set(os.environ) <= {'HOME', 'LC_CTYPE'}, os.environ\n"
        "assert os.environ['HOME'] == '/nonexistent'\n"
        "assert os.geteuid() != 0\n"
    )
    (told,) = refusals(profile)
    assert "has no function register()" in told, told


def test_descriptions_that_a_profile_forges_are_looked_at(profile: Path) -> None:
    """It finds the pipe for its description, and writes into it itself."""
    forged = {
        "streams": [[{"name": "x", "line": 1, "replay": {"capture": 7}}]], "missing": [],
    }  # fmt: skip
    profile.write_text(
        "import os, stat\n"
        "for number in range(3, 40):\n"
        "    try:\n"
        "        if stat.S_ISFIFO(os.fstat(number).st_mode):\n"
        f"            os.write(number, {json.dumps(forged).encode()!r})\n"
        "    except OSError:\n"
        "        pass\n"
        "os._exit(0)\n"
    )
    (told,) = refusals(profile)
    assert "a stream is not valid: streams.0.0." in told


def test_a_profile_that_prints_without_end_is_only_kept_in_part(profile: Path) -> None:
    profile.write_text("for _ in range(3000): print('x' * 1000)\nprint('the end')\nx = 1 / 0\n")
    told = refusals(profile)
    assert told[0] == "3: ZeroDivisionError: division by zero"
    assert told[-1].endswith("the end")
    assert sum(map(len, told)) < 70_000


@pytest.mark.second_tier
def test_a_profile_has_no_end_of_time(profile: Path) -> None:
    profile.write_text("while True: pass\n")
    (told,) = refusals(profile)
    assert "more than 30 s of CPU time" in told


def test_what_cannot_be_confined_is_told(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this user cannot have namespaces, the rest applies, and a note says so."""
    streams_of(profile, "STLStream(packet=PACKET)")
    found = execution.describe(profile, execution.Tunables({}, []), 1)
    assert found.missing == []
    less = found.model_copy(update={"missing": ["namespaces without network"]})
    monkeypatch.setattr(execution, "describe", lambda *_: less)
    notes = convert(Asked(profile)).notes
    assert "the profile was run without namespaces without network" in notes[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_python_below_a_directory_of_root_s_can_be_imported(tmp_path: Path) -> None:
    packages = tmp_path / "closed" / "packages"
    packages.mkdir(parents=True)
    packages.chmod(0o755)
    (packages / "some_module.py").write_text("VALUE = 7\n")
    packages.parent.chmod(0o700)
    pid = os.fork()
    if pid == 0:
        try:
            sys.path.insert(0, str(packages))
            confinement.keep_reachable()
            confinement.confine()
            os._exit(importlib.import_module("some_module").VALUE)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


# -- capture files -----------------------------------------------------------------------------


def pcap(order: str = "<", magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    times = ((10, 0), (10, 500_000), (11, 0))
    packets = (struct.pack(f"{order}4I", *time, 60, 60) + bytes([n]) * 60
               for n, time in enumerate(times))  # fmt: skip
    return head + b"".join(packets)


def pcapng(fcs: int = 0) -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        whole = len(body) + 12
        return struct.pack("<II", kind, whole) + body + struct.pack("<I", whole)

    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = struct.pack("<HHB3xHHB3xHH", 9, 1, 9, 13, 1, fcs, 0, 0)
    interface = block(1, struct.pack("<HHI", 1, 0, 0) + options)
    packets = b"".join(
        block(6, struct.pack("<5I", 0, time >> 32, time & 0xFFFFFFFF, 60, 60) + bytes(60))
        for time in (10 * 10**9, 10_500_000_000, 11 * 10**9)
    )
    return section + interface + packets


@pytest.mark.parametrize("content", [pcap(), pcap(">"), pcapng()], ids=["pcap", "big", "pcapng"])
def test_capture_files_have_packets_and_times(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    found = captures.read(file)
    assert (found.packets, found.mean, len(found.first)) == (3, 60, 60)
    assert found.seconds == pytest.approx(1)


@pytest.mark.parametrize("content", [pcap(link=1 | 1 << 26 | 2 << 28), pcapng(fcs=4)])
def test_the_fcs_of_captured_packets_does_not_count(tmp_path: Path, content: bytes) -> None:
    """The generator sends their bytes without it."""
    file = tmp_path / "file"
    file.write_bytes(content)
    found = captures.read(file)
    assert (found.packets, found.mean, len(found.first)) == (3, 56, 56)


def test_files_that_are_no_captures_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    profile = Path(shutil.copy(PROFILES / "capture.py", tmp_path))
    (tmp_path / "traffic.pcap").write_bytes(pcap())
    described = execution.describe(profile, execution.Tunables({}, []), 1)
    monkeypatch.setattr(execution, "describe", lambda *_: described)
    for content, reason in (
        (b"", "is too short"),
        (b"x" * 100, "is neither pcap nor pcapng"),
        (pcap()[:-1], "ends in the middle of a packet"),
        (pcap(link=101), "has link type 101, not Ethernet"),
        (pcap()[:24], "has no packets"),
        (pcapng()[:-3], "ends in the middle of a block"),
    ):
        (tmp_path / "traffic.pcap").write_bytes(content)
        first, second = refusals(profile)
        assert f"stream first: traffic.pcap: {reason}" in first
        assert f"stream stream2: traffic.pcap: {reason}" in second


def test_capture_files_become_replays(linerate: Linerate, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    shutil.copy(PROFILES / "capture.py", tmp_path)
    (tmp_path / "traffic.pcap").write_bytes(pcap())
    done = linerate("trex-convert", "capture.py")
    assert done.stderr.endswith(f"--replay stream2={tmp_path}/traffic.pcap\n")
    _, flow = json.loads(done.stdout)["flows"]
    assert flow["rate"] == {"choice": "pps", "pps": 10_000}
    assert flow["duration"]["fixed_packets"] == {"packets": 6}
    done = linerate("trex-convert", "capture.py", "-t", "loops=0")
    assert json.loads(done.stdout)["flows"][1]["duration"]["choice"] == "continuous"


def replayed(profile: Path, arguments: str) -> Path:
    (profile.parent / "traffic.pcap").write_bytes(pcap())
    profile.write_text(
        f"{HEAD}class Profile:\n    def get_streams(self, **kwargs):\n"
        f"        return STLProfile.load_pcap('traffic.pcap', {arguments})\n\n"
        "def register():\n    return Profile()\n"
    )
    return profile


@pytest.mark.parametrize(
    ("arguments", "pps", "note"),
    [
        ("ipg_usec=None", 2, "are sent at their mean rate; with the file's own times: generator"),
        ("speedup=4", 8, "speed=4x"),
    ],
)
def test_files_with_their_own_times_get_a_mean_rate(
    profile: Path, arguments: str, pps: int, note: str
) -> None:
    converted = convert(Asked(replayed(profile, arguments)))
    # Three packets in a second.
    assert converted.config["flows"][0]["rate"]["pps"] == pps
    assert any(note in each for each in converted.notes)


@pytest.mark.parametrize("argument", ["packet_hook=print", "vm=[]"])
def test_changes_to_the_frames_of_a_file_are_refused(profile: Path, argument: str) -> None:
    (told,) = refusals(replayed(profile, argument))
    name = argument.partition("=")[0]
    assert f"4: stream stream1: traffic.pcap with {name}: the frames of a file are sent as" in told
