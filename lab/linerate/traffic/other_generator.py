# SPDX-License-Identifier: BSD-3-Clause
"""A generator that is not ours, addressed by its Open Traffic Generator (OTG) API: `--generator
URL`.

Uses only OTG's own model, and only the part on which implementations agree: ports, flows, pps, a
number of packets or of seconds, flow and port metrics, latency `cut_through` (the one mode that
ixia-c has). Lateness and frames refused by a full link are not reported then: the generator's count
of sent frames is compared with the number it was told to send, and those figures are absent.

Lifecycle: `OtherGenerator` is checked by `prepare` before the first trial; `start` makes a sender
for a block. The configuration belongs to the lab: when the sender is closed, traffic is stopped and
the configuration emptied.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from linerate.host import foreign
from linerate.host.errors import GeneratorError, LabError, LinkError, UsageError
from linerate.host.process import pause
from linerate.links import Wire
from linerate.traffic.books import LATE_LIMIT
from linerate.traffic.otg import UNTRUSTED, Access, OtgClient, Traffic, flow_name, whole_pps
from linerate.traffic.sender import Sender, Sent

GENERATOR = "--generator"
CA, INSECURE = "--generator-ca", "--generator-insecure"
PASSWORD = "--generator-password-file"

# Timeout of a request; hardware controllers take long to configure.
REQUEST_S = 30.0
LINK_S = 12.0
# Time for the traffic to begin and end, beside its own duration.
LAG_S = 15.0
POLL_S = 0.05
# Time for late frames, and for counters that are refreshed periodically (RFC 2544, section 23).
SETTLE_S = 2.0

NOTE = (
    "it does not report lateness: a late window is recognised only by frames that it did not "
    "send, and the pace of bursts is unknown; frames that found the link full are among those, not "
    "lost"
)


@dataclass(frozen=True)
class Named:
    """The generator's options; None: not given."""

    url: str
    ca: str | None = None
    insecure: bool = False
    password_file: str | None = None


def named(
    url: str | None, ca: Path | None, password_file: Path | None, *, insecure: bool
) -> Named | None:
    """Check the generator's options; None if the lab's own generator is to send."""
    if url is None:
        for option, given in ((CA, ca), (PASSWORD, password_file), (INSECURE, insecure)):
            if given:
                raise UsageError(f"{option}: only with {GENERATOR} URL")
        return None
    files = [None if file is None else str(file.absolute()) for file in (ca, password_file)]
    found = Named(url, ca=files[0], insecure=insecure, password_file=files[1])
    OtherGenerator(found)
    return found


class OtherGenerator:
    """The address of a generator, and how to connect to it."""

    def __init__(self, given: Named, *, latency: bool = False) -> None:
        """Check the address. `latency`: it will have to measure latency. Raises `UsageError`, which
        names the option.
        """
        self.latency = latency
        parts = _parts(given.url)
        address = parts.netloc.rpartition("@")[2]
        self.url = f"{parts.scheme}://{address}{parts.path.rstrip('/')}"
        self.name = f"{GENERATOR} {self.url}"
        self._password_file = given.password_file
        self.access = Access(
            name=self.name,
            user=_user(parts.username, given),
            verify=_verify(parts.scheme, given),
            timeout_s=REQUEST_S,
            latency_mode="cut_through",
        )

    def prepare(self, traffic: Traffic) -> list[str]:
        """Configure such traffic as a test, and remove it again; return remarks on the generator.

        Raises `LabError` if it cannot be reached, is no OTG API, sends already or refuses.
        """
        client = OtgClient(self.url, self.access)
        try:
            version = client.version()
            self._must_be_idle(client)
            try:
                warnings = client.reconfigure(replace(traffic, latency=self.latency))
            finally:
                with contextlib.suppress(GeneratorError):
                    client.clear()
        except GeneratorError as error:
            raise LabError(error.message, _hint(error.message)) from error
        finally:
            client.close()
        notes = [f"frames are sent by {self.url} ({version}); {NOTE}"]
        if self.latency:
            notes.append(f"latency is what that generator takes for {self.access.latency_mode}")
        notes += exposure(self._password_file)
        return notes + [f"{self.name} warns: {each}" for each in warnings]

    def _must_be_idle(self, client: OtgClient) -> None:
        flows = []
        # Some return no metrics before a configuration.
        with contextlib.suppress(GeneratorError):
            flows = [f.name for f in client.flow_metrics() if f.transmit == "started"]
        if flows:
            raise LabError(
                f"{self.name}: sends already: {', '.join(map(str, flows))}",
                "stop that first: the lab replaces the configuration",
            )

    def start(self, wire: Wire) -> OtherSender:
        """Return a sender for the traffic of one setup; `wire` has no end that it could need."""
        return OtherSender(OtgClient(self.url, self.access))


def exposure(file: str | None) -> list[str]:
    """Return warnings if other users of this machine can read or change this password file."""
    others = Path(file).stat().st_mode & 0o006 if file else 0
    if not others:
        return []
    what = "change" if others & 0o002 else "read"
    return [f"{PASSWORD} {file}: all users may {what} it: chmod 600 {file}"]


def _hint(message: str) -> str:
    """Return what to do about an error at the start."""
    if UNTRUSTED in message:
        return f"{CA} FILE: the authority that signed its certificate; or {INSECURE}"
    if "(HTTP 401)" in message:
        return f"{GENERATOR} https://USER@HOST:PORT with {PASSWORD} FILE"
    if "set_config" in message:
        return "--generator-port LOCATION: one that this generator understands"
    return f"{GENERATOR} URL: the OTG API of a generator"


def _parts(url: str) -> SplitResult:
    def refuse(why: str) -> UsageError:
        return UsageError(f"{GENERATOR} {url}: {why}", "for instance https://127.0.0.1:8443")

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise refuse(f"no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise refuse("no URL of an HTTP or HTTPS server")
    if parts.query or parts.fragment:
        raise refuse("a query or fragment has no meaning here")
    if parts.password is not None:
        # The password is not repeated: command lines are stored with the results.
        raise UsageError(
            f"{GENERATOR}: a password in a command line is read by everybody on this machine",
            f"write it into a file and give {PASSWORD} FILE",
        )
    return parts


def _user(user: str | None, given: Named) -> tuple[str, str] | None:
    if not given.password_file:
        if user:
            raise UsageError(f"{GENERATOR}: user {user} without a password", f"{PASSWORD} FILE")
        return None
    option = f"{PASSWORD} {given.password_file}"
    if not user:
        raise UsageError(f"{option}: for which user?", f"{GENERATOR} https://USER@HOST:PORT")
    try:
        lines = foreign.text(Path(given.password_file), foreign.MOST_SECRET).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"{option}: cannot read it: {why}") from error
    if len(lines) != 1 or not lines[0]:
        raise UsageError(f"{option}: the password must be its only line")
    return unquote(user), lines[0]


def _verify(scheme: str, given: Named) -> bool | str:
    for option, wanted in ((CA, given.ca), (INSECURE, given.insecure)):
        if wanted and scheme != "https":
            raise UsageError(f"{option}: {given.url} has no certificate", "name it by https://")
    if not given.ca:
        return not given.insecure
    if given.insecure:
        raise UsageError(f"{INSECURE}: {CA} asks for the opposite", "give one of them")
    try:
        foreign.content(Path(given.ca), foreign.MOST_CERTIFICATES)
    except OSError as error:
        raise UsageError(f"{CA} {given.ca}: cannot read it: {error.strerror}") from error
    try:
        ssl.create_default_context(cafile=given.ca)
    except OSError as error:
        raise UsageError(f"{CA} {given.ca}: no certificate in PEM: {error}") from error
    return given.ca


class OtherSender(Sender):
    """Drives the generator for one setup. Every window is configured anew, because that resets its
    counters.
    """

    def __init__(self, client: OtgClient) -> None:
        self.client = client
        self._asked: dict[str, int] = {}
        self._paced = True
        # The flows' counts before they were started: 0, except for generators that do not reset
        # them.
        self._before: dict[str, tuple[int, int]] = {}
        self._configured = self._sending = False

    def configure(self, traffic: Traffic) -> None:
        if self._sending:
            self.stop()
        self._asked, self._paced = asked_of(traffic), traffic.frames is None
        self._before = {}
        self._configured = True
        self.client.reconfigure(traffic)
        self._before = self._counts()

    def links_up(self) -> bool:
        return all(port.link != "down" for port in self.client.port_metrics())

    def start(self) -> None:
        deadline = time.monotonic() + LINK_S
        while not self.links_up():
            if time.monotonic() >= deadline:
                raise LinkError(f"{self.client.name}: a port's link is down after {LINK_S:g} s")
            pause(POLL_S)
        self._sending = True
        self.client.start()

    def stop(self) -> None:
        self.client.stop()
        self._sending = False

    def wait_stopped(self, timeout_s: float, alive: Callable[[], None]) -> None:
        """Wait until it reports that all is sent, and then for the remaining counters."""
        if not _until(self._stopped, max(timeout_s, LAG_S), alive):
            self.stop()
        self._sending = False
        _until(self._all_counted, SETTLE_S, alive)

    def _stopped(self) -> bool:
        flows = self.client.flow_metrics()
        if any(flow.transmit is None for flow in flows):
            raise GeneratorError(f"{self.client.name}: flow metrics lack transmit")
        # A flow that has yet to begin does not transmit either.
        begun = any(sent for sent, _ in self._counts(flows).values())
        return begun and all(flow.transmit == "stopped" for flow in flows)

    def _all_counted(self) -> bool:
        found = self.sent()
        return found.intended == found.attempted == found.received

    def _counts(self, metrics: Any = None) -> dict[str, tuple[int, int]]:
        """Return the frames sent and received, by flow; `metrics`: those that were read already."""
        found = {}
        for flow in self.client.flow_metrics() if metrics is None else metrics:
            for column in ("frames_tx", "frames_rx"):
                if getattr(flow, column) is None:
                    raise GeneratorError(f"{self.client.name}: flow metrics lack {column}")
            sent, received = self._before.get(flow.name, (0, 0))
            found[flow.name] = int(flow.frames_tx) - sent, int(flow.frames_rx) - received
        if missing := set(self._asked) - set(found):
            raise GeneratorError(
                f"{self.client.name}: no flow metrics of {', '.join(sorted(missing))}"
            )
        return found

    def sent(self) -> Sent:
        """Return the counts; `intended`: the frames it was told to send.

        Rate times seconds may differ by one frame with each clock and each rounding; such a
        difference, within the limit of lateness, is no loss. A larger one makes a window void.
        """
        found = self._counts()
        counts = [found[name] for name in self._asked]
        sent, asked = sum(count[0] for count in counts), sum(self._asked.values())
        rounding = max(LATE_LIMIT * asked, len(self._asked)) if self._paced else 0
        return Sent(
            accepted=sent,
            attempted=sent,
            received=sum(count[1] for count in counts),
            intended=sent if abs(sent - asked) <= rounding else asked,
        )

    def received_by_flow(self) -> dict[str, int]:
        return {name: count[1] for name, count in self._counts().items()}

    def close(self) -> None:
        # An unreachable generator cannot be stopped; the next request reports it.
        with contextlib.suppress(GeneratorError):
            if self._sending:
                self.stop()
        with contextlib.suppress(GeneratorError):
            if self._configured:
                self.client.clear()
        self.client.close()


def asked_of(traffic: Traffic) -> dict[str, int]:
    """Return how many frames each flow is told to send."""
    if traffic.pps is None:
        raise GeneratorError("OTG cannot request sending as fast as a port takes frames")
    first = traffic.frames
    if first is None:
        first = round(whole_pps(traffic.pps) * traffic.seconds)
    senders = len(traffic.locations) if traffic.senders is None else traffic.senders
    return {
        flow_name(port, place): cut.frames if cut else first
        for port in range(senders)
        for place, cut in enumerate(traffic.parts)
    }


def _until(done: Callable[[], bool], timeout_s: float, alive: Callable[[], None]) -> bool:
    """Wait for `done`; return False if it was not done in time."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() >= deadline:
            return False
        alive()
        pause(POLL_S)
    return True
