# SPDX-License-Identifier: BSD-3-Clause
"""The options of `linerate duel`: their meaning and their valid combinations."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from linerate.cli.compare_screen import parse_margin
from linerate.experiments.duel.rounds import Asked
from linerate.experiments.duel.sentences import called
from linerate.forwarders import Forwarder
from linerate.forwarders.definition import MAX_CPUS, Lcores
from linerate.host.cores.weight import MOST_WEIGHT, WEIGHT
from linerate.host.errors import UsageError, look_up
from linerate.links import LINKS, Frames, Link, link
from linerate.links.ports import Ports
from linerate.records.output import OutputFile
from linerate.runs.options import within
from linerate.traffic.frame_files import MAX_FRAME, MAX_FRAME_SENT, frame_files
from linerate.trial.starts.ways import Method, method_of

MIN_STARTS = 2
_MAX_STARTS = 16
_MIN_SIZE, _MAX_SIZE = 64, 1518
# Links that each start can have for itself.
_LINKS = tuple(name for name in LINKS if name != Ports.name)
_METHODS: dict[str, Method | Literal["auto"]] = {
    "auto": "auto", "standing": "standing", "turns": "turns",
}  # fmt: skip
_MEMORY = dict.fromkeys(("auto", "yes", "no"))
_MAX_WITHIN_S = 24 * 3600.0
# The cost of a packet in the kernel varies from turn to turn, and hardly from start to start.
_NAPI_TURNS = 12
# A commit that is not decided is skipped, and then git may not find the first bad one.
_WITHIN, _WITHIN_OF_BISECT = "60s", "5m"


@dataclass(frozen=True)
class Where:
    """The options for where and how the programs run, as given."""

    link: str = "null2"
    hugepages: str = "auto"
    method: str = "auto"
    lcores: str = "1"
    traffic: tuple[str, ...] = ()
    wait: str = "10m"
    cpu_weight: int = WEIGHT

    @property
    def wait_s(self) -> float:
        """Time (s) to wait for CPUs that other labs use; raises `UsageError`."""
        return parse_time(self.wait, "--wait")

    def check(self) -> tuple[list[Link], Method | Literal["auto"], tuple[Lcores, int]]:
        """Return the links, the method and the lcores; raises `UsageError`."""
        look_up(_MEMORY, self.hugepages, "--hugepages", "choice")
        parse_time(self.wait, "--wait")
        within(1, MOST_WEIGHT)("--cpu-weight", self.cpu_weight)
        method = look_up(_METHODS, self.method, "--method", "method")
        names = [name.strip() for name in self.link.split(",")]
        if len(set(names)) < len(names):
            raise UsageError(f"--link {self.link}: names a link twice", "name each once")
        return [link_of(name) for name in names], method, lcores_of(self.lcores)


@dataclass(frozen=True)
class Around:
    """The options for what happens before and after a duel, as given. `build`: a shell command that
    makes B. `baseline`: the file of the program that replaces A. `junit`, `markdown`: files for the
    answer. `explain`: count instructions afterwards. `out`: a directory for the record and the
    page. `repeat_with`: a command that repeats the duel, if it is not this one. `which`: labels
    that distinguish A and B, after their names.
    """

    baseline: Path | None = None
    build: str | None = None
    bisect: bool = False
    json: bool = False
    junit: Path | None = None
    markdown: Path | None = None
    explain: bool = False
    out: Path | None = None
    repeat_with: str | None = None
    which: tuple[str, ...] = ()

    def files(self) -> dict[str, OutputFile]:
        """Return the files to write, by format; raises `UsageError` or `OutputError` if one cannot
        be written.
        """
        given = {"junit": self.junit, "markdown": self.markdown}
        found = {
            name: OutputFile(path, f"--{name}") for name, path in given.items() if path is not None
        }
        if len({each.path for each in found.values()}) < len(found):
            raise UsageError(f"--junit and --markdown name the same file, {self.junit}")
        return found


def check_words(words: Sequence[str], around: Around) -> None:
    """Raise `UsageError` unless there are programs for A and for B, and words for both or none."""
    baseline = around.baseline
    if len(around.which) not in (0, 2):
        raise UsageError(f"--which is given {len(around.which)} times", "once for A, once for B")
    if baseline is None and len(words) < 2:
        raise UsageError(
            "B is missing: a duel has two programs",
            "linerate duel A B, or linerate duel --baseline FILE B",
        )
    if baseline is not None and len(words) > 1:
        raise UsageError(
            f"--baseline {baseline}: it has the first program, and two more are given",
            "give the one that may be slower",
        )


def check_keeping(path: Path, second: str | None, around: Around) -> None:
    """Raise `UsageError` if an option conflicts with keeping a program."""
    if second is not None:
        raise UsageError(f"--keep-baseline {path}: two programs are given", "give the one to keep")
    if around != Around():
        raise UsageError(
            f"--keep-baseline {path}: it measures nothing, and takes no --baseline, --build, "
            "--bisect, --json, --junit, --markdown or --out",
            "compare by a second command: linerate duel --baseline FILE B",
        )


def link_of(name: str) -> Link:
    """Return the link of that name; raises `UsageError`."""
    if name.partition(":")[0] not in LINKS:
        look_up(dict.fromkeys(_LINKS), name, "--link", "link")
    return link(name)


def check_size(size: int) -> None:
    """Raise `UsageError` for a frame size that no link carries."""
    if not _MIN_SIZE <= size <= _MAX_SIZE:
        raise UsageError(f"--size {size}: not within {_MIN_SIZE} to {_MAX_SIZE} bytes")


def parse_time(text: str, option: str = "--within") -> float:
    """Parse a time such as `60s`, `2m` or `90` in seconds; raises `UsageError`."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(s|m|min)?", text.strip())
    seconds = float(found[1]) * (60 if found[2] in ("m", "min") else 1) if found else 0.0
    if not 0 < seconds <= _MAX_WITHIN_S:
        raise UsageError(f"{option} {text}: invalid time", f"for instance {option} 60s or 2m")
    return seconds


def lcores_of(text: str) -> tuple[Lcores, int]:
    """Return the lcores of a command line in quotes, and the number of CPUs; raises
    `UsageError`.
    """
    if text == "idle-main":
        return "idle-main", 1
    if not re.fullmatch(r"[1-9][0-9]?", text) or int(text) > MAX_CPUS:
        raise UsageError(
            f"--lcores {text}: must be 1 to {MAX_CPUS}, or idle-main",
            "for instance --lcores 2, or --lcores idle-main for a program whose main lcore does "
            "not forward",
        )
    return "one", int(text)


def asked_of(
    margin: str, within: str | None, starts: int, size: int, seed: int | None,
    *, bisect: bool, check: bool = True, code: bool = True,
) -> Asked:  # fmt: skip
    """Check the options of the command line; raises `UsageError`."""
    if not MIN_STARTS <= starts <= _MAX_STARTS:
        raise UsageError(f"--starts {starts}: not within {MIN_STARTS} to {_MAX_STARTS}")
    check_size(size)
    return Asked(
        margin=parse_margin(margin),
        within_s=parse_time(within or (_WITHIN_OF_BISECT if bisect else _WITHIN)),
        starts=starts,
        size=size,
        seed=secrets.randbelow(1 << 31) if seed is None else seed,
        check=check,
        code=code,
    )


def how(
    link: Link, programs: Sequence[Forwarder], wanted: Method | Literal["auto"], asked: Asked
) -> Asked:
    """Choose how the programs are compared on this link; raises `UsageError` if that is
    impossible.
    """
    if link.name == Ports.name:
        raise UsageError(
            f"--link {link.name}: each start needs devices of its own, and these are there once",
            "choose from: " + ", ".join(_LINKS),
        )
    method, per = method_of(link, programs)
    if wanted == "standing" and method != "standing":
        why = "packets to take at any moment, which this link does not show"
        if not link.has_generator:
            why = "one lcore, and all work in their own processes"
        raise UsageError(f"--method standing: programs need {why}", "--method turns")
    asked = replace(asked, method=method if wanted == "auto" else wanted, per=per)
    return replace(asked, turns=_NAPI_TURNS) if per == "cpu-and-napi" else asked


def with_traffic(on: Link, words: Sequence[str], directory: Path) -> tuple[Link, tuple[Path, ...]]:
    """Return the link and the capture files of the user's frames; raises `UsageError` if the link
    does not carry any.
    """
    if not words:
        return on, ()
    if on.has_generator:
        return on, frame_files(words, on.ports, directory, MAX_FRAME_SENT)
    if not isinstance(on, Frames):
        raise UsageError(
            f"--traffic: the ports of --link {on.name} make packets of their own",
            "--link frames2, or one with a generator: memif2, veth",
        )
    files = frame_files(words, on.ports, directory, MAX_FRAME)
    return on.with_files(files), files


def check_link(program: Forwarder, letter: str, on: Link) -> None:
    """Raise `UsageError` if a program does not work on this link."""
    if misfit := program.misfit(on):
        fit = [name for name in _LINKS if not program.misfit(link(name))]
        raise UsageError(
            f"{called(program, letter)}: {misfit}",
            f"it works on: {', '.join(f'--link {name}' for name in fit)}" if fit else None,
        )


def repeating(words: Sequence[str], where: Where, asked: Asked, baseline: Path | None) -> str:
    """Return the command line that repeats this duel, in the same orders."""
    usual, usually = Where(), Asked()
    options = {
        "--baseline": (baseline, None),
        "--link": (where.link, usual.link),
        "--margin": (f"{asked.margin * 100:g}%", f"{usually.margin * 100:g}%"),
        "--within": (f"{asked.within_s:g}s", f"{usually.within_s:g}s"),
        "--starts": (asked.starts, usually.starts),
        "--size": (asked.size, usually.size),
        "--hugepages": (where.hugepages, usual.hugepages),
        "--cpu-weight": (where.cpu_weight, usual.cpu_weight),
        "--lcores": (where.lcores, usual.lcores),
        "--method": (where.method, usual.method),
        "--seed": (asked.seed, None),
    }
    changed = [
        word
        for name, (value, default) in options.items()
        if value != default
        for word in (name, str(value))
    ]
    changed += [word for each in where.traffic for word in ("--traffic", each)]
    if not asked.check:
        changed.append("--no-check")
    if not asked.code:
        changed.append("--even-if-same")
    return shlex.join(["linerate", "duel", *words, *changed])
