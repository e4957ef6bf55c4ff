// SPDX-License-Identifier: BSD-3-Clause
//! The effects in their order, and the counts of what they did.

use super::counters::Counts;
use super::delay::Delay;
use super::every::{Every, Random};
use super::frame::{Flipped, Frame};
use super::options::Options;
use super::reorder::Reorder;

/// Where the jitter's numbers come from without `--random`.
const JITTER_SEED: u64 = 0;

/// The effects on the frames of one path.
pub(super) struct Effects<F: Frame> {
    drop: Option<Every>,
    corrupt: Option<(Every, i32)>,
    duplicate: Option<Every>,
    reorder: Option<Reorder<F>>,
    delay: Option<Delay<F>>,
    spare: F::Spare,
    pub(super) counts: Counts,
}

impl<F: Frame> Effects<F> {
    /// The effects that the options request on the path from `rx_port`. `hz` is the TSC's rate; all
    /// memory for held frames is allocated here.
    pub(super) fn new(options: &Options, rx_port: u16, hz: u64, spare: F::Spare) -> Self {
        // Each rule and each path has its own random numbers: adding a rule changes nothing for the
        // others.
        let random = |rule: u64, seed: u64| Random::new(seed, u64::from(rx_port) << 8 | rule);
        let every =
            |rule: u64, n: u32| Every::new(n.into(), options.random.map(|seed| random(rule, seed)));
        let cycles = |microseconds: u32| {
            (u128::from(microseconds) * u128::from(hz)).div_ceil(1_000_000) as u64
        };
        Self {
            drop: options.drop.map(|n| every(0, n)),
            corrupt: options.corrupt.map(|rule| (every(1, rule.every), rule.offset)),
            duplicate: options.duplicate.map(|n| every(2, n)),
            reorder: options.reorder.map(|rule| Reorder::new(every(3, rule.every), rule.distance)),
            delay: options.delay.map(|rule| {
                let random = random(4, options.random.unwrap_or(JITTER_SEED));
                Delay::new(
                    cycles(rule.microseconds),
                    cycles(rule.jitter),
                    random,
                    options.hold as usize,
                )
            }),
            spare,
            counts: Counts::default(),
        }
    }

    /// Processes a frame that was received at TSC `now`; frames that leave at once go to `out`.
    #[inline]
    pub(super) fn take(&mut self, mut frame: F, now: u64, out: &mut impl FnMut(F)) {
        self.counts.received += 1;
        if self.drop.as_mut().is_some_and(Every::hits) {
            self.counts.dropped_on_purpose += 1;
            return;
        }
        if let Some((every, offset)) = &mut self.corrupt {
            if every.hits() {
                frame = match frame.flip(*offset, &self.spare) {
                    Flipped::Done(frame) => {
                        self.counts.corrupted += 1;
                        frame
                    }
                    Flipped::TooShort(frame) => {
                        self.counts.too_short_to_corrupt += 1;
                        frame
                    }
                    Flipped::Lost => {
                        self.counts.dropped_no_mbuf += 1;
                        return;
                    }
                };
            }
        }
        let mut copy = None;
        if self.duplicate.as_mut().is_some_and(Every::hits) {
            copy = frame.copy(&self.spare);
            match copy {
                Some(_) => self.counts.duplicated += 1,
                None => self.counts.not_duplicated += 1,
            }
        }
        self.pass(frame, now, out);
        if let Some(copy) = copy {
            self.pass(copy, now, out);
        }
    }

    /// Counts a frame that was received and could not be prepared because the pool had no mbuf.
    #[cold]
    pub(super) fn lose(&mut self) {
        self.counts.received += 1;
        self.counts.dropped_no_mbuf += 1;
    }

    /// Reorders and delays.
    #[inline]
    fn pass(&mut self, frame: F, now: u64, out: &mut impl FnMut(F)) {
        let Self { reorder, delay, counts, .. } = self;
        let Some(reorder) = reorder else { return hold(delay, counts, frame, now, out) };
        let late = reorder.pass(frame, |frame| hold(delay, counts, frame, now, out));
        self.counts.reordered += u64::from(late);
    }

    /// Passes every frame whose delay is over to `out`.
    #[inline]
    pub(super) fn release(&mut self, now: u64, out: &mut impl FnMut(F)) {
        let Some(delay) = &mut self.delay else { return };
        while let Some(frame) = delay.release(now) {
            out(frame);
        }
    }

    /// Ends all holding: frames held back for others to overtake are passed on; frames in their
    /// delay are discarded, because they would leave too early.
    pub(super) fn end(&mut self, now: u64, out: &mut impl FnMut(F)) {
        let Self { reorder, delay, counts, .. } = self;
        for frame in reorder.iter_mut().flat_map(Reorder::end) {
            hold(delay, counts, frame, now, out);
        }
        counts.discarded_at_stop += delay.as_mut().map_or(0, Delay::end) as u64;
    }

    /// Records how many frames are held now.
    pub(super) fn count_held(&mut self) {
        let late = self.reorder.as_ref().map_or(0, Reorder::held);
        self.counts.held = (late + self.delay.as_ref().map_or(0, Delay::held)) as u64;
    }
}

/// Holds a frame for its delay, if there is one.
#[inline]
fn hold<F>(
    delay: &mut Option<Delay<F>>,
    counts: &mut Counts,
    frame: F,
    now: u64,
    out: &mut impl FnMut(F),
) {
    match delay {
        None => out(frame),
        Some(delay) => match delay.hold(frame, now) {
            Ok(()) => counts.delayed += 1,
            Err(_) => counts.dropped_delay_full += 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::place;
    use super::super::options::{Corrupt, Delaying, Reordering};
    use super::*;

    /// A frame of plain bytes. Copies can run out.
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Bytes(Vec<u8>);

    impl Frame for Bytes {
        type Spare = bool;

        fn copy(&self, spare: &bool) -> Option<Self> {
            spare.then(|| self.clone())
        }

        fn flip(mut self, offset: i32, _: &bool) -> Flipped<Self> {
            match place(offset, self.0.len()) {
                Some(place) => {
                    self.0[place] ^= 1;
                    Flipped::Done(self)
                }
                None => Flipped::TooShort(self),
            }
        }
    }

    const HZ: u64 = 1_000_000_000;

    /// Sends frames of one byte, 2, 4, .., through; a frame each microsecond.
    fn pass(options: &Options, frames: u8) -> (Vec<u8>, Counts) {
        let mut effects = Effects::new(options, 0, HZ, true);
        let mut left = Vec::new();
        let mut out = |frame: Bytes| left.push(frame.0[0]);
        for frame in 1..=frames {
            let now = u64::from(frame) * 1000;
            effects.release(now, &mut out);
            effects.take(Bytes(vec![2 * frame]), now, &mut out);
        }
        effects.end(u64::MAX, &mut out);
        effects.count_held();
        (left, effects.counts)
    }

    #[test]
    fn each_rule_counts_what_the_one_before_it_lets_pass() {
        let options = Options {
            drop: Some(3),                                       // 3, 6, 9, 12
            corrupt: Some(Corrupt { every: 4, offset: 0 }),      // 5, 11
            duplicate: Some(5),                                  // 7
            reorder: Some(Reordering { every: 6, distance: 1 }), // the second 7
            ..Options::default()
        };
        let (left, counts) = pass(&options, 12);
        assert_eq!(left, [2, 4, 8, 11, 14, 16, 14, 20, 23]);
        let expected = Counts {
            received: 12,
            dropped_on_purpose: 4,
            corrupted: 2,
            duplicated: 1,
            reordered: 1,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn what_is_in_its_delay_at_the_end_is_discarded_and_what_finds_no_room_dropped() {
        let delay = Some(Delaying { microseconds: 3, jitter: 0 });
        let options = Options { delay, hold: 2, ..Options::default() };
        let (left, counts) = pass(&options, 7);
        // 1 and 2 are held when 3 comes; 1 leaves just before 4 comes, 2 before 5.
        assert_eq!(left, [2, 4, 8]);
        assert_eq!((counts.delayed, counts.dropped_delay_full), (5, 2));
        assert_eq!((counts.discarded_at_stop, counts.held), (2, 0));
    }

    #[test]
    fn what_cannot_be_done_is_counted_and_the_frame_goes_on() {
        let corrupt = Some(Corrupt { every: 1, offset: 1 });
        let options = Options { corrupt, duplicate: Some(2), ..Options::default() };
        let mut effects = Effects::new(&options, 0, HZ, false);
        let mut left = 0;
        for _ in 0..4 {
            effects.take(Bytes(vec![0]), 0, &mut |frame| {
                assert_eq!(frame.0, [0]);
                left += 1;
            });
        }
        let counts = effects.counts;
        assert_eq!((left, counts.too_short_to_corrupt, counts.not_duplicated), (4, 4, 2));
        assert_eq!((counts.corrupted, counts.duplicated), (0, 0));
    }

    prop_compose! {
        fn options()(
            drop in prop::option::of(1u32..9),
            corrupt in prop::option::of((1u32..9, -3i32..3)),
            duplicate in prop::option::of(1u32..9),
            reorder in prop::option::of((1u32..9, 1u32..9)),
            delay in prop::option::of((0u32..20, 0u32..20)),
            hold in 1u32..20,
            random: Option<u64>,
        ) -> Options {
            Options {
                drop,
                corrupt: corrupt.map(|(every, offset)| Corrupt { every, offset }),
                duplicate,
                reorder: reorder.map(|(every, distance)| Reordering { every, distance }),
                delay: delay.map(|(microseconds, jitter)| Delaying { microseconds, jitter }),
                hold,
                random,
                ..Options::default()
            }
        }
    }

    proptest! {
        #[test]
        fn the_books_close_at_every_moment(options in options(), frames in 0u64..100, spare: bool) {
            let mut effects = Effects::new(&options, 0, HZ, spare);
            let mut left = 0;
            for frame in 0..=frames {
                let now = frame * 1000;
                effects.release(now, &mut |_| left += 1);
                if frame < frames {
                    effects.take(Bytes(vec![frame as u8; 2]), now, &mut |_| left += 1);
                } else {
                    effects.end(now, &mut |_| left += 1);
                }
                effects.count_held();
                let counts = &effects.counts;
                prop_assert_eq!(
                    counts.received + counts.duplicated,
                    left + counts.dropped() + counts.discarded_at_stop + counts.held
                );
            }
            prop_assert_eq!(effects.counts.held, 0);
            prop_assert_eq!(effects.counts.received, frames);
        }
    }
}
