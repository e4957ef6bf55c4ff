# SPDX-License-Identifier: BSD-3-Clause
"""Frames that a user names, as the capture files that a driver hands out (drivers/nearfree).

Our generator reads what is given, checks it and writes the frames, without sending any: captures in
pcap and pcapng, configurations of the Open Traffic Generator (OTG), and flows as on its own command
line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from linerate.host.errors import UsageError
from linerate.host.host import LOCAL
from linerate.host.places import rust_binary

# Of flows that do not say how many: few enough that they stay in a cache of the second level.
MOST_FRAMES = 8192
_TIMEOUT_S = 120.0
_MAX_FRAME = 9216
_CAPTURES = (".pcap", ".pcapng", ".cap")
_CONFIGURATIONS = (".json", ".yaml", ".yml")


def frame_files(words: Sequence[str], ports: int, directory: Path) -> tuple[Path, ...]:
    """A capture file in `directory` for each port, or one for all. `words`: one for each port, or
    one for all; a configuration has flows for each. Raises `UsageError`.
    """
    if len(words) not in (1, ports):
        raise UsageError(
            f"--traffic: given {len(words)} times, for {ports} ports",
            "once for each port, or once for all",
        )
    found: list[Path] = []
    for number, word in enumerate(words):
        if Path(word).suffix in _CONFIGURATIONS:
            if len(words) > 1:
                raise UsageError(f"--traffic {word}: a configuration has the flows of all ports")
            return _of_configuration(word, ports, directory)
        file = directory / f"traffic{number}.pcap"
        _write(
            word, file, ["--port", "p0=null", "--flow", _flow(word, directory / f"given{number}")]
        )
        found.append(file)
    return tuple(found)


def _flow(word: str, link: Path) -> str:
    """As the generator's command line has it."""
    if Path(word).suffix not in _CAPTURES:
        if "=" not in word:
            raise UsageError(
                f"--traffic {word}: neither a capture file ({', '.join(_CAPTURES)}), nor a "
                f"configuration ({', '.join(_CONFIGURATIONS)}), nor a flow",
                "for instance --traffic size=imix,ipv4.src=198.18.0.1+1000",
            )
        return f"latency=off,duration=continuous,{word}" if "duration" not in word else word
    file = Path(word)
    if not file.is_file():
        raise UsageError(f"--traffic {word}: no such file")
    # A comma in its name would end it.
    link.symlink_to(file.resolve())
    return f"pcap={link},rate=1Mpps,loops=1"


def _of_configuration(word: str, ports: int, directory: Path) -> tuple[Path, ...]:
    try:
        config: Any = yaml.safe_load(Path(word).read_text())
        names = [str(port["name"]) for port in config["ports"]]
    except OSError as error:
        raise UsageError(f"--traffic {word}: {error.strerror}") from error
    except (yaml.YAMLError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise UsageError(f"--traffic {word}: not a configuration of OTG: {error}") from error
    # Where its own ports are is of no interest here.
    for number, port in enumerate(config["ports"]):
        port["location"] = f"ring:r{number}"
    senders = [
        name for name in names if any(_sends(flow, name) for flow in config.get("flows", []))
    ]
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
    writes = [f"{name}={file}" for name, file in zip(senders, files, strict=True)]
    _run(word, [option for each in writes for option in ("--write", each)], ["--otg", str(given)])
    return files


def _sends(flow: Any, name: str) -> bool:
    ends = flow.get("tx_rx", {}) if isinstance(flow, dict) else {}
    return bool(ends.get("port", {}).get("tx_name") == name)


def _write(word: str, file: Path, traffic: Sequence[str]) -> None:
    limit = () if Path(word).suffix in _CAPTURES else ("--write-limit", str(MOST_FRAMES))
    _run(word, ["--write", f"p0={file}", *limit], traffic)


def _run(word: str, writes: Sequence[str], traffic: Sequence[str]) -> None:
    limits = ["--max-frame", str(_MAX_FRAME)]
    if "--otg" in traffic:
        limits += ["--write-limit", str(MOST_FRAMES)]
    done = LOCAL.run(
        [str(rust_binary("generator")), *traffic, *writes, *limits], timeout_s=_TIMEOUT_S
    )
    if done.exit_code:
        why = done.errors.strip().removeprefix("generator: ").removeprefix("error: ")
        raise UsageError(f"--traffic {word}: {why.splitlines()[0] if why else 'not readable'}")
