# SPDX-License-Identifier: BSD-3-Clause
"""The link `ports`: its options, and those that EAL gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_host import Instead

from linerate.experiments.overload.options import PRESETS, Options
from linerate.host.errors import UsageError
from linerate.links import LinkContext, eal, link
from linerate.links import ports as ports_module
from linerate.links.eal import Memory
from linerate.links.ports import Ports
from linerate.runs.plans.blocks import check_fit

MEMIF = "vdev:net_memif0,role=client,socket=/run/s,socket-abstract=no"


@pytest.fixture(autouse=True)
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two PCI devices and two interfaces."""
    pci, interfaces = tmp_path / "pci", tmp_path / "net"
    for name in ("0000:01:00.0", "0000:01:00.1"):
        (pci / name).mkdir(parents=True)
    for name in ("veth0", "veth1"):
        (interfaces / name).mkdir(parents=True)
    host = Instead({"/sys/bus/pci/devices": pci, "/sys/class/net": interfaces})
    monkeypatch.setattr(ports_module, "LOCAL", host)


def options_of(forwarder: list[str], generator: list[str], *, hugepages: bool) -> list[list[str]]:
    """Return the EAL options of the forwarder and of the generator."""
    ports = Ports(generator, forwarder)
    memory = Memory(hugepages)
    with ports.open(LinkContext(Path("/nonexistent"), 64, hugepages)) as wire:
        assert wire.ports == ports.ports == len(forwarder)
        assert list(wire.locations) == generator
        return [eal.options(["-l", "1"], memory, "prefix", each) for each in (wire, wire.sender)]


@pytest.mark.parametrize(
    ("text", "vdev"),
    [
        (MEMIF, MEMIF.removeprefix("vdev:")),
        ("veth0", "net_af_packet0,iface=veth0"),
        ("af_packet:veth0", "net_af_packet0,iface=veth0"),
        ("af_xdp:veth0", "net_af_xdp0,iface=veth0"),
        ("af_xdp:veth0,mode=copy", "net_af_xdp0,iface=veth0,force_copy=1"),
        ("tap:dtap0", "net_tap0,iface=dtap0"),
    ],
)
def test_a_virtual_device_of_the_forwarder(text: str, vdev: str) -> None:
    forwarder, generator = options_of([text], ["memif:/run/s"], hugepages=False)
    assert forwarder[-2:] == ["--vdev", vdev]
    for options in (forwarder, generator):
        assert "--no-pci" in options
        assert "-a" not in options
    assert "--vdev" not in generator


def test_two_ports_are_in_the_order_given() -> None:
    forwarder, _ = options_of(["veth1", "veth0"], ["memif:/run/s", "memif:/run/t"], hugepages=False)
    vdevs = [word for word in forwarder if word.startswith("net_")]
    assert vdevs == ["net_af_packet0,iface=veth1", "net_af_packet1,iface=veth0"]


def test_physical_devices_are_allowed_one_by_one() -> None:
    forwarder, generator = options_of(["pci:01:00.1"], ["pci:0000:01:00.0"], hugepages=True)
    assert forwarder[forwarder.index("-a") + 1] == "0000:01:00.1"
    assert generator[generator.index("-a") + 1] == "0000:01:00.0"
    for options in (forwarder, generator):
        assert options.count("-a") == 1
        assert "--no-pci" not in options
    with pytest.raises(UsageError, match=r"--generator-port 'pci:0000:01:00.0'.*hugepages"):
        Ports(["pci:0000:01:00.0"], ["veth0"]).without_hugepages()
    with pytest.raises(UsageError, match=r"--forwarder-port 'pci:01:00.1'.*hugepages"):
        Ports(["veth0"], ["pci:01:00.1"]).without_hugepages()
    Ports(["veth0"], ["veth1"]).without_hugepages()


@pytest.mark.parametrize("location", ["vhost:/run/s", "vdev:eth_vhost0,iface=/run/s"])
def test_vhost_shares_its_memory_as_one_file(location: str) -> None:
    peer = "vdev:net_virtio_user0,path=/run/s"
    for options in options_of([peer], [location], hugepages=True):
        assert "--single-file-segments" in options
    for options in options_of([peer], [location], hugepages=False):
        assert "--single-file-segments" not in options
    for options in options_of(["veth0"], ["veth1"], hugepages=True):
        assert "--single-file-segments" not in options


@pytest.mark.parametrize(
    ("generator", "forwarder", "message"),
    [
        (["ring:a"], [], "--generator-port without --forwarder-port"),
        ([], ["veth0"], "--forwarder-port without --generator-port"),
        (["ring:a", "ring:b"], ["veth0"], "2 times and --forwarder-port 1 times"),
        (["ring:a"] * 3, ["veth0"] * 3, "--generator-port ring:a: the 3th port"),
        (["ring:a"] * 2, ["veth0", "veth1"], "--generator-port 'ring:a': is named twice"),
        (["tcp:1"], ["veth0"], "--generator-port 'tcp:1': no such kind"),
        ([""], ["veth0"], "--generator-port '': names nothing"),
        (["memif:"], ["veth0"], "--generator-port 'memif:': names nothing"),
        (["memif:s"], ["veth0"], "the socket's path must be absolute"),
        (["vhost:/no/such/s"], ["veth0"], "there is no directory /no/such"),
        (["veth9"], ["veth0"], "there is no network interface 'veth9'"),
        (["af_xdp:veth9,queues=1"], ["veth0"], "there is no network interface 'veth9'"),
        (["pci:1:2"], ["veth0"], "--generator-port 'pci:1:2': not a PCI address"),
        (["pci:09:00.0"], ["veth0"], "there is no such PCI device"),
        (["ring:a"], [""], "--forwarder-port '': names nothing"),
        (["ring:a"], ["memif:/run/s"], "--forwarder-port 'memif:/run/s': no such kind"),
        (["ring:a"], ["veth9"], "there is no network interface 'veth9'"),
        (["ring:a"], ["../net"], "there is no network interface"),
        (["ring:a"], ["pci:09:00.0"], "there is no such PCI device"),
        (["ring:a"], ["vdev:memif0"], "'memif0' is not the name of a network device"),
        (["ring:a"], ["af_xdp:veth0,mode=fast"], "unknown option 'mode=fast'"),
        (["ring:a"], ["tap:a%d"], "cannot be an interface's name"),
        (["veth0"], ["af_xdp:veth0"], "the generator has it already"),
        (["pci:01:00.0"], ["pci:0000:01:00.0"], "the generator has it already"),
        (["ring:a", "ring:b"], [MEMIF, MEMIF], "the device net_memif0 is named twice"),
        (["ring:a", "ring:b"], ["veth0", "pci:01:00.0"], "one port is physical"),
    ],
)
def test_what_is_wrong_is_named(generator: list[str], forwarder: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Ports(generator, forwarder).prepare()
    assert message in str(caught.value)


def test_the_link_and_its_options_want_each_other() -> None:
    with pytest.raises(UsageError, match="--generator-port ring:a: only for --link ports"):
        Ports(["ring:a"]).check(["memif"])
    with pytest.raises(UsageError, match="--forwarder-port veth0: only for --link ports"):
        Ports(forwarder=["veth0"]).check([])
    with pytest.raises(UsageError, match="--link ports: no devices"):
        Ports().check(["null", "ports"])
    Ports().check(["memif"])
    Ports(["ring:a"], ["veth0"]).check(["null", "ports"])


def test_a_run_has_devices_of_its_own() -> None:
    asked = Options(preset=PRESETS["quick"], generator_ports=["ring:a"], forwarder_ports=["veth9"])
    assert asked.link("ports").ports == 1
    assert asked.link("ports").description.endswith(": ring:a and veth9")
    assert asked.link("memif") is link("memif")
    assert link("ports").ports == 0
    with pytest.raises(UsageError, match="there is no network interface 'veth9'"):
        asked.link("ports").prepare()


@pytest.mark.parametrize(
    ("device", "name", "must_be"),
    [
        ("veth0", "kernel-route", "even in number"),
        ("pci:01:00.1", "af-packet-mmap", "network interfaces"),
        (MEMIF, "xdp-redirect", "network interfaces"),
        ("af_xdp:veth0", "testpmd-af-xdp", "network interfaces"),
        ("veth0", "xdp-tx", "network interfaces that the lab makes"),
    ],
)
def test_forwarders_that_cannot_use_a_device_are_refused_at_once(
    device: str, name: str, must_be: str
) -> None:
    ports = Ports(["ring:a"], [device])
    check_fit(["c-l2fwd"], [ports])
    with pytest.raises(UsageError, match=rf"{name}: .* link ports .its ports must be {must_be}\)"):
        check_fit(["c-l2fwd", name], [ports])


def test_the_kernel_is_set_up_only_around_interfaces_that_the_lab_made() -> None:
    ports = Ports(["ring:a", "ring:b"], ["veth0", "veth1"])
    by_arguments = Ports(["ring:a"] * 2, ["veth0", "vdev:net_af_packet1,iface=veth1"])
    check_fit(["xdp-redirect", "af-packet-mmap"], [ports, by_arguments])
    for name in ("kernel-route", "kernel-bridge", "xdp-fib"):
        check_fit([name], [link("veth")])
        with pytest.raises(UsageError, match=f"{name}: .* that the lab makes"):
            check_fit([name], [ports])


def test_locations_of_another_generator_are_its_own_affair() -> None:
    theirs = ["10.0.0.1;2;13", "localhost:5555+localhost:50071"]
    ports = Ports(theirs, ["veth0", "veth1"], foreign=True)
    with ports.open(LinkContext(Path("/nonexistent"), 64, hugepages=True)) as wire:
        assert list(wire.locations) == theirs
        assert (wire.sender_pci, wire.eal_options) == ((), ())
    # Not devices of this machine, although they look like them.
    elsewhere = Ports(["pci:0000:09:00.0"], ["veth0"], foreign=True)
    elsewhere.without_hugepages()
    Ports(["veth0"], ["veth0"], foreign=True).prepare()
    for generator, message in (([""], "names nothing"), (["a", "a"], "named twice")):
        with pytest.raises(UsageError, match=message):
            Ports(generator, ["veth0", "veth1"][: len(generator)], foreign=True).prepare()


def test_another_generator_is_for_the_link_ports_alone() -> None:
    for chosen in ([], ["memif"], ["ports", "memif"]):
        with pytest.raises(UsageError, match="--generator needs --link ports") as caught:
            Ports(["a"], ["veth0"], foreign=True).check(chosen)
        assert "--link ports with --generator-port" in str(caught.value)
    Ports(["10.0.0.1;2;13"], ["veth0"], foreign=True).check(["ports"])
