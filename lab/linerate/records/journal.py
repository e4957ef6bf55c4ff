# SPDX-License-Identifier: BSD-3-Clause
"""The trials of a run in their order: those of earlier sessions are given back, new ones written.

Resuming is replaying. An experiment decides what comes next from its seed and from what its trials
have shown (where the ceiling is, who is limited, where a search goes on). So it walks the same way
from the beginning: `replay` gives back the trials that are on record, and when they are used up the
next one is run and `add`ed. Nothing is run twice, nothing is lost, and no state beside the records
has to be saved or can contradict them. A trial is finished when its line has its newline: a line
that was cut off is no trial, and that trial is run again.

What becomes of a block that was interrupted. A block is one setup at one moment, and only ratios
within it compare (docs/how-it-measures.md#ratios-within-a-block), for between setups the links of a
shared machine jump by factors. The block's other trials are run, on a new setup in a new session;
but no trial is paired with one of another session (`Trial.pairing`). The alternatives are worse. To
pair across the two setups would be what that rule forbids. To repeat the whole block would run
finished trials twice, and then either throw measured ones away or count some arms once more than
others. As it is, an interrupted block costs some arms one of their pairs, whichever the order drawn
from the seed put on the other side of the baseline: that has nothing to do with what they measured,
so it costs precision and no truth. `n` of each comparison says how many pairs there are.
"""

from __future__ import annotations

from collections import deque

from linerate.host.errors import RunError
from linerate.records.trial import RECORDS, RecordWriter, Trial, field


class Journal:
    """One session's way through the records. `trials` are those passed so far, in order."""

    def __init__(
        self, writer: RecordWriter, earlier: list[Trial], session: int, run: str | None = None
    ) -> None:
        """`earlier`: what is in the file; `session`: the number of this one; `run`: the run's id,
        which every new record bears.
        """
        self._writer = writer
        self._earlier = deque(earlier)
        self.session = session
        self._run = run
        self.trials: list[Trial] = []

    def peek(self) -> Trial | None:
        """What `replay` would give back."""
        return self._earlier[0] if self._earlier else None

    def replay(self, **due: object) -> Trial | None:
        """The next trial if an earlier session ran it; None: it is to be run now.

        `due` tells by fields of the record (`records.trial.field`) which trial comes next in the
        run's order. A record of
        another trial is an error (`RunError`): to go on would mix two orders.
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
        """A trial that this session ran: on disk when this returns."""
        if self._earlier:
            raise RunError(f"{RECORDS}, line {len(self.trials) + 1}: a trial that was passed over")
        trial.identity.run = self._run
        self._writer.append(trial)
        self.trials.append(trial)

    def finish(self) -> None:
        """The run has no further trial: then there must be none on record either."""
        if self._earlier:
            raise RunError(
                f"{RECORDS}, line {len(self.trials) + 1}: a trial after the last one of this run",
                "the records were changed, or another version of linerate began the run",
            )


def _told(fields: dict[str, object], names: list[str]) -> str:
    return ", ".join(f"{name} {fields[name]}" for name in names)
