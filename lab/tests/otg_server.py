# SPDX-License-Identifier: BSD-3-Clause
"""A server with the part of OTG that the lab asks of a generator; it sends nothing."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, str, str]
JSON = "application/json"


def json_answer(content: Any, status: int = 200) -> Answer:
    return status, JSON, json.dumps(content)


class OtgServer:
    """Counts for each started flow what `sends` and `returns` make of its frames."""

    def __init__(self, certificate: ssl.SSLContext | None = None) -> None:
        self.config: dict[str, Any] = {}
        self.configs: list[dict[str, Any]] = []
        self.states: list[str] = []
        self.authorizations: set[str | None] = set()
        self.counts: dict[str, list[int]] = {}
        # By (method, path): the answer to give instead.
        self.answers: dict[tuple[str, str], Answer] = {}
        self.warnings: list[str] = []
        self.transmit = "stopped"
        self.link = "up"
        self.left_out: set[str] = set()
        self.latency: dict[str, float] | None = None
        self.sends: Callable[[int], int] = lambda frames: frames
        self.returns: Callable[[int], int] = lambda frames: frames
        # The number of answers about flows in which not all received frames are counted yet.
        self.behind = 0
        self.keeps_counters = False
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer("GET")

            def do_POST(self) -> None:
                self._answer("POST")

            def _answer(self, method: str) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                server.authorizations.add(self.headers.get("Authorization"))
                status, kind, text = server.answers.get((method, self.path)) or server.answer(
                    method, self.path, json.loads(body) if body else None
                )
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text.encode())))
                if status in (301, 302, 307):
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if certificate:
            self._server.socket = certificate.wrap_socket(self._server.socket, server_side=True)
        port = self._server.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if (method, path) == ("GET", "/capabilities/version"):
            return json_answer({"api_spec_version": "1.33.0", "app_version": "7.1"})
        if (method, path) == ("POST", "/config"):
            self.config = body
            self.configs.append(body)
            if not self.keeps_counters:
                self.counts = {}
            for flow in body.get("flows", []):
                self.counts.setdefault(flow["name"], [0, 0])
            return json_answer({"warnings": self.warnings if body else []})
        if (method, path) == ("POST", "/control/state"):
            state = body["traffic"]["flow_transmit"]["state"]
            self.states.append(state)
            if state == "start":
                self._start()
            return json_answer({"warnings": []})
        if (method, path) == ("POST", "/monitor/metrics"):
            return self._metrics(body["choice"])
        return json_answer({"code": 404, "errors": [f"{method} {path}: not found"]}, 404)

    def _start(self) -> None:
        for flow in self.config["flows"]:
            duration = flow["duration"]
            if duration["choice"] == "fixed_packets":
                frames = duration["fixed_packets"]["packets"]
            else:
                seconds = duration["fixed_seconds"]["seconds"]
                frames = round(int(flow["rate"]["pps"]) * seconds)
            sent = self.sends(frames)
            count = self.counts[flow["name"]]
            count[0] += sent
            count[1] += self.returns(sent)

    def _metrics(self, choice: str) -> Answer:
        if choice == "port":
            ports = [{"name": p["name"], "link": self.link} for p in self.config["ports"]]
            return json_answer({"choice": "port_metrics", "port_metrics": ports})
        rows = []
        late = 1 if self.behind > 0 else 0
        self.behind -= late
        for name, (sent, received) in self.counts.items():
            row: dict[str, Any] = {
                "name": name,
                "transmit": self.transmit,
                "frames_tx": str(sent),
                "frames_rx": str(max(received - late, 0)),
            }
            if self.latency:
                row["latency"] = self.latency
            rows.append({key: row[key] for key in row if key not in self.left_out})
        return json_answer({"choice": "flow_metrics", "flow_metrics": rows})
