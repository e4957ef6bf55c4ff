# SPDX-License-Identifier: BSD-3-Clause
"""Debian's Chromium without a screen, controlled by the DevTools protocol, to test the lab's pages.

The protocol is spoken over two pipes (`--remote-debugging-pipe`): there is no driver between and no
port to find, and the browser ends by itself if its test dies. Messages are JSON; a zero byte ends
each. Everything that a page requests and logs is kept, from before the page is opened.

https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

ANSWER_S, SETTLED_S = 30.0, 15.0
NARROW, WIDE = 390, 1280
ROOT = "document.documentElement"
Message = dict[str, Any]
# Chromium needs the pipes as descriptors 3 and 4, not as standard input and output.
SHELL = ["/bin/sh", "-c", 'exec "$@" 3<&0 4>&1 0</dev/null 1>&2', "sh"]
# It shows only the project's own pages, and has no sandbox if it runs as root or in a container.
FLAGS = [
    "--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-default-apps", "--disable-extensions", "--disable-breakpad",
    "--password-store=basic", "--host-resolver-rules=MAP * ~NOTFOUND",
]  # fmt: skip


def binary() -> str | None:
    return shutil.which("chromium") or shutil.which("google-chrome")


class Browser:
    """One browser with a profile of its own. It ends with the `with` block."""

    def __init__(self, program: str, home: Path) -> None:
        self._log = home / "browser.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*SHELL, program, *FLAGS, f"--user-data-dir={home / 'profile'}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env=os.environ | {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")},
                start_new_session=True,
            )
        self._number = 0
        self._unread = b""
        self._events: list[Message] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with contextlib.suppress(OSError):
                self._write({"id": 0, "method": "Browser.close"})
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        finally:
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()

    def _write(self, message: Message) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\0")

    def _read(self, deadline: float) -> Message:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\0" not in self._unread:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            received = os.read(pipe, 1 << 20) if ready else b""
            if not received:
                why = "ended" if ready else "does not answer"
                pytest.fail(f"the browser {why}; it said:\n{self._log.read_text()[-2000:]}")
            self._unread += received
        first, self._unread = self._unread.split(b"\0", 1)
        message: Message = json.loads(first)
        return message

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Message:
        """Send a request and wait for its answer; events in between are kept."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._write(message)
        deadline = time.monotonic() + ANSWER_S
        while (answer := self._read(deadline)).get("id") != self._number:
            self._events.append(answer)
        if "error" in answer:
            pytest.fail(f"{method}: {answer['error']['message']}")
        result: Message = answer["result"]
        return result

    def events(self, session: str, method: str) -> list[Message]:
        """Return the events of a page so far, without waiting."""
        return [
            event["params"]
            for event in self._events
            if (event.get("sessionId"), event["method"]) == (session, method)
        ]

    def await_event(self, session: str, method: str, known: int) -> None:
        """Wait until there are more than `known` such events."""
        deadline = time.monotonic() + ANSWER_S
        while len(self.events(session, method)) <= known:
            self._events.append(self._read(deadline))

    def open(self, file: Path, width: int = WIDE) -> Page:
        """Open the file in a new tab and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Network", "Log", "Runtime"):
            page.call(f"{domain}.enable")
        page.resize(width)
        page.media()
        loaded = len(self.events(session, "Page.loadEventFired"))
        page.call("Page.navigate", url=file.as_uri())
        self.await_event(session, "Page.loadEventFired", loaded)
        return page


class Page:
    """An open page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser = browser
        self.session = session

    def call(self, method: str, **parameters: Any) -> Message:
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page; for a promise, its result."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            pytest.fail(f"{expression}: {found['exceptionDetails']['exception']['description']}")
        return found["result"].get("value")

    def until(self, condition: str) -> bool:
        """Return True if an expression in the page becomes true in time; polled every 20 ms."""
        return bool(
            self.evaluate(
                f"""new Promise((done) => {{
                const end = performance.now() + {1000 * SETTLED_S};
                const look = () => ({condition}) ? done(true)
                    : performance.now() > end ? done(false) : setTimeout(look, 20);
                look();
                }})"""
            )
        )

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def click(self, element: str) -> None:
        """Click with the mouse on the middle of the element that an expression returns."""
        x, y = self.evaluate(
            f"""(() => {{ const element = {element};
            element.scrollIntoView({{ block: "center", inline: "center", behavior: "instant" }});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, element: str) -> None:
        """Press a key (`Enter` or ` `) on the element that an expression returns."""
        self.evaluate(f"({element}).focus()")
        code, text = {"Enter": (13, "\r"), " ": (32, " ")}[key]
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                **({"text": text} if kind == "keyDown" else {}),
            )

    def requests(self) -> list[str]:
        """Return the addresses of all requests of the page."""
        sent = self.browser.events(self.session, "Network.requestWillBeSent")
        return [event["request"]["url"] for event in sent]

    def complaints(self) -> list[str]:
        """Return the warnings and errors of the console, exceptions included."""
        events = self.browser.events
        logged = [event["entry"] for event in events(self.session, "Log.entryAdded")]
        said = events(self.session, "Runtime.consoleAPICalled")
        thrown = events(self.session, "Runtime.exceptionThrown")
        return [
            *(entry["text"] for entry in logged if entry["level"] in ("warning", "error")),
            *(str(each["args"]) for each in said if each["type"] in ("warning", "error", "assert")),
            *(str(event["exceptionDetails"]) for event in thrown),
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page scrolls sideways."""
        return int(self.evaluate(f"{ROOT}.scrollWidth - {ROOT}.clientWidth"))

    def media(self, kind: str = "", scheme: str = "light") -> None:
        """Set the media type: print, or a screen with a light or dark colour scheme."""
        wish = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[wish])

    def pdf(self) -> bytes:
        """Return the page as it is printed on A4."""
        printed = self.call(
            "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True
        )
        return base64.b64decode(printed["data"])


def started(directory: Path) -> Iterator[Browser]:
    """Start a browser for a fixture, or skip if there is none."""
    program = binary()
    if program is None:
        pytest.skip("no chromium: the report is not opened in a browser")
    with Browser(program, directory) as browser:
        yield browser
