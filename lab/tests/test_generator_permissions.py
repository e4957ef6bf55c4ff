# SPDX-License-Identifier: BSD-3-Clause
"""What the lab allows its generator, so that the generator takes the link's locations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from linerate.host.errors import GeneratorError
from linerate.links import Wire
from linerate.traffic.generator import Generator, interfaces_of, permissions


@pytest.mark.parametrize(
    ("location", "interfaces"),
    [
        ("veth0", ["veth0"]),
        ("af_packet:veth0,queues=2", ["veth0"]),
        ("af_xdp:veth0", ["veth0"]),
        ("tap:t0", ["t0"]),
        ("vdev:net_af_packet0,iface=veth0,qpairs=1", ["veth0"]),
        ("vdev:net_tap0,iface=t0,remote=veth0", ["t0", "veth0"]),
        # For vhost it is a path.
        ("vdev:net_vhost0,iface=/run/s", []),
        ("vdev:net_null0,size=64", []),
        ("memif:/run/s,role=client", []),
        ("ring:r", []),
        ("null", []),
        ("null,no-rx=1", []),
        ("pci:0000:01:00.0", []),
    ],
)
def test_interfaces_of_a_location(location: str, interfaces: list[str]) -> None:
    assert interfaces_of(location) == interfaces


def test_a_generator_is_allowed_what_the_link_needs() -> None:
    wire = Wire(locations=("af_packet:b", "af_xdp:a", "memif:/run/x/s,id=1"))
    assert permissions(wire) == ["--socket-directory=/run/x", "--allow-port=a", "--allow-port=b"]
    assert permissions(Wire(locations=("ring:a", "null"))) == []


def test_the_token_is_read_where_the_generator_prints_one(tmp_path: Any) -> None:
    file = tmp_path / "otg-token"
    file.write_text("secret\n")

    def token(output: str) -> tuple[str, str] | None:
        generator = Generator.__new__(Generator)
        generator.child = cast(Any, SimpleNamespace(output=lambda: output))
        return generator._token()

    head = "OTG on http://127.0.0.1:1\ntelemetry /run/t\n"
    assert token(f"{head}socket /run/s\n") is None
    assert token(f"{head}token {file} (user otg)\nsocket /run/s\n") == ("otg", "secret")
    with pytest.raises(GeneratorError, match="token"):
        token(f"{head}token {tmp_path}/none (user otg)\nsocket /run/s\n")
