// SPDX-License-Identifier: BSD-3-Clause
//! When a flow's frames are due: evenly, in bursts, or as recorded in a capture file.

use crate::pacing::{FrameRate, Interval, Schedule};
use crate::replay;

/// How a flow's slots are made. Times are cycles.
#[derive(Clone, Debug)]
pub struct Pace {
    /// From one slot to the next.
    pub tact: Tact,
    /// From the start to the first slot.
    pub delay: Interval,
}

/// From one slot to the next.
#[derive(Clone, Debug)]
pub enum Tact {
    /// Always the same.
    Even {
        /// Frames per second.
        rate: FrameRate,
        /// The same in cycles.
        interval: Interval,
        /// Slots of a burst and the gap after it.
        bursts: Option<(u64, Interval)>,
    },
    /// At the times of a file.
    Recorded(replay::Schedule),
}

/// The slots of a running flow.
#[derive(Clone, Debug)]
pub enum Timetable {
    /// Computed.
    Even(Schedule),
    /// Looked up.
    Recorded {
        /// Time of the first one.
        start: u64,
        /// The slots after it.
        slots: replay::Schedule,
    },
}

impl Pace {
    /// Returns the slots from `start` on. Of flows started together, `part` of `parts` says at
    /// which fraction of its first interval this one begins, so that flows with the same rate do
    /// not all send at the same moment.
    pub fn from(&self, start: u64, part: u64, parts: u64) -> Timetable {
        match &self.tact {
            Tact::Even { interval, bursts, .. } => {
                let start = start.saturating_add(self.delay.whole_cycles());
                let slots = Schedule::new(start, interval.part(part, parts), *interval);
                Timetable::Even(match bursts {
                    Some((len, gap)) => slots.in_bursts(*len, *gap),
                    None => slots,
                })
            }
            Tact::Recorded(slots) => Timetable::Recorded {
                start: start.saturating_add(self.delay.whole_cycles()),
                slots: slots.clone(),
            },
        }
    }

    /// Number of slots within `nanoseconds` of the first; `None` if it must be counted slot by
    /// slot.
    pub fn slots_in(&self, nanoseconds: u64) -> Option<u64> {
        match &self.tact {
            Tact::Even { rate, bursts: None, .. } => Some(rate.frames_in(nanoseconds)),
            _ => None,
        }
    }
}

impl Timetable {
    /// When the next frame is due.
    #[inline]
    pub fn slot(&self) -> u64 {
        match self {
            Timetable::Even(schedule) => schedule.slot(),
            Timetable::Recorded { start, slots } => start.saturating_add(slots.slot()),
        }
    }

    /// Advances to the following slot.
    #[inline]
    pub fn advance(&mut self) {
        match self {
            Timetable::Even(schedule) => schedule.advance(),
            Timetable::Recorded { slots, .. } => slots.advance(),
        }
    }

    /// Postpones all slots.
    pub fn put_off(&mut self, cycles: u64) {
        match self {
            Timetable::Even(schedule) => schedule.put_off(cycles),
            Timetable::Recorded { start, .. } => *start = start.saturating_add(cycles),
        }
    }

    /// Changes an even interval at `now`; recorded slots do not change.
    pub fn set_interval(&mut self, interval: Interval, now: u64) {
        if let Timetable::Even(schedule) = self {
            schedule.set_interval(interval, now);
        }
    }

    /// Changes an even interval before the first slot, which does not move.
    pub fn begin_with(&mut self, interval: Interval) {
        if let Timetable::Even(schedule) = self {
            schedule.begin_with(interval);
        }
    }

    /// Number of slots from the next one up to `now`, at most `limit`.
    pub fn due(&self, now: u64, limit: u64) -> u64 {
        match self {
            Timetable::Even(schedule) => schedule.due(now, limit),
            Timetable::Recorded { start, slots } => {
                let Some(passed) = now.checked_sub(*start) else { return 0 };
                // Slots are in ascending order: find the first later one.
                let (mut from, mut to) = (slots.passed(), slots.passed().saturating_add(limit));
                while from < to {
                    let middle = from + (to - from) / 2;
                    match slots.due(middle) <= passed {
                        true => from = middle + 1,
                        false => to = middle,
                    }
                }
                from - slots.passed()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(mut timetable: Timetable, now: u64, limit: u64) -> u64 {
        let mut slots = 0;
        while slots < limit && timetable.slot() <= now {
            timetable.advance();
            slots += 1;
        }
        slots
    }

    proptest! {
        // What is said to be due is what walking the slots finds.
        #[test]
        fn due_counts_the_slots(
            rate in 1u64..5_000_000, burst in 0u64..7, gap in 0.0f64..3e6, advance in 0u64..40, now in 0u64..20_000_000, limit in 0u64..3000,
        ) {
            let rate = FrameRate::new(rate, 1).unwrap();
            let tact = Tact::Even {
                rate,
                interval: rate.interval(1_000_000_000),
                bursts: (burst > 0).then(|| (burst, Interval::from_nanoseconds(gap, 1_000_000_000))),
            };
            let mut timetable = Pace { tact, delay: Interval::default() }.from(77, 0, 1);
            (0..advance).for_each(|_| timetable.advance());
            prop_assert_eq!(timetable.due(now, limit), count(timetable, now, limit));
        }
    }

    #[test]
    fn bursts_are_followed_by_their_gap() {
        let rate = FrameRate::new(1_000_000, 1).unwrap();
        let tact = Tact::Even {
            rate,
            interval: rate.interval(1_000_000_000),
            bursts: Some((2, Interval::from_nanoseconds(5000.0, 1_000_000_000))),
        };
        let mut timetable = Pace { tact, delay: Interval::default() }.from(0, 0, 1);
        let slots: Vec<u64> = (0..5)
            .map(|_| {
                let slot = timetable.slot();
                timetable.advance();
                slot
            })
            .collect();
        assert_eq!(slots, [0, 1000, 7000, 8000, 14_000]);
    }

    #[test]
    fn a_new_rate_counts_from_the_last_frame() {
        let interval = |pps| FrameRate::new(pps, 1).unwrap().interval(1_000_000_000);
        let start = |pps| {
            let tact = Tact::Even {
                rate: FrameRate::new(pps, 1).unwrap(),
                interval: interval(pps),
                bursts: None,
            };
            let mut timetable = Pace { tact, delay: Interval::default() }.from(0, 0, 1);
            timetable.advance();
            timetable
        };
        // Sent at 0, due again at 1 s. At 0.3 s the flow shall send ten times as fast.
        let mut faster = start(1);
        faster.set_interval(interval(10), 300_000_000);
        assert_eq!(faster.slot(), 300_000_000, "0.1 s after the last one is over already");
        let mut slower = start(10);
        slower.set_interval(interval(1), 50_000_000);
        assert_eq!(slower.slot(), 1_000_000_000);
    }
}
