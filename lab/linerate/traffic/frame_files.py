# SPDX-License-Identifier: BSD-3-Clause
"""The user's frames as capture files: a driver emits them (drivers/nearfree), or a generator sends
them.

Our generator reads and checks the input and writes the frames, without sending any: captures in
pcap and pcapng, configurations of the Open Traffic Generator (OTG), and flows in the syntax of its
own command line.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from linerate.host import foreign
from linerate.host.errors import UsageError
from linerate.host.host import LOCAL
from linerate.host.places import rust_binary

# Frames of flows without a number: few enough to stay in a second-level cache.
MOST_FRAMES = 8192
_TIMEOUT_S = 120.0
# The prefix of the generator's messages about a flow or a file.
_OURS = re.compile(r'^--flow "f\d+": (pcap: \S*/given\d+: )?')
# Bytes before all frames, and before each.
_PCAP_HEADER, _PCAP_RECORD = 24, 16
_FCS = 4
# Bytes with FCS of the longest frame that a driver hands out, and that a generator sends: links of
# the kernel have an MTU of 1500.
MAX_FRAME, MAX_FRAME_SENT = 9216, 1518
_CAPTURES = (".pcap", ".pcapng", ".cap")
_CONFIGURATIONS = (".json", ".yaml", ".yml")
# OTG's finite durations.
_ENDING = ("fixed_packets", "fixed_seconds", "burst")
# Bytes of a configuration.
_LONGEST = 16 << 20


def frame_files(
    words: Sequence[str], ports: int, directory: Path, max_frame: int = MAX_FRAME
) -> tuple[Path, ...]:
    """Make a capture file in `directory` for each port, or one for all. `words`: one for each port,
    or one for all; a configuration has flows for each. Raises `UsageError`, also for frames of more
    than `max_frame` bytes.
    """
    if len(words) not in (1, ports):
        raise UsageError(
            f"--traffic: given {len(words)} times, for {ports} ports",
            "once for each port, or once for all",
        )
    found: list[Path] = []
    for number, word in enumerate(words):
        if _suffix(word) in _CONFIGURATIONS:
            if len(words) > 1:
                raise UsageError(f"--traffic {word}: a configuration has the flows of all ports")
            return _of_configuration(word, ports, directory, max_frame)
        file = directory / f"traffic{number}.pcap"
        flow = _flow(word, directory / f"given{number}")
        _run(word, ["--port", "p0=null", "--flow", flow, "--write", f"p0={file}"], max_frame)
        found.append(file)
    return tuple(found)


@dataclass(frozen=True)
class Contents:
    """The content of a file of `frame_files`. `size`: bytes of all its frames, with FCS."""

    frames: int
    size: int


def contents(file: Path) -> Contents:
    """Return the contents of a file that `frame_files` made."""
    frames = 0
    with file.open("rb") as data:
        data.seek(_PCAP_HEADER)
        # The file may be large: no frame is read.
        while head := data.read(_PCAP_RECORD):
            data.seek(int.from_bytes(head[8:12], "little"), os.SEEK_CUR)
            frames += 1
        bare = data.tell() - _PCAP_HEADER - frames * _PCAP_RECORD
    return Contents(frames, bare + frames * _FCS)


def _suffix(word: str) -> str:
    return "" if "=" in word.partition(",")[0] else Path(word).suffix.lower()


def _flow(word: str, link: Path) -> str:
    """Return the flow in the syntax of the generator's command line."""
    if _suffix(word) not in _CAPTURES:
        if "=" not in word:
            raise UsageError(
                f"--traffic {word}: neither a capture file ({', '.join(_CAPTURES)}), nor a "
                f"configuration ({', '.join(_CONFIGURATIONS)}), nor a flow",
                "for instance --traffic size=imix,ipv4.src=198.18.0.1+1000",
            )
        keys = {each.partition("=")[0] for each in word.split(",")}
        further = [] if keys & {"latency", "pcap"} else ["latency=off"]
        if not keys & {"duration", "frames", "bursts", "pcap"}:
            further.append(f"frames={MOST_FRAMES}")
        return ",".join([word, *further])
    file = Path(word)
    if not file.is_file():
        raise UsageError(f"--traffic {word}: no such file")
    # A comma in its name would end it.
    link.symlink_to(file.resolve())
    return f"pcap={link},rate=1Mpps,loops=1"


def _of_configuration(word: str, ports: int, directory: Path, max_frame: int) -> tuple[Path, ...]:
    try:
        config = _read(Path(word))
    except OSError as error:
        raise UsageError(f"--traffic {word}: {error.strerror}") from error
    except RecursionError as error:
        raise UsageError(f"--traffic {word}: nested too deeply") from error
    except (yaml.YAMLError, TypeError, KeyError, AttributeError, ValueError) as error:
        raise UsageError(f"--traffic {word}: not a configuration of OTG: {error}") from error
    senders = sorted({flow["tx_rx"]["port"]["tx_name"] for flow in config["flows"]})
    if not senders:
        raise UsageError(f"--traffic {word}: no flow is sent from a port")
    if len(senders) not in (1, ports):
        raise UsageError(
            f"--traffic {word}: flows of {len(senders)} ports, for {ports} ports of the link",
            "flows from one port, which all ports receive, or from as many as the link has",
        )
    given = directory / "traffic.json"
    given.write_text(json.dumps(config))
    files = tuple(directory / f"traffic{number}.pcap" for number in range(len(senders)))
    writes = [f"--write={name}={file}" for name, file in zip(senders, files, strict=True)]
    ending = all(flow.get("duration", {}).get("choice") in _ENDING for flow in config["flows"])
    limit = [] if ending else ["--write-limit", str(MOST_FRAMES)]
    _run(word, ["--otg", str(given), *writes, *limit], max_frame)
    return files


def _read(path: Path) -> dict[str, Any]:
    """Read flows that ports send; the ports are called p0, p1, ... in their order."""
    text = foreign.text(path, _LONGEST)
    given = yaml.safe_load(text)
    names = {str(port["name"]): f"p{number}" for number, port in enumerate(given["ports"])}
    flows = []
    for flow in given.get("flows") or []:
        ends = flow["tx_rx"].get("port")
        if ends is not None:
            flows.append({**flow, "tx_rx": {"port": {"tx_name": names[ends["tx_name"]]}}})
    # The file's own port locations do not matter here.
    ports = [
        {"name": name, "location": f"ring:r{number}"} for number, name in enumerate(names.values())
    ]
    found = {"ports": ports, "flows": flows}
    # Aliases can expand a short text enormously.
    if sum(map(len, json.JSONEncoder().iterencode(found))) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST} bytes")
    return found


def _run(word: str, options: Sequence[str], max_frame: int) -> None:
    done = LOCAL.run(
        [str(rust_binary("generator")), *options, "--max-frame", str(max_frame)],
        timeout_s=_TIMEOUT_S,
    )
    if done.exit_code:
        why = done.errors.strip().removeprefix("generator: ").removeprefix("error: ")
        # The flow's name, and the link that stands for the file, are ours: the user knows neither.
        why = _OURS.sub("", why, 1)
        raise UsageError(f"--traffic {word}: {why.splitlines()[0] if why else 'not readable'}")
