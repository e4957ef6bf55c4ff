# SPDX-License-Identifier: BSD-3-Clause
"""Books: when they are closed, and what makes a trial invalid."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Literal

from conftest import simulated_trial

from linerate.records.cells import Cell
from linerate.records.trial import Trial
from linerate.traffic import books
from linerate.traffic.books import Forwarded
from linerate.traffic.sender import Sent

SENT = Sent(attempted=100, accepted=80, received=70, refused=20, lost_at_ingress=0)


def blank(load: Literal["flood", "paced"]) -> Trial:
    trial = simulated_trial(
        random.Random(1), "c-l2fwd", "c-l2fwd", Cell("memif", 64, 1), block=0, position=0
    )
    trial.request.load = load
    trial.frames.refused = None
    return trial


def test_a_flood_that_closes() -> None:
    trial = blank("flood")
    books.enter(trial, SENT, Forwarded(rx=80, tx=70))
    assert (trial.frames.forwarder_drops, trial.frames.unattributed, trial.frames.refused) == (
        10,
        0,
        20,
    )
    assert trial.valid
    assert books.closed([trial])


def test_a_missing_frame_is_shown() -> None:
    trial = blank("flood")
    books.enter(trial, SENT, Forwarded(rx=79, tx=70))
    assert trial.frames.unattributed == 1
    assert not books.closed([trial])


def test_what_the_link_lost_is_named_and_closes_them() -> None:
    trial = blank("flood")
    lost = {
        "generator not sent": 3,
        "forwarder not received": 0,
        "forwarder port 0 imissed": 7,
    }
    books.enter(trial, SENT, Forwarded(rx=70, tx=70), lost)
    assert trial.frames.link_drops == {"generator not sent": 3, "forwarder port 0 imissed": 7}
    assert trial.frames.unattributed == 0
    assert books.closed([trial])


def test_refused_is_a_word_for_floods() -> None:
    trial = blank("paced")
    books.enter(trial, replace(SENT, refused=0, lost_at_ingress=20), Forwarded(80, 70))
    assert trial.frames.refused is None
    assert trial.frames.lost_at_ingress == 20


def test_counters_that_contradict_each_other_are_invalid() -> None:
    trial = blank("flood")
    books.enter(trial, replace(SENT, refused=19), Forwarded(80, 70))
    assert "differ by 1 frames" in (trial.invalid_why or "")


def test_a_late_sender_is_invalid() -> None:
    sent = Sent(attempted=10_000, accepted=10_000, received=10_000, lost_at_ingress=0, late=11)
    trial = blank("paced")
    books.enter(trial, sent, Forwarded(10_000, 10_000))
    assert "late" in (trial.invalid_why or "")
    trial = blank("paced")
    books.enter(trial, replace(sent, late=10), Forwarded(10_000, 10_000))
    assert trial.valid


def test_disturbed_frames_void_a_window_when_they_are_most_of_it() -> None:
    sent = Sent(
        attempted=10_000, intended=10_000, accepted=10_000, received=9_990, lost_at_ingress=0,
        late=900, disturbed=5_000, disturbed_lost=8,
    )  # fmt: skip
    trial = blank("paced")
    books.enter(trial, sent, Forwarded(10_000, 9_990))
    assert trial.valid
    # Two frames were lost outside of the disturbance.
    assert trial.frames.undisturbed == (5_000, 4_998)
    trial = blank("paced")
    books.enter(trial, replace(sent, disturbed=5_001), Forwarded(10_000, 9_990))
    assert (trial.invalid_code, "limit 50%" in (trial.invalid_why or "")) == ("late", True)


def test_a_burst_is_judged_by_every_late_frame() -> None:
    sent = Sent(
        attempted=10_000, intended=10_000, accepted=10_000, received=9_990, lost_at_ingress=0,
        late=11, disturbed=30, disturbed_lost=8,
    )  # fmt: skip
    trial = blank("paced")
    trial.request.load = "burst"
    books.enter(trial, sent, Forwarded(10_000, 9_990))
    assert trial.invalid_code == "late"
    assert (trial.frames.disturbed_frames, trial.frames.undisturbed) == (None, (10_000, 9_990))


def test_nothing_accepted_is_invalid_not_zero() -> None:
    trial = blank("flood")
    books.enter(trial, Sent(attempted=10, accepted=0, received=0, refused=10), Forwarded(0, 0))
    assert trial.invalid_why == "the link accepted no frame"


def test_invalid_trials_have_no_books() -> None:
    trial = blank("flood")
    books.enter(trial, SENT, Forwarded(rx=79, tx=70))
    trial.reject("ended", "killed")
    assert books.closed([trial])
    assert not books.checkable(trial)


def test_a_foreign_sender_may_know_less() -> None:
    trial = blank("flood")
    books.enter(trial, Sent(accepted=80, received=70), Forwarded(rx=80, tx=70))
    assert trial.valid
    assert (trial.frames.attempted, trial.frames.lost_at_ingress, trial.frames.duration_s) == (
        None,
        None,
        None,
    )
    assert (trial.frames.forwarder_drops, trial.frames.unattributed) == (10, 0)


def test_the_first_reason_stays() -> None:
    trial = blank("flood")
    trial.reject("idle", "nothing came")
    trial.reject("starved", "no CPU")
    assert (trial.invalid_code, trial.invalid_why) == ("idle", "nothing came")
