# SPDX-License-Identifier: BSD-3-Clause
"""gRPC: snappi's transport for it, unmodified, on the port of HTTP and on the Unix socket."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import otg_descriptors
import pytest
import snappi
import traffic
from frames import read_pcap
from google.protobuf import empty_pb2, json_format
from harness import Generator, basic, certificate, eventually, generator
from snappi import otg_pb2, otg_pb2_grpc

pytest_plugins = ["rig"]


def connected(location: str) -> Any:
    return snappi.api(location=location, transport=snappi.Transport.GRPC, version_check=True)


@contextlib.contextmanager
def calling(location: str) -> Iterator[Any]:
    with grpc.insecure_channel(location) as channel:
        yield otg_pb2_grpc.OpenapiStub(channel)


def wanted(frames: int = 50) -> Any:
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    flow = config.flows.flow(name="f")[-1]
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p1"]
    flow.packet.ethernet().ipv4().udp()
    flow.packet[1].src.value = "192.0.2.1"
    flow.size.fixed = 128
    flow.rate.pps = 1000
    flow.duration.fixed_packets.packets = frames
    flow.metrics.enable = flow.metrics.loss = True
    config.captures.capture(name="c", port_names=["p1"])
    return config


def address(running: Generator) -> str:
    return f"127.0.0.1:{running.http_port}"


def test_the_models_messages_are_those_of_snappi() -> None:
    """`scripts/otg-descriptors` was run for the release that is installed."""
    assert otg_descriptors.FILE.read_bytes() == otg_descriptors.descriptors()


@pytest.mark.parametrize("where", ["tcp", "unix"])
def test_snappi_sends_counts_and_captures(
    running: Generator, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From a path with slashes gRPC makes a host name with %2F, which is none to an HTTP/2 server.
    socket_file = Path(running.files["socket"])
    monkeypatch.chdir(socket_file.parent)
    api = connected(address(running) if where == "tcp" else f"unix:{socket_file.name}")
    assert not api.set_config(wanted()).warnings
    assert api.get_config().flows[0].packet[1].src.value == "192.0.2.1"
    traffic.capture(api, "start")
    traffic.transmit(api, "start")
    eventually(lambda: traffic.stopped(api))
    eventually(lambda: traffic.flow_metrics(api)["f"].frames_rx == 50)
    assert traffic.flow_metrics(api)["f"].loss == 0
    traffic.capture(api, "stop")
    records = read_pcap(traffic.captured(api, "p1"))
    assert len(records) == 50
    assert {record.length for record in records} == {128}
    # HTTP reads the same configuration.
    assert running.api.get_config().serialize("dict") == api.get_config().serialize("dict")
    api.close()


def test_a_large_configuration_comes_and_goes_in_pieces(running: Generator) -> None:
    api = connected(address(running))
    config = wanted().serialize("dict")
    (flow,) = config["flows"]
    flow["metrics"]["loss"] = False
    config["flows"] = [{**flow, "name": f"flow-{number}"} for number in range(401)]
    api.enable_grpc_streaming, api._chunk_size = True, 1000
    api.set_config(config)
    assert len(api.get_config().flows) == 401
    assert len(traffic.flow_metrics(api)) == 401
    api.close()


def test_faults_are_those_of_http(running: Generator) -> None:
    config = wanted()
    config.flows[0].size.fixed = 20
    config.flows[0].tx_rx.port.rx_names = ["p9"]
    status, answer = running.request("POST", "/config", config.serialize())
    assert status == 400
    with calling(address(running)) as stub:
        request = otg_pb2.SetConfigRequest()
        json_format.Parse(config.serialize(), request.config)
        with pytest.raises(grpc.RpcError) as info:
            stub.SetConfig(request)
        assert info.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        told = json.loads(info.value.details())
        assert told == {**answer, "code": 3}
        states = otg_pb2.StatesRequest(choice=otg_pb2.StatesRequest.Choice.lldp_neighbors)
        with pytest.raises(grpc.RpcError) as info:
            stub.GetStates(otg_pb2.GetStatesRequest(states_request=states))
        assert "not supported" in info.value.details()
    with grpc.insecure_channel(address(running)) as channel:
        unknown = channel.unary_unary("/otg.Openapi/Other", request_serializer=bytes)
        with pytest.raises(grpc.RpcError) as info:
            unknown(b"")
        assert info.value.code() == grpc.StatusCode.UNIMPLEMENTED
    api = connected(address(running))
    with pytest.raises(Exception, match="p9") as raised:
        api.set_config(config)
    assert [error for error in raised.value.args[0].errors if "p9" in error]
    api.close()


def test_too_large_a_message_is_refused(running: Generator) -> None:
    with calling(address(running)) as stub:
        request = otg_pb2.SetConfigRequest()
        request.config.flows.add(name="x" * (5 << 20))
        with pytest.raises(grpc.RpcError) as info:
            stub.SetConfig(request)
        assert info.value.code() in {
            grpc.StatusCode.OUT_OF_RANGE,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
        }
        # And the connection is as good as before.
        assert stub.GetVersion(empty_pb2.Empty()).version


def test_with_tls_and_a_password(directory: Path) -> None:
    (directory / "password").write_text("a secret of mine\n")
    user = ("--otg-user=me", f"--otg-password-file={directory / 'password'}")
    with generator(directory, *certificate(directory), *user) as running:
        place = running.url.removeprefix("https://")
        port = int(place.rsplit(":", 1)[1])
        credentials = grpc.ssl_channel_credentials((directory / "cert.pem").read_bytes())
        empty = empty_pb2.Empty()
        with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
            stub = otg_pb2_grpc.OpenapiStub(channel)
            with pytest.raises(grpc.RpcError) as info:
                stub.GetVersion(empty)
            assert info.value.code() == grpc.StatusCode.UNAUTHENTICATED
            word = basic("me", "a secret of mine")["Authorization"]
            found = stub.GetVersion(empty, metadata=[("authorization", word)])
            assert found.version.sdk_version == "1.62.0"


def test_other_hosts_and_web_pages_are_refused(running: Generator) -> None:
    empty = empty_pb2.Empty()
    options = [("grpc.default_authority", "evil.example:80")]
    with grpc.insecure_channel(address(running), options) as channel:
        with pytest.raises(grpc.RpcError) as info:
            otg_pb2_grpc.OpenapiStub(channel).GetVersion(empty)
        assert info.value.code() == grpc.StatusCode.PERMISSION_DENIED
    with calling(address(running)) as stub:
        with pytest.raises(grpc.RpcError) as info:
            stub.GetVersion(empty, metadata=[("origin", "http://localhost")])
        assert info.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_peers_that_say_too_little_are_left(running: Generator) -> None:
    """The first bytes say which version of HTTP a client speaks, and they have a time limit."""
    began = time.monotonic()
    with contextlib.ExitStack() as open_peers:
        peers = [
            open_peers.enter_context(socket.create_connection(("127.0.0.1", running.http_port), 30))
            for _ in range(3)
        ]
        for peer, said in zip(peers, (b"", b"PRI * HTT", b"GET / HT"), strict=True):
            peer.sendall(said)
        for peer in peers:
            while peer.recv(4096):
                pass
    assert time.monotonic() - began < 25


def test_streams_that_are_reset_at_once_hold_nobody_up(running: Generator) -> None:
    """Requests of HTTP/2 that their client gives up as it makes them (CVE-2023-44487)."""

    def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return (
            struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload
        )

    with socket.create_connection(("127.0.0.1", running.http_port), timeout=30) as peer:
        peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
        head = b"\x83\x86\x84\x41\x09localhost"  # POST, http, /, and the host
        with contextlib.suppress(OSError):
            for stream in range(1, 40_001, 2):
                peer.sendall(frame(1, 4, stream, head) + frame(3, 0, stream, b"\0\0\0\x08"))
        assert running.request("GET", "/capabilities/version")[0] == 200
    assert running.request("GET", "/capabilities/version")[0] == 200
