# SPDX-License-Identifier: BSD-3-Clause
"""Definitions of forwarders: what a file may hold, what is said of faults, and what comes of it.

`forwarder_commands.json` has the command line of every forwarder of the lab, on two ports and on
one, as they have been since before they were definitions. To write it anew after a wanted change:
`python lab/tests/test_definitions.py`.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest
from simulated import Simulation, quiet, resume, start

from linerate.cli.schemas import stored as stored_schema
from linerate.forwarders import (
    FORWARDERS,
    Definition,
    Forwarder,
    add_folder,
    add_from_environment,
    forwarder,
    named,
    recipes,
)
from linerate.forwarders.definition import PLACEHOLDERS
from linerate.forwarders.files import parse
from linerate.forwarders.template import Template
from linerate.host.builds import c_examples
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LabError, MissingError, UsageError
from linerate.host.host import InNamespace
from linerate.host.netns import Interface
from linerate.links import Wire, link, rules
from linerate.links.eal import Memory
from linerate.records import run_file
from linerate.runs.kept.rebuild import report
from linerate.runs.kept.stored import stored
from linerate.runs.options import forwarders_of
from linerate.runs.plans.blocks import check_fit, takes

COMMANDS = Path(__file__).with_name("forwarder_commands.json")
ROOT = Path(__file__).parents[2]
CORES = Cores(0, 3, shared_core=False)
BENCH = ROOT / "bench" / "lab" / "linerate_bench" / "forwarders"
MINE = """
name = "mine"
kind = "dpdk"
command = "./mine {eal} -- -p {portmask}"
"""


def wire(name: str, ports: int) -> Wire:
    """Return a link that this forwarder supports."""
    if not forwarder(name).interfaces_only:
        return Wire(vdevs=tuple(f"net_memif{n}" for n in range(ports)))
    host = InNamespace("fwd")
    return Wire(
        vdevs=tuple(f"net_af_packet{n},iface=f{n}" for n in range(ports)),
        host=host,
        interfaces=tuple(Interface(host, f"f{n}", Interface.FORWARDER) for n in range(ports)),
    )


def commands(directory: Path, monkeypatch: Any) -> dict[str, list[str]]:
    """Return each forwarder's command and additional environment, by name and number of ports."""
    monkeypatch.setattr(rules, "build_directory", lambda: directory)

    def pretend(name: str, *given: object, **options: object) -> c_examples.CExample:
        chosen = [str(each) for each in (*given, *(f"{k}={v}" for k, v in options.items()))]
        return c_examples.CExample(Path("/built", name, *chosen), {})

    monkeypatch.setattr(c_examples, "build", pretend)
    monkeypatch.setattr("linerate.host.builds.compilers.clang", lambda: "clang")
    monkeypatch.setattr(recipes, "rust_binary", lambda name: Path("/built") / name)
    monkeypatch.setattr(recipes, "bench_program", lambda *names: Path("/built", *names))
    monkeypatch.setattr("shutil.which", lambda name, *_: f"/bin/{name}")
    found = {}
    for name, known in sorted(FORWARDERS.items()):
        if known.file:
            continue
        each = Forwarder(known.definition)
        for ports in (1, 2):
            try:
                command = each.command(CORES, Memory(hugepages=False), "prefix", wire(name, ports))
            except UsageError:
                continue
            if command:
                added = [f"{key}={value}" for key, value in command.environment.items()]
                words = [*added, *command.argv, *["<held open"] * command.hold_stdin]
                found[f"{name} {ports}"] = [word.replace(str(directory), "BUILD") for word in words]
    return found


def text_of(found: dict[str, list[str]]) -> str:
    return json.dumps({key: " ".join(words) for key, words in found.items()}, indent=1) + "\n"


def test_the_command_lines_of_the_lab_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert text_of(commands(tmp_path, monkeypatch)) == COMMANDS.read_text()


def test_each_is_by_the_published_schema() -> None:
    schema = stored_schema("forwarder-1.json")
    for each in FORWARDERS.values():
        data = each.definition.as_data()
        jsonschema.validate(data, schema)
        assert Definition.model_validate(data) == each.definition


def test_those_of_the_benchmarks_are_not_among_them() -> None:
    own = {name for name, each in FORWARDERS.items() if each.file is None}
    assert len(own) == 41
    assert not {name for name in own if name.startswith(("plain", "raw", "slowed"))}
    add_folder(BENCH)
    found = {name for name, each in FORWARDERS.items() if each.file and each.file.parent == BENCH}
    assert len(found) == 8
    (arms,) = re.findall(r"^BENCH_ARMS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(arms.split(",")) <= own | found


@pytest.fixture
def forwarders() -> Iterator[dict[str, Forwarder]]:
    """Forget the forwarders that the test has registered."""
    with mock.patch.dict(FORWARDERS):
        yield FORWARDERS


def test_the_page_has_every_key_and_placeholder_and_its_examples_work() -> None:
    page = (ROOT / "docs" / "describe-a-forwarder.md").read_text()
    assert not {name for name in PLACEHOLDERS if f"`{{{name}}}`" not in page}
    for key, field in Definition.model_fields.items():
        name = field.alias or key
        assert f"`{name}`" in page or f"`{name}." in page, name
    examples = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    own, skeleton, contained, bridge = examples
    assert parse(skeleton, "page") == [forwarder("c-skeleton").definition]
    assert [each.name for each in parse(own, "page")] == ["mine"]
    assert [each.counted for each in parse(bridge, "page")] == ["link"]
    (inside,) = parse(contained, "page")
    assert inside.name == "contained"


# -- templates -------------------------------------------------------------------------------------


def test_a_word_is_repeated_for_each_value() -> None:
    values = {"port": ["0", "1"], "peer": ["a", "b"], "none": [], "one": ["x y"]}
    template = Template("--to={port},{peer} {none} --rules={none} '{one}' -{{}} ''")
    assert template.placeholders == ("port", "peer", "none", "one")
    assert template.expand(values.__getitem__) == ["--to=0,a", "--to=1,b", "x y", "-{}", ""]


def test_nothing_that_is_put_in_is_split_or_read_again() -> None:
    assert Template("{x} a{x}").expand(lambda _: ["b 'c {x}"]) == ["b 'c {x}", "ab 'c {x}"]
    assert Template.of_word("it's {x} ").expand(lambda _: ["a"]) == ["it's a "]


@pytest.mark.parametrize("text", ["{", "'", "{}", "{x!r}", "{x:3}", "a}"])
def test_templates_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Template(text)


def test_placeholders_have_values() -> None:
    from linerate.forwarders.placeholders import _VALUES

    assert set(_VALUES) == set(PLACEHOLDERS)


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = ", "mine.toml: not TOML"),
        ("name = " + "[" * 100_000, "mine.toml: TOML that cannot be read: maximum recursion"),
        ("name = " + "9" * 5000, "mine.toml: TOML that cannot be read: Exceeds the limit"),
        ("", 'mine.toml: "name" is missing'),
        (MINE + "tx = 3", 'mine.toml: unknown key "tx" (known: schema, name, '),
        (MINE + "enviroment = {}", 'did you mean "environment"?'),
        (MINE + "ports = { count = 2 }", 'ports: unknown key "count" (known: number, on, driver)'),
        (MINE + 'build = { recipe = "rust", bin = "x" }', 'build: "binary" is missing'),
        (MINE + 'build = { recipe = "nix" }', "build: Input tag 'nix'"),
        (MINE.replace("mask", "masks"), "command: unknown placeholder {portmasks}"),
        (MINE.replace("{eal}", "{eal"), "command: "),
        (MINE.replace("{eal}", "{program}"), "command must have {program} if there is build"),
        (MINE.replace("{eal}", "{table_ipv4}"), "{table_ipv4} needs the table routing"),
        (MINE.replace('"dpdk"', '"dpkd"'), "kind: Input should be 'dpdk'"),
        (MINE + "memory_mib = 0", "memory_mib: Input should be greater than 0"),
        (MINE + 'environment = { A = "{b}" }', "environment: unknown placeholder {b}"),
        (MINE + 'environment = { "A=B" = "1" }', "environment: 'A=B' is not a valid variable name"),
        (MINE + 'environment = { A = "\\u0000" }', "environment: has a NUL character"),
        ('name = "mine"\nkind = "kernel"', 'needs command or setup, or configure = "bridge"'),
        (MINE + 'counted = "link"', 'counted = "link" needs ports.on = "made-interfaces"'),
        (MINE + 'setup = ["ip {eal}"]', "setup: unknown placeholder {eal} (known: ports, "),
        (MINE + 'network = "mine"', "network: Input should be 'lab' or 'own'"),
        (MINE + 'setup = [""]', "setup: a command is empty"),
        (MINE + 'ready = { by = "output" }', 'ready: "text" is missing'),
        (MINE + 'ready = { by = "output", text = "a", txt = 1 }', 'unknown key "txt" (known: by, '),
        (MINE + 'stop = { signal = "SIGSTOP" }', "stop.signal: Input should be 'SIGINT', "),
        ("[defaults]\n" + MINE, "forwarder must be an array of tables"),
        ("a = 1\n[[forwarder]]" + MINE, '"a" stands beside [[forwarder]]'),
        ("[[forwarder]]" + MINE + "x = 1", 'forwarder mine: unknown key "x"'),
        ("[[forwarder]]" + MINE + "[[forwarder]]" + MINE, "two forwarders are called mine"),
    ],
)
def test_faults_are_named_by_file_and_key(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "mine.toml")
    assert str(caught.value.message).startswith("mine.toml")
    assert complaint in str(caught.value.message)


def test_defaults_hold_for_each_that_does_not_set_them() -> None:
    one, two = parse(
        '[defaults]\nkind = "dpdk"\nlanguage = "C"\n'
        '[[forwarder]]\nname = "a"\ncommand = "a {eal}"\n'
        '[[forwarder]]\nname = "b"\nlanguage = "Rust"\ncommand = "b {eal}"\n',
        "two.toml",
    )
    assert [(each.name, each.kind, each.language) for each in (one, two)] == [
        ("a", "dpdk", "C"), ("b", "dpdk", "Rust"),
    ]  # fmt: skip


def test_a_digest_is_of_what_matters() -> None:
    def digest(text: str) -> str:
        (found,) = parse(text, "mine.toml")
        return found.digest

    assert digest(MINE) == digest(MINE + 'description = "fast"\nmemory_mib = 512\n')
    assert digest(MINE) != digest(MINE + "memory_mib = 513\n")
    # Never change these: records are compared with them.
    assert forwarder("c-l2fwd").definition.digest.startswith("c739d83b5f04")


# -- a user's own forwarder ------------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path: Path, forwarders: dict[str, Forwarder]) -> Path:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    return path


def test_a_file_stands_for_the_forwarders_in_it(mine: Path) -> None:
    assert named(["c-l2fwd", str(mine)]) == ["c-l2fwd", "mine"]
    found = forwarder("mine")
    found.prepare()
    command = found.command(CORES, Memory(hugepages=True), "p", Wire(vdevs=("net_null0",)))
    assert command is not None
    assert command.argv == (
        str(mine.parent / "mine"), "-l", "3", "--in-memory", "--file-prefix", "p", "--no-pci",
        "--vdev", "net_null0", "--", "-p", "1",
    )  # fmt: skip
    assert forwarders_of("--forwarders", [f"{mine},c-l2fwd"]) == ["mine", "c-l2fwd"]
    with pytest.raises(UsageError, match="mine: is named twice"):
        forwarders_of("--forwarders", [f"{mine},mine"])


def test_a_file_that_cannot_be_used(mine: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*: No such file"):
        named([str(tmp_path / "none.toml")])
    mine.write_text(MINE.replace("mine", "reflect"))
    with pytest.raises(UsageError, match="there is another forwarder called reflect already"):
        named([str(mine)])
    mine.write_text(MINE)
    named([str(mine)])
    forwarder("mine").prepare()
    (tmp_path / "mine").unlink()
    with pytest.raises(MissingError, match=r"forwarder mine: .*/mine is not there"):
        forwarder("mine").prepare()


def test_what_setup_runs_is_looked_for_beforehand(mine: Path) -> None:
    mine.write_text(MINE + 'setup = ["ip link", "./routes {rx}"]')
    named([str(mine)])
    with pytest.raises(MissingError, match=r"/routes is not there.*") as caught:
        forwarder("mine").prepare()
    assert "setup or teardown" in str(caught.value.hint)


def test_interfaces_are_not_seen_from_a_network_of_its_own(mine: Path) -> None:
    mine.write_text(MINE + 'network = "own"')
    named([str(mine)])
    ports = Wire(vdevs=("net_af_packet0,iface=eth1", "net_af_packet1,iface=eth2"))
    with (
        pytest.raises(UsageError, match='network = "own" hides the interfaces of --link ports'),
        forwarder("mine").networked(ports, "0"),
    ):
        pytest.fail("it was given a namespace")
    # A link whose interfaces are in a namespace already has one, which the program uses as well.
    in_one = wire("xdp-redirect", 2)
    with forwarder("mine").networked(in_one, "0") as same:
        assert same is in_one


def test_the_socket_of_a_memif_is_told_once(mine: Path) -> None:
    mine.write_text(MINE.replace("{eal}", "--memif {socket}"))
    named([str(mine)])

    def argv(*vdevs: str) -> tuple[str, ...]:
        found = forwarder("mine").command(CORES, Memory(hugepages=True), "p", Wire(vdevs=vdevs))
        assert found is not None
        return found.argv[1:3]

    ports = (
        f"net_memif{n},role=client,id={n},socket=/run/m.sock,socket-abstract=no" for n in (0, 1)
    )
    assert argv(*ports) == ("--memif", "/run/m.sock")
    # A word whose placeholder is empty is left out.
    assert argv("net_null0")[0] == "--memif"
    assert "/run/m.sock" not in argv("net_null0")


def test_how_it_is_started_and_stopped(mine: Path) -> None:
    mine.write_text(
        MINE.replace("{eal}", "{rx} {tx}")
        + 'directory = "work"\nenvironment = { MASK = "0x{portmask} of {ports}" }\n'
        + 'stop = { signal = "SIGTERM", within_s = 9 }\nports = { on = "interfaces" }\n'
    )
    named([str(mine)])
    command = forwarder("mine").command(CORES, Memory(hugepages=True), "p", wire("af-xdp", 2))
    assert command is not None
    assert command.argv == (str(mine.parent / "mine"), "f0", "f1", "--", "-p", "3")
    assert command.environment == {"MASK": "0x3 of 2"}
    assert command.directory == mine.parent / "work"
    assert command.ending == (signal.SIGTERM, 9)


def test_who_looks_at_polls_and_spans(mine: Path) -> None:
    def found(text: str) -> tuple[str | None, str | None, bool]:
        (definition,) = parse(MINE.replace('"dpdk"', '"kernel"') * ("own" in text) or MINE, "x")
        each = Forwarder(definition.model_copy(update=json.loads(text.removeprefix("own "))))
        command = Forwarder(each.definition, mine).command(
            CORES, Memory(hugepages=True), "p", Wire(vdevs=("net_null0",)), probed=True
        )
        assert command is not None
        return each.polling, each.spans, "-d" in command.argv

    with mock.patch("linerate.forwarders.placeholders.probe_plugin", return_value="probe.so"):
        probe = ("/linerate/probe/polling", "/linerate/probe/latency", True)
        assert found("{}") == probe
        assert found('{"polls": "nothing", "spans": "nothing"}') == (None, None, False)
        assert found('{"polls": "nothing"}') == (None, "/linerate/probe/latency", True)
        assert found("own {}") == (None, None, False)
        assert found('own {"polls": "program"}') == ("/linerate/polling", None, False)


def test_folders_of_the_environment(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINERATE_FORWARDERS", f"{mine.parent}:")
    add_from_environment()
    assert forwarder("mine").file == mine
    monkeypatch.setenv("LINERATE_FORWARDERS", os.devnull)
    with pytest.raises(UsageError, match="/dev/null: no folder with definitions"):
        add_from_environment()


def test_one_that_takes_two_ports_only(mine: Path) -> None:
    mine.write_text(MINE + "ports = { number = 2 }")
    named([str(mine)])
    assert (takes("mine", link("null2")), takes("mine", link("null"))) == (True, False)
    with pytest.raises(UsageError, match="its ports must be 2 in number"):
        check_fit(["mine"], [link("null")])


def test_a_run_has_its_definitions_and_goes_on_without_the_file(
    mine: Path, tmp_path: Path, simulation: Simulation, forwarders: dict[str, Forwarder]
) -> None:
    out = tmp_path / "run"
    names = named(["c-l2fwd", str(mine)])
    start(out, links=["null"], blocks=8, forwarders=names)
    run = stored(out).run
    kept = run.sessions[0].forwarders
    assert set(kept) >= {"c-l2fwd", "mine"}
    assert kept["mine"].file == str(mine)
    assert kept["mine"].definition == forwarder("mine").definition.as_data()
    programs = {trial.forwarder: trial.program.described for trial in stored(out).trials}
    for name in names:
        found = programs[name]
        assert found is not None
        assert found.definition == kept[name].sha256 == forwarder(name).definition.digest

    cut_off(out)
    del forwarders["mine"]
    mine.unlink()
    resume(out)
    assert stored(out).run.sessions[1].forwarders == kept

    cut_off(out)
    changed = forwarder("mine").definition.model_copy(update={"memory_mib": 64})
    forwarders["mine"] = Forwarder(changed)
    with pytest.raises(LabError, match="mine: the definition has changed since the run began"):
        resume(out)
    del forwarders["mine"]
    report([out], None, quiet())


def cut_off(out: Path) -> None:
    """Remove the last record, as if the lab had been killed before it."""
    records = out / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:-1]))
    run = run_file.load(out)
    run.sessions[-1].end = None
    (out / "run.json").write_text(run_file.dump(run))


if __name__ == "__main__":
    import tempfile

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as work:
        COMMANDS.write_text(text_of(commands(Path(work), patch)))
