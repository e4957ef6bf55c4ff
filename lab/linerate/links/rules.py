# SPDX-License-Identifier: BSD-3-Clause
"""Rule files in l3fwd's forms that carry the lab's flows, generated.

A flow's destination puts it into one of `BLOCKS` networks (of 256 addresses each), and network n
leads to port n modulo their number: with one port every flow goes back out of it, with two about
half of the flows of each port cross over. Every mode sends a flow to the same port.

    LPM  R<network>/<length> <port>
    EM   R<destination> <source> <destination port> <source port> <protocol> <port>
    ACL  @<source> <destination> <ports> : <ports> ... <protocol>/<mask>        denies
         R<source> <destination> ... <protocol>/<mask> <port>                   forwards

The files are named after their content, and are not removed.
"""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

from linerate.host.builds.make import locked
from linerate.host.places import build_directory
from linerate.links import flows

# Networks of destinations: enough for any number of flows that one octet and a half can count.
BLOCKS = 256
_BLOCK_BITS = 8
_UDP = 17
_ANY_PORT = "0 : 65535"
_DENIED_SOURCES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
_ANY, _ANY_V6 = "0.0.0.0/0", f"{IPv6Address(0).exploded}/0"


@dataclass(frozen=True)
class RuleFiles:
    """The files of one lookup for one number of ports."""

    ipv4: Path
    ipv6: Path


def out_port(destination: IPv4Address | IPv6Address, ports: int) -> int:
    """Return the port by which frames to this destination leave."""
    return (int(destination) >> _BLOCK_BITS) % BLOCKS % ports


def networks(version: int) -> Iterator[IPv4Network | IPv6Network]:
    """Yield the networks of all destinations."""
    first = int(flows.DESTINATION if version == 4 else flows.DESTINATION_V6) >> 16 << 16
    for block in range(BLOCKS):
        base = first + (block << _BLOCK_BITS)
        if version == 4:
            yield IPv4Network((base, 32 - _BLOCK_BITS))
        else:
            yield IPv6Network((base, 128 - _BLOCK_BITS))


def lpm(version: int, ports: int) -> str:
    """Return one route for each network."""
    return _lines(
        f"R{network} {out_port(network.network_address, ports)}" for network in networks(version)
    )


def em(version: int, ports: int) -> str:
    """Return one entry for each flow."""
    return _lines(
        f"R{flow.destination} {flow.source} {flow.port} {flow.port} {_UDP} "
        f"{out_port(flow.destination, ports)}"
        for flow in flows.flows(version)
    )


def acl(version: int, ports: int) -> str:
    """Return a few rules that deny traffic the lab never sends, then one rule for each network.

    The deny rules make the lookup use every field: sources, destinations, ports and protocol.
    """
    return _lines(_acl(version, ports))


def _acl(version: int, ports: int) -> Iterator[str]:
    anywhere = _ANY if version == 4 else _ANY_V6
    if version == 4:
        for source in _DENIED_SOURCES:
            yield f"@{source} {anywhere} {_ANY_PORT} {_ANY_PORT} 0/0"
    yield f"@{anywhere} {anywhere} {_ANY_PORT} 0 : {flows.FIRST_UDP_PORT - 1} {_UDP}/0xff"
    yield f"@{anywhere} {anywhere} {_ANY_PORT} {_ANY_PORT} 6/0xff"
    for network in networks(version):
        # IPv6 addresses must have all eight groups here.
        text = f"{network.network_address.exploded}/{network.prefixlen}"
        port = out_port(network.network_address, ports)
        yield f"R{anywhere} {text} {_ANY_PORT} {_ANY_PORT} {_UDP}/0xff {port}"


LOOKUPS = {"lpm": lpm, "em": em, "acl": acl}


def rule_files(lookup: str, ports: int) -> RuleFiles:
    """Return the files for one of `LOOKUPS`; write them unless they exist."""
    texts = {version: LOOKUPS[lookup](version, ports) for version in (4, 6)}
    paths = {
        version: kept(f"{lookup}-ipv{version}-{ports}", ".cfg", text.encode())
        for version, text in texts.items()
    }
    return RuleFiles(paths[4], paths[6])


def mixed_frame_file(ports: int) -> Path:
    """Return a file of the flows' frames, interleaved, for ports that make frames without contents.

    Equal numbers leave by each port, in turn. Drivers reuse a few buffers, and these must not all
    leave by one port.
    """
    return kept(f"frames-{ports}", ".bin", b"".join(_mixed(ports, flows.FRAME_BYTES)))


def mixed_capture(ports: int, size: int) -> Path:
    """Return a capture file of the same, with frames of `size` bytes without FCS."""
    return kept(f"frames-{ports}-{size}", ".pcap", flows.capture(_mixed(ports, size)))


def _mixed(ports: int, size: int) -> Iterator[bytes]:
    # The shortest of them ends it.
    turns = zip(*(_leaving(port, ports, size) for port in range(ports)), strict=False)
    return itertools.chain.from_iterable(turns)


def frame_file(leaving: int, ports: int) -> Path:
    """Return a capture file of the flows that leave by this port."""
    return kept(f"frames-{leaving}-of-{ports}", ".pcap", flows.capture(_leaving(leaving, ports)))


def _leaving(port: int, ports: int, size: int = flows.FRAME_BYTES) -> Iterator[bytes]:
    for flow in flows.flows():
        if out_port(flow.destination, ports) == port:
            yield flows.frame(flow, size)


def _lines(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def kept(name: str, suffix: str, content: bytes) -> Path:
    """Write a file of this content, complete or not at all, and return its path."""
    digest = hashlib.sha256(content).hexdigest()
    path = build_directory() / "rules" / f"{name}-{digest[:16]}{suffix}"
    if not path.is_file():
        with (
            locked(path.parent, "rule files"),
            tempfile.TemporaryDirectory(dir=path.parent) as work,
        ):
            written = Path(work) / path.name
            written.write_bytes(content)
            written.rename(path)
    return path
