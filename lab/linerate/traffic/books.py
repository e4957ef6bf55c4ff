# SPDX-License-Identifier: BSD-3-Clause
"""The books of a trial: every frame is received, or counted in a named counter with a place.

    attempted = accepted + lost_at_ingress + refused
    accepted  = received + forwarder_drops + link_drops + unattributed

Counters are read after the traffic stopped and the link settled, never while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.records.outcome import SOUND_SHARE, Frames
from linerate.records.trial import Trial
from linerate.traffic.sender import Sent

# The largest share of late frames in a valid trial, if the sender does not count disturbed frames
# separately (docs/how-it-measures.md#paced-and-flood).
LATE_LIMIT = 0.001


@dataclass(frozen=True)
class Forwarded:
    """Counters of the forwarder's ports."""

    rx: int
    tx: int

    def since(self, before: Forwarded) -> Forwarded:
        return Forwarded(self.rx - before.rx, self.tx - before.tx)


def unattributed(sent: Sent, forwarded: Forwarded, on_link: int = 0) -> int:
    """Return the accepted frames that are neither received nor among the drops of forwarder and
    link.
    """
    return sent.accepted - sent.received - (forwarded.rx - forwarded.tx) - on_link


def imbalance(sent: Sent) -> int:
    """Return the attempted frames missing from the sender's own counters; 0 in a sound
    generator.
    """
    if sent.attempted is None:
        return 0
    return sent.attempted - sent.accepted - (sent.lost_at_ingress or 0) - (sent.refused or 0)


def enter(
    trial: Trial, sent: Sent, forwarded: Forwarded, on_link: dict[str, int] | None = None
) -> None:
    """Store the figures as the trial's outcome and judge them; reject the trial if a rule is
    broken.

    `on_link`: frames that were lost between the ends, by the counter that names them.
    """
    lost = {place: count for place, count in (on_link or {}).items() if count}
    load = trial.request.load
    apart = _tells_apart(trial)
    trial.outcome = Frames(
        duration_s=sent.seconds,
        intended=sent.intended,
        attempted=sent.attempted,
        accepted=sent.accepted,
        received=sent.received,
        lost_at_ingress=sent.lost_at_ingress,
        refused=sent.refused if load == "flood" else None,
        late=sent.late,
        disturbed_frames=sent.disturbed if apart else None,
        disturbed_lost=sent.disturbed_lost if apart else None,
        pacing_error_ppm=sent.pacing_error_ppm,
        forwarder_rx=forwarded.rx,
        forwarder_tx=forwarded.tx,
        forwarder_drops=forwarded.rx - forwarded.tx,
        link_drops=lost,
        unattributed=unattributed(sent, forwarded, sum(lost.values())),
    )
    if imbalance(sent):
        trial.reject("books", f"the generator's own counters differ by {imbalance(sent)} frames")
    elif sent.accepted == 0:
        trial.reject("idle", "the link accepted no frame")
    elif load in ("paced", "burst"):
        _judge_time(trial, sent)


def _tells_apart(trial: Trial) -> bool:
    """Return True if disturbed frames can be left out: not of a burst, which must have no gap."""
    return trial.request.load == "paced"


def _judge_time(trial: Trial, sent: Sent) -> None:
    """Reject the trial unless enough frames left and arrived in time."""
    if sent.late is None:
        _judge_count(trial, sent)
    elif not sent.attempted:
        return
    elif _tells_apart(trial) and sent.disturbed is not None:
        share = sent.disturbed / sent.attempted
        if share > 1 - SOUND_SHARE:
            trial.reject(
                "late",
                f"{share:.1%} of the frames left or arrived while the generator was kept from its "
                f"CPU (limit {1 - SOUND_SHARE:.0%})",
            )
    elif sent.late / sent.attempted > LATE_LIMIT:
        share = sent.late / sent.attempted
        trial.reject("late", f"{share:.2%} of the frames were sent late (limit {LATE_LIMIT:.1%})")


def _judge_count(trial: Trial, sent: Sent) -> None:
    """Check the count of a sender that does not report lateness against its intended count."""
    if not sent.intended or sent.attempted is None:
        return
    share = sent.attempted / sent.intended - 1
    if abs(share) > LATE_LIMIT:
        why = f"the generator sent {sent.attempted} frames instead of {sent.intended} ({share:+.2%}"
        slow = ": it, or the link that it sends on, is too slow" if share < 0 else ""
        trial.reject("late", f"{why}, limit {LATE_LIMIT:.1%}){slow}")


def checkable(trial: Trial) -> bool:
    """Return True if the trial has books to close."""
    return trial.valid and trial.has_frames and trial.frames.unattributed is not None


def closed(trials: list[Trial]) -> bool:
    """Return True if no frame of any valid trial is unattributed."""
    return all(trial.frames.unattributed == 0 for trial in trials if checkable(trial))
