# SPDX-License-Identifier: BSD-3-Clause
"""`--replay`: flows of a configuration that send the frames of a file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from frames import write_pcap
from harness import BIN, Generator, eventually, generator, sent
from traffic import captured_flow, errors

pytest_plugins = ["rig"]
FRAMES = [bytes((7 * i + k) % 256 for k in range(60 + 97 * i % 1455)) for i in range(50)]


@pytest.fixture
def file(directory: Path) -> Path:
    path = directory / "frames.pcap"
    write_pcap(path, [(10**18, frame) for frame in FRAMES])
    return path


def test_a_flow_sends_the_frames_of_its_file_at_its_own_rate(directory: Path, file: Path) -> None:
    with generator(directory, f"--replay=f={file}") as running:
        # They are in memory by now.
        os.truncate(file, 0)
        config, flow = captured_flow(120)
        # No part of what the configuration says of the packet counts.
        flow.size.fixed = 1000
        flow.packet.ethernet().ipv4().tcp()
        assert sent(running, config) == [*FRAMES, *FRAMES, *FRAMES[:20]]
        books, port = running.flow("f"), running.port()
        length = sum(map(len, [*FRAMES, *FRAMES, *FRAMES[:20]]))
        assert running.ports()["p1"].bytes_tx == length + 4 * 120
    assert (books["intended"], books["accepted"], books["lost_at_ingress"]) == (120, 120, 0)
    # Frames that nobody marked are the port's.
    assert (port["foreign"], port["received"]) == (120, 0)


def test_a_flood_begins_with_the_first_frame_each_time(directory: Path, file: Path) -> None:
    with generator(directory, "--flood", f"--replay=f={file}") as running:
        config, _ = captured_flow(70)
        for _ in range(2):
            assert sent(running, config) == [*FRAMES, *FRAMES[:20]]
            assert running.flow("f")["accepted"] == 70


def test_flows_that_are_to_be_measured_are_refused(directory: Path, file: Path) -> None:
    with generator(directory, f"--replay=f={file}", f"--replay=other={file}") as running:
        config, flow = captured_flow(10)
        flow.metrics.enable = True
        (error,) = errors(lambda: running.api.set_config(config))
        assert error.startswith("flows[0].metrics.enable: frames of --replay f have no signature")
        flow.metrics.enable = False
        warnings = running.api.set_config(config).warnings
        assert [each for each in warnings if "--replay" in each] == [
            'flows: none is named "other", for which --replay has frames'
        ]
        more(running)


def more(running: Generator) -> None:
    """A configuration without flows, and one whose flow runs, still send what they should."""
    config, flow = captured_flow(10)
    flow.name = "other"
    assert sent(running, config) == FRAMES[:10]
    eventually(running.stopped)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("f=none.pcap", "--replay f: none.pcap: No such file"),
        ("f=long.pcap", "--replay f=long.pcap: frames of 1519 bytes are longer than 1518"),
        ("f", "f0=office.pcapng"),
    ],
)
def test_files_that_cannot_be_sent_are_named(directory: Path, option: str, words: str) -> None:
    write_pcap(directory / "long.pcap", [(0, bytes(1515))])
    done = subprocess.run(
        [str(BIN / "generator"), "--otg-listen", "127.0.0.1:0", "--replay", option],
        check=False, capture_output=True, text=True, cwd=directory, timeout=15,
    )  # fmt: skip
    assert done.returncode != 0
    assert words in done.stderr
    assert "OTG on" not in done.stdout
