# SPDX-License-Identifier: BSD-3-Clause
"""The trials of a run in their order: those of earlier sessions are returned, new ones written.

Resuming is replaying. An experiment chooses its next trial from its seed and the results of its
trials (the ceiling, the limited arms, the state of a search). So it makes the same choices again
from the beginning: `replay` returns the trials on record, and when they are used up the next one is
run and `add`ed. Nothing is run twice, nothing is lost, and no state beside the records has to be
saved or can contradict them. A trial is finished when its line has its newline: a truncated line is
not a trial, and that trial is run again.

Interrupted blocks. A block is one setup at one moment, and only ratios within it compare
(docs/how-it-measures.md#ratios-within-a-block), because between setups the links of a shared
machine jump by factors. The block's other trials are run, on a new setup in a new session; but no
trial is paired with one of another session (`Trial.pairing`). The alternatives are worse. Pairing
across the two setups would break that rule. Repeating the whole block would run finished trials
twice, and then either discard measured ones or count some arms more often than others. So an
interrupted block costs some arms one of their pairs: those that the order drawn from the seed
separated from the baseline. That is independent of their results, so it costs precision but adds no
bias. `n` of each comparison is the number of pairs.
"""

from __future__ import annotations

from collections import deque

from linerate.host.errors import RunError
from linerate.records.trial import RECORDS, RecordWriter, Trial, field


class Journal:
    """One session's position in the records. `trials`: those passed so far, in order."""

    def __init__(
        self, writer: RecordWriter, earlier: list[Trial], session: int, run: str | None = None
    ) -> None:
        """Begin. `earlier`: the trials in the file; `session`: the number of this session; `run`:
        the run's id, which every new record has.
        """
        self._writer = writer
        self._earlier = deque(earlier)
        self.session = session
        self._run = run
        self.trials: list[Trial] = []

    def peek(self) -> Trial | None:
        """Return the trial that `replay` would return."""
        return self._earlier[0] if self._earlier else None

    def replay(self, **due: object) -> Trial | None:
        """Return the next trial if an earlier session ran it; None if it must be run now.

        `due`: fields of the record (`records.trial.field`) that identify the next trial in the
        run's order. A record of another trial is an error (`RunError`), because two orders would be
        mixed.
        """
        if not self._earlier:
            return None
        found = self._earlier[0]
        there = {name: field(found, name) for name in due}
        if there != due:
            names = [name for name in due if there[name] != due[name]]
            raise RunError(
                f"{RECORDS}, line {len(self.trials) + 1}: a trial with "
                f"{_told(there, names)}, where the order of this run has {_told(due, names)}",
                "the records were changed, or another version of linerate began the run: start a "
                "new one",
            )
        self.trials.append(self._earlier.popleft())
        return found

    def add(self, trial: Trial) -> None:
        """Write a trial of this session; it is on disk when this returns."""
        if self._earlier:
            raise RunError(f"{RECORDS}, line {len(self.trials) + 1}: a trial that was passed over")
        trial.identity.run = self._run
        self._writer.append(trial)
        self.trials.append(trial)

    def finish(self) -> None:
        """Check at the end of the run that no further trial is on record."""
        if self._earlier:
            raise RunError(
                f"{RECORDS}, line {len(self.trials) + 1}: a trial after the last one of this run",
                "the records were changed, or another version of linerate began the run",
            )


def _told(fields: dict[str, object], names: list[str]) -> str:
    return ", ".join(f"{name} {fields[name]}" for name in names)
