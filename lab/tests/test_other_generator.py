# SPDX-License-Identifier: BSD-3-Clause
"""Other generators than the lab's: how they are named, spoken to, and counted."""

from __future__ import annotations

import random
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import simulated_trial
from otg_server import Answer, OtgServer, json_answer

from linerate.host.errors import GeneratorError, LabError, LinkError, UsageError
from linerate.links import Wire
from linerate.records.cells import Cell
from linerate.records.trial import Trial
from linerate.traffic import books, other_generator
from linerate.traffic.otg import Slice, Traffic
from linerate.traffic.other_generator import Named, OtherGenerator, OtherSender, named

TRAFFIC = Traffic(("10.0.0.1;1;1", "10.0.0.1;1;2"), 64, 0.5, 10_000.0)
FRAMES = 5000


@pytest.fixture
def server() -> Iterator[OtgServer]:
    found = OtgServer()
    yield found
    found.close()


@pytest.fixture
def sender(server: OtgServer) -> Iterator[OtherSender]:
    found = OtherGenerator(Named(server.url)).start(Wire())
    yield found
    found.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl to make a certificate with")
    directory = tmp_path_factory.mktemp("certificate")
    chain, key = directory / "chain.pem", directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=generator", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(chain)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    return chain, context


# -- valid options -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("127.0.0.1:8443", "--generator 127.0.0.1:8443: no URL of an HTTP or HTTPS server"),
        ("", "--generator : no URL"),
        ("ftp://host", "no URL of an HTTP or HTTPS server"),
        ("https://", "no URL of an HTTP or HTTPS server"),
        ("https://host:0", "no URL of an HTTP or HTTPS server"),
        ("https://host:70000", "--generator https://host:70000: no URL: Port out of range"),
        ("https://[::1", "no URL: "),
        ("https://host/?a=1", "a query or fragment has no meaning here"),
        ("https://host/#a", "a query or fragment has no meaning here"),
        ("https://me@host", "--generator: user me without a password"),
    ],
)
def test_a_bad_url_is_named(url: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        named(url, None, None, insecure=False)
    assert message in str(caught.value)


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        named("https://me:secret@host", None, None, insecure=False)
    assert "--generator-password-file FILE" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one\ntwo\n")

    def refused(url: str | None, ca: Path | None, password: Path | None, *, insecure: bool) -> str:
        with pytest.raises(UsageError) as caught:
            named(url, ca, password, insecure=insecure)
        return str(caught.value)

    https = "https://me@host:1"
    assert "--generator-ca: only with --generator" in refused(None, file, None, insecure=False)
    assert "--generator-insecure: only with" in refused(None, None, None, insecure=True)
    assert "--generator-password-file: only with" in refused(None, None, file, insecure=False)
    assert "has no certificate" in refused("http://host", None, None, insecure=True)
    assert "--generator-ca: http://host" in refused("http://host", file, None, insecure=False)
    assert "for which user?" in refused("https://host", None, file, insecure=False)
    assert "must be its only line" in refused(https, None, file, insecure=False)
    assert "cannot read it" in refused(https, None, tmp_path / "none", insecure=False)
    assert "no certificate in PEM" in refused("https://host", file, None, insecure=False)
    assert "No such file" in refused("https://host", tmp_path / "none", None, insecure=False)
    assert named(None, None, None, insecure=False) is None


def test_a_ca_and_no_verification_contradict_each_other(
    certificate: tuple[Path, ssl.SSLContext],
) -> None:
    with pytest.raises(UsageError, match="--generator-insecure: --generator-ca asks for"):
        named("https://host", certificate[0], None, insecure=True)


# -- before the first trial ----------------------------------------------------------------------


def refusal(url: str, traffic: Traffic = TRAFFIC) -> str:
    with pytest.raises(LabError) as caught:
        OtherGenerator(Named(url)).prepare(traffic)
    assert f"--generator {url}: " in caught.value.message
    return str(caught.value)


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found = refusal(f"http://127.0.0.1:{free.getsockname()[1]}")
    assert "Connection refused" in found
    assert "Max retries" not in found


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, "text/html", "<html>It works!</html>"), "the answer is not OTG's"),
        (json_answer({}), "the answer is not OTG's"),
        (json_answer([1, 2]), "get version: "),
        ((200, "application/json", "{ no json"), "get version: "),
        ((404, "text/html", "<html>nothing here</html>"), "nothing here</html> (HTTP 404)"),
        ((302, "text/html", ""), "redirects"),
        (json_answer({"code": 401, "errors": ["who are you?"]}, 401), "who are you? (HTTP 401)"),
        (json_answer({"code": 401, "errors": ["who?"]}, 401), "--generator-password-file FILE"),
    ],
)
def test_no_otg_api(server: OtgServer, answer: Answer, message: str) -> None:
    server.answers["GET", "/capabilities/version"] = answer
    assert message in refusal(server.url)
    assert server.configs == []


def test_what_it_refuses_is_listed_and_nothing_stays(server: OtgServer) -> None:
    errors = ["ports[0].location: no such card", "flows[0].rate: too much"]
    server.answers["POST", "/config"] = json_answer({"code": 400, "errors": errors}, 400)
    found = refusal(server.url)
    assert "set_config: ports[0].location: no such card; flows[0].rate: too much" in found
    assert "--generator-port LOCATION" in found
    assert server.states == []


def test_who_sends_already_is_left_alone(server: OtgServer) -> None:
    server.counts = {"theirs": [1, 1]}
    server.transmit = "started"
    assert "sends already: theirs" in refusal(server.url)
    assert server.configs == []


def test_what_it_warns_of_is_told_and_it_is_left_empty(server: OtgServer) -> None:
    server.warnings = ["no hardware stamps"]
    notes = OtherGenerator(Named(server.url + "/"), latency=True).prepare(TRAFFIC)
    assert f"frames are sent by {server.url} (version 7.1, OTG 1.33.0)" in notes[0]
    assert "it does not report lateness" in notes[0]
    assert notes[1:] == [
        "latency is what that generator takes for cut_through",
        f"--generator {server.url} warns: no hardware stamps",
    ]
    asked, last = server.configs
    assert [port["location"] for port in asked["ports"]] == list(TRAFFIC.locations)
    assert asked["flows"][0]["metrics"]["latency"] == {"enable": True, "mode": "cut_through"}
    assert last == {}
    assert server.states == []


def test_credentials_come_from_the_file(server: OtgServer, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("correct horse\n")
    url = server.url.replace("//", "//the%20lab@")
    found = named(url, None, file, insecure=False)
    assert found is not None
    for mode, told in ((0o644, "read"), (0o622, "change"), (0o640, None)):
        file.chmod(mode)
        note = f"--generator-password-file {file}: all users may {told} it: chmod 600 {file}"
        notes = [each for each in OtherGenerator(found).prepare(TRAFFIC) if "password" in each]
        assert notes == ([note] if told else [])
    # "the lab:correct horse" in base64.
    assert server.authorizations == {"Basic dGhlIGxhYjpjb3JyZWN0IGhvcnNl"}


def test_certificates_are_verified_unless_that_is_switched_off(
    certificate: tuple[Path, ssl.SSLContext],
) -> None:
    chain, context = certificate
    server = OtgServer(context)
    try:
        assert "--generator-ca FILE" in refusal(server.url)
        assert "CERTIFICATE_VERIFY_FAILED" in refusal(server.url)
        assert server.authorizations == set()
        for given in (Named(server.url, ca=str(chain)), Named(server.url, insecure=True)):
            assert OtherGenerator(given).prepare(TRAFFIC)
    finally:
        server.close()


# -- requests to it ------------------------------------------------------------------------------


def test_only_what_generators_agree_on_is_asked_for(server: OtgServer, sender: OtherSender) -> None:
    sender.configure(TRAFFIC)
    flow = server.config["flows"][1]
    assert flow["duration"]["choice"] == "fixed_seconds"
    assert flow["rate"] == {"choice": "pps", "pps": "10000"}
    assert flow["size"] == {"choice": "fixed", "fixed": 64}
    assert flow["metrics"]["enable"] is True
    # ixia-c has no metric for loss; stamps are requested where they are needed.
    assert not flow["metrics"].get("loss")
    assert "latency" not in flow["metrics"]
    text = str(flow["packet"])
    # ixia-c allows four kinds of patterns, and no random ones.
    assert text.count("'choice': 'increment'") == 4
    assert "random" not in text


# -- the use of its counts -----------------------------------------------------------------------


def window(sender: OtherSender, traffic: Traffic = TRAFFIC) -> Trial:
    """Return one window's books, with a forwarder that loses what does not come back."""
    trial = simulated_trial(
        random.Random(1), "rust-l2fwd", "rust-l2fwd", Cell("ports", 64, 1), block=0, position=0
    )
    trial.request.load = "paced" if traffic.frames is None else "burst"
    trial.frames.refused = None
    sender.configure(traffic)
    sender.start()
    sender.wait_stopped(0.1, lambda: None)
    sent = sender.sent()
    books.enter(trial, sent, books.Forwarded(rx=sent.accepted, tx=sent.received))
    return trial


def test_what_otg_does_not_tell_is_absent(server: OtgServer, sender: OtherSender) -> None:
    trial = window(sender)
    assert trial.valid
    assert (trial.frames.intended, trial.frames.attempted, trial.frames.accepted) == (
        10_000,
        10_000,
        10_000,
    )
    assert (trial.frames.received, trial.frames.unattributed, trial.frames.forwarder_drops) == (
        10_000,
        0,
        0,
    )
    absent = (
        trial.frames.late,
        trial.frames.lost_at_ingress,
        trial.frames.refused,
        trial.frames.pacing_error_ppm,
    )
    assert absent == (None, None, None, None)
    assert trial.frames.duration_s is None
    assert sender.tsc_hz() is None
    assert sender.latency() is None
    assert server.states == ["start"]


def test_loss_is_waited_for_and_found(
    server: OtgServer, sender: OtherSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_generator, "SETTLE_S", 0.2)
    server.returns = lambda frames: frames - 7
    trial = window(sender)
    assert trial.valid
    assert (trial.frames.intended, trial.frames.received, trial.frames.forwarder_drops) == (
        10_000,
        9986,
        14,
    )


def test_counters_that_follow_late_are_waited_for(server: OtgServer, sender: OtherSender) -> None:
    sender.configure(TRAFFIC)
    sender.start()
    server.behind = 4
    sender.wait_stopped(0.1, lambda: None)
    assert sender.sent().received == 2 * FRAMES
    assert server.behind == 0


@pytest.mark.parametrize("counted", [FRAMES - 2, FRAMES + 2])
def test_a_frame_more_or_less_by_rounding_is_no_loss(
    server: OtgServer, sender: OtherSender, counted: int
) -> None:
    server.sends = lambda _: counted
    trial = window(sender)
    assert trial.valid
    assert trial.frames.intended == trial.frames.attempted == trial.frames.received == 2 * counted


@pytest.mark.parametrize(
    ("counted", "message"),
    [(4990, "9980 frames instead of 10000 (-0.20%, limit 0.1%): it, or the"), (5010, "(+0.20%")],
)
def test_another_load_than_was_asked_for_is_void(
    server: OtgServer,
    sender: OtherSender,
    monkeypatch: pytest.MonkeyPatch,
    counted: int,
    message: str,
) -> None:
    monkeypatch.setattr(other_generator, "SETTLE_S", 0.1)
    server.sends = lambda _: counted
    trial = window(sender)
    assert trial.invalid_code == "late"
    assert message in (trial.invalid_why or "")
    assert (trial.frames.intended, trial.frames.attempted) == (2 * FRAMES, 2 * counted)


def test_of_a_burst_each_frame_counts(
    server: OtgServer, sender: OtherSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_generator, "SETTLE_S", 0.1)
    burst = Traffic(("a",), 64, 0.01, 10_000.0, frames=64)
    assert window(sender, burst).valid
    server.sends = lambda frames: frames - 1
    trial = window(sender, burst)
    assert (trial.frames.intended, trial.frames.attempted, trial.invalid_code) == (64, 63, "late")


def test_generators_that_count_on_are_understood(server: OtgServer, sender: OtherSender) -> None:
    server.keeps_counters = True
    for _ in range(3):
        assert window(sender).frames.received == 2 * FRAMES
    assert sender.received_by_flow() == {"f0": FRAMES, "f1": FRAMES}


def test_slices_are_flows_with_counts_of_their_own(server: OtgServer, sender: OtherSender) -> None:
    slices = (Slice(0.5, 10, 1e3), Slice(0.51, 20, 2e3))
    traffic = Traffic(("a", "b"), 64, 0.5, 1e4, frames=5000, slices=slices, senders=1)
    assert window(sender, traffic).frames.intended == 5030
    assert sender.received_by_flow() == {"f0": 5000, "f0.1": 10, "f0.2": 20}


def test_latency_is_what_otg_has(server: OtgServer, sender: OtherSender) -> None:
    server.latency = {"minimum_ns": 1000, "average_ns": 2000, "maximum_ns": 9000}
    window(sender)
    found = sender.latency()
    assert found is not None
    assert (found.minimum_ns, found.mean_ns, found.maximum_ns) == (1000, 2000, 9000)
    assert (found.quantiles_ns, found.jitter_rfc3550_ns) == ({}, None)


@pytest.mark.parametrize("column", ["minimum_ns", "average_ns", "maximum_ns"])
def test_latency_that_is_not_whole_is_an_error_that_names_the_field(
    server: OtgServer, sender: OtherSender, column: str
) -> None:
    every = {"minimum_ns": 1000.0, "average_ns": 2000.0, "maximum_ns": 9000.0}
    server.latency = {name: value for name, value in every.items() if name != column}
    window(sender)
    with pytest.raises(GeneratorError, match=f"http.*: flow metrics lack latency.{column}"):
        sender.latency()


@pytest.mark.parametrize("column", ["frames_tx", "frames_rx"])
def test_counts_that_are_missing_are_no_zero(
    server: OtgServer, sender: OtherSender, column: str
) -> None:
    server.left_out = {column}
    with pytest.raises(GeneratorError, match=f"--generator http.*: flow metrics lack {column}"):
        sender.configure(TRAFFIC)


def test_flows_without_metrics_are_named(server: OtgServer, sender: OtherSender) -> None:
    sender.configure(TRAFFIC)
    server.counts.pop("f1")
    with pytest.raises(GeneratorError, match="no flow metrics of f1"):
        sender.sent()


def test_it_must_say_whether_it_transmits(server: OtgServer, sender: OtherSender) -> None:
    sender.configure(TRAFFIC)
    sender.start()
    server.left_out = {"transmit"}
    with pytest.raises(GeneratorError, match="flow metrics lack transmit"):
        sender.wait_stopped(0.1, lambda: None)


def test_a_link_that_stays_down_is_an_error(
    server: OtgServer, sender: OtherSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_generator, "LINK_S", 0.1)
    sender.configure(TRAFFIC)
    server.link = "down"
    with pytest.raises(LinkError, match="a port's link is down"):
        sender.start()
    assert server.states == []


def test_a_flood_is_refused(sender: OtherSender) -> None:
    with pytest.raises(GeneratorError, match="cannot request sending as fast as"):
        sender.configure(Traffic(("a",), 64, 0.1))


# -- nothing is left behind ----------------------------------------------------------------------


def test_who_does_not_end_is_stopped(
    server: OtgServer, sender: OtherSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_generator, "LAG_S", 0.1)
    server.transmit = "started"
    window(sender)
    assert server.states == ["start", "stop"]


@pytest.mark.parametrize("begin", [lambda s: s.configure(TRAFFIC), lambda s: s.close()])
def test_traffic_is_stopped_before_anything_else_is_configured(
    server: OtgServer, sender: OtherSender, begin: Callable[[OtherSender], None]
) -> None:
    sender.configure(TRAFFIC)
    sender.start()
    begin(sender)
    assert server.states == ["start", "stop"]
    sender.close()
    assert server.config == {}


def test_what_was_not_configured_is_not_emptied(server: OtgServer) -> None:
    OtherGenerator(Named(server.url)).start(Wire()).close()
    assert server.configs == []


def test_closing_does_not_mind_a_generator_that_has_gone(
    server: OtgServer, sender: OtherSender
) -> None:
    sender.configure(TRAFFIC)
    sender.start()
    server.answers["POST", "/control/state"] = (500, "text/plain", "gone")
    server.answers["POST", "/config"] = (500, "text/plain", "gone")
    sender.close()
    with pytest.raises(GeneratorError, match=r"--generator http.*gone \(HTTP 500\)"):
        sender.configure(TRAFFIC)
