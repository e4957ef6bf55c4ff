# SPDX-License-Identifier: BSD-3-Clause
"""The options of `linerate run rfc2544`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from linerate.experiments.rfc2544.presets import NAMED_SIZES, PRESETS, TESTS, Preset, tests_of
from linerate.records.trial import DIRECTIONS, Directions, Test
from linerate.runs import options as common
from linerate.runs.options import (
    BLOCKS,
    FORWARDERS,
    LINK,
    PRESET,
    SIZES,
    Budget,
    Composite,
    Option,
    numbers_of,
    words_of,
)
from linerate.traffic.otg import IPS, Ip
from linerate.traffic.other_generator import CA, GENERATOR, INSECURE, PASSWORD, Named, named

DEFAULT_FORWARDERS = ["c-l2fwd", "rust-l2fwd"]
DEFAULT_LINKS = ["memif"]


def _sizes(option: str, values: list[str] | None) -> list[int] | str:
    """Parse numbers, or the name of a set, whose sizes depend on the version of IP."""
    name = ",".join(values or [])
    return name if name in NAMED_SIZES else numbers_of(option, values)


def _tests(option: str, values: list[str] | None) -> tuple[Test, ...]:
    """Parse names of tests; empty for the preset's."""
    names = words_of(option, values)
    return tests_of(names) if names else ()


def _ways(value: Directions | None) -> Directions:
    return value or "both"


def _generator(parts: Mapping[str, Any]) -> Named | None:
    ca, password = (Path(parts[part]) if parts[part] else None for part in ("ca", "password_file"))
    return named(parts["url"], ca, password, insecure=bool(parts["insecure"]))


@dataclass(kw_only=True)
class Traffic:
    """Fields of options and designs: the traffic. `directions`: None if the link leaves no
    choice.
    """

    tests: Annotated[
        tuple[Test, ...],
        Option(
            "--tests",
            help="throughput (always measured), latency, loss, back-to-back, recovery, core-use.",
            default_help="all; with preset published, throughput and latency",
            parse=_tests,
        ),
    ] = TESTS
    ip: Annotated[
        Ip, Option("--ip", help="4 or 6.", choices=IPS, noun="version", compare="same")
    ] = 4
    directions: Annotated[
        Directions | None,
        Option(
            "--directions",
            help="On a link with two ports: one or both.",
            default_help="both",
            choices=DIRECTIONS,
            compare="same",
            compare_by=_ways,
        ),
    ] = None


@dataclass(kw_only=True)
class Options(Budget, Traffic, common.Options):
    """The options given on the command line. `generator`: another one than the lab's own."""

    summary: ClassVar = "Which rate does each forwarder carry without loss?"
    own: ClassVar = {
        "links": LINK.but(
            help="memif, memif2, veth, veth1, veth-af-xdp, veth1-af-xdp, tap, tap1, ports; a list, "
            "or repeated.",
            default=DEFAULT_LINKS,
        ),
        "sizes": SIZES.but(
            help="Frame sizes with FCS, a list; or standard; or published.",
            default_help="64; of preset published, published",
            parse=_sizes,
        ),
        "forwarders": FORWARDERS.but(
            help="Names or files (TOML); the first is the baseline.", default=DEFAULT_FORWARDERS
        ),
        "blocks": BLOCKS.but(
            help="Searches of each forwarder.",
            default=None,
            default_help="one more than a verdict needs, 9 for one size, 12 for seven (7 and 10 "
            "without latency and core-use)",
            # The repetitions of each test are shared out over the blocks of a run.
            merge="same",
        ),
    }

    preset: Annotated[
        Preset,
        PRESET.but(
            help="quick (minutes a size), published (the published tables, 2 minutes a size), csit "
            "(half an hour a size) or conforming (RFC 2544's durations: a day a size).",
            choices=PRESETS,
            merge="same",
            compare="same",
        ),
    ]
    generator: Annotated[
        Named | None,
        Composite(
            {
                "url": Option(
                    GENERATOR,
                    help="Another generator's OTG API, such as https://USER@127.0.0.1:8443. With "
                    "--link ports (--generator-port is a location that it understands) and "
                    "--line-rate.",
                    metavar="URL",
                    compare="same",
                ),
                "ca": Option(
                    CA,
                    help="Certificate (PEM) of the authority that signed its certificate.",
                    metavar="FILE",
                    merge="may differ",
                ),
                "insecure": Option(
                    INSECURE, help="Don't verify its certificate.", merge="may differ"
                ),
                "password_file": Option(
                    PASSWORD,
                    help="A file with the password of USER as its only line.",
                    metavar="FILE",
                    merge="may differ",
                ),
            },
            _generator,
        ),
    ] = None

    @property
    def foreign(self) -> bool:
        return self.generator is not None
