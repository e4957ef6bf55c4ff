# SPDX-License-Identifier: BSD-3-Clause
"""Records of the trials of real comparisons, so that hours of them can be split into several calls.

A comparison begins with the trial at position 0, and is complete if another one follows. The last
one of a file may be incomplete: it is removed and made again, whatever it found.

The session in which the records were begun is stored beside them: machine, memory, and the digests
of the programs. Records of another session are refused, because they describe programs that no
longer exist.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from linerate.forwarders import forwarder
from linerate.host.errors import RunError
from linerate.records.output import write_atomically
from linerate.records.run_file import Session
from linerate.records.trial import RecordWriter, Trial, dump, first_complaint, scan
from linerate.runs.provenance import changed_definitions, changed_programs, deciding
from linerate_bench.trust.comparison import TESTED

# Seed, link, and the forwarder under test.
Key = tuple[int, str, str]


class Kept:
    """One file of records; one writer per file."""

    def __init__(self, path: Path, session: Session) -> None:
        """`session`: that of the next trials, after `prepare` of all forwarders.

        Raises `RunError` for a file with something else in it, and for trials of other programs or
        of another machine.
        """
        trials = scan(path).trials if path.exists() else []
        begun = session_file(path)
        if trials:
            _refuse_others(path, trials, session)
        if not trials or not begun.exists():
            write_atomically(begun, session.model_dump_json(indent=2, exclude_none=True) + "\n")
        comparisons = _split(trials)
        if comparisons:
            comparisons.pop()
            whole = "".join(f"{dump(trial)}\n" for each in comparisons for trial in each)
            write_atomically(path, whole)
        self._found = {key: each for each in comparisons if (key := _key(each))}
        self._writer = RecordWriter(path)

    def found(self, seed: int, link: str, tested: str) -> list[Trial]:
        """Return the trials of a recorded comparison; empty if it is not recorded."""
        return self._found.get((seed, link, tested), [])

    def append(self, trial: Trial) -> None:
        self._writer.append(trial)

    def close(self) -> None:
        self._writer.close()


def session_file(records: Path) -> Path:
    """Return the path of the session that is stored beside these records."""
    return records.with_name(f"{records.stem}-session.json")


def _refuse_others(path: Path, trials: list[Trial], session: Session) -> None:
    found = _told_by(trials, session)
    if session_file(path).exists():
        first = _read(session_file(path))
        found += [f"{name}: another build" for name in changed_programs(first, session)]
        found += [f"{name}: another definition" for name in changed_definitions(first, session)]
        found += deciding(first, session)
    if found:
        raise RunError(
            f"{path}: not of these programs and this machine: {'; '.join(dict.fromkeys(found))}",
            "name another file, or remove this one: then all comparisons are made anew",
        )


def _told_by(trials: list[Trial], session: Session) -> list[str]:
    """Return the contradictions between trials and session; used if no session is stored beside the
    records.
    """
    memories = {trial.program.memory for trial in trials if trial.program.memory} - {session.memory}
    rebuilt = {
        trial.forwarder
        for trial in trials
        if trial.program.build and trial.program.build != forwarder(trial.forwarder).build_facts()
    }
    return [
        *(f"{name}: another build" for name in sorted(rebuilt)),
        *(f"memory: {memory} and {session.memory}" for memory in memories),
    ]


def _read(path: Path) -> Session:
    try:
        return Session.model_validate_json(path.read_bytes())
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        raise RunError(f"{path}: {first_complaint(error)}", "the file was changed") from error


def _split(trials: list[Trial]) -> list[list[Trial]]:
    found: list[list[Trial]] = []
    for trial in trials:
        if trial.position == 0 or not found:
            found.append([])
        found[-1].append(trial)
    return found


def _key(trials: list[Trial]) -> Key | None:
    for trial in trials:
        if trial.arm == TESTED:
            return trial.seed, trial.cell.name, trial.forwarder
    return None
