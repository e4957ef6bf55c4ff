// SPDX-License-Identifier: BSD-3-Clause
//! The delays of a flow's frames, and their variation.
//!
//! A frame's *transit* is the time from its stamp to its arrival without the clock's cost
//! ([`crate::clock::cost`]), in TSC cycles. These are recorded:
//! - the latency itself: minimum, mean, maximum, histogram;
//! - PDV, packet delay variation (RFC 5481, section 4.2): transit minus the minimum of all
//!   transits;
//! - IPDV, inter-packet delay variation (RFC 3393, section 2.4; RFC 5481, section 4.1): the
//!   difference of the transits of two frames with consecutive numbers, if the later one is the
//!   next to arrive after the earlier. For frames that were lost or reordered it is undefined, and
//!   not counted;
//! - interarrival jitter (RFC 3550, section 6.4.1): J grows by (|D| - J)/16 at each frame, where D
//!   is the difference of the transits of two frames in the order of their *arrival*, whatever
//!   their numbers.

use crate::{Cell, Distribution};

/// Delays of a flow's stamped frames, in TSC cycles. One thread writes. Takes 56 KiB.
#[derive(Debug, Default)]
pub struct DelayBooks {
    /// Transits.
    pub latency: Distribution,
    /// Absolute values of IPDV.
    pub ipdv: Distribution,
    /// Frames with a longer transit than the frame before; IPDV above 0.
    pub ipdv_longer: Cell,
    /// Frames with a shorter transit than the frame before; IPDV below 0.
    pub ipdv_shorter: Cell,
    /// RFC 3550's jitter in cycles, as the bits of an `f64`.
    jitter: Cell,
}

impl DelayBooks {
    /// Without histograms: minimum, mean and maximum, and jitter, but no quantiles.
    #[must_use]
    pub fn without_histograms() -> Self {
        let lean = Distribution::without_histogram;
        DelayBooks {
            latency: lean(),
            ipdv: lean(),
            ipdv_longer: Cell::new(0),
            ipdv_shorter: Cell::new(0),
            jitter: Cell::new(0),
        }
    }

    /// RFC 3550's interarrival jitter, in cycles; none before the first frame.
    #[must_use]
    pub fn jitter(&self) -> Option<f64> {
        (self.latency.count() > 0).then(|| f64::from_bits(self.jitter.get()))
    }

    /// The PDV that the share `quantile` (0 to 1) of the frames does not exceed, in cycles: that
    /// quantile of the latency minus its minimum. RFC 5481, section 4.2. None before the first
    /// frame.
    #[must_use]
    pub fn pdv(&self, quantile: f64) -> Option<u64> {
        let least = self.latency.min()?;
        self.latency.quantile(quantile).map(|latency| latency.saturating_sub(least))
    }

    /// Clears everything. Only the writer may call this.
    pub fn clear(&self) {
        self.latency.clear();
        self.ipdv.clear();
        self.ipdv_longer.set(0);
        self.ipdv_shorter.set(0);
        self.jitter.set(0);
    }
}

/// State of the thread that receives a flow: its latest stamped frame.
///
/// ```
/// use measure::{DelayBooks, Delays};
/// let (mut delays, books) = (Delays::default(), DelayBooks::default());
/// delays.see(&books, 0, 1_000);
/// delays.see_row(&books, 1, 2, 1_200);
/// assert_eq!((books.latency.count(), books.latency.mean()), (3, Some(1_133)));
/// assert_eq!((books.ipdv.max(), books.ipdv_longer.get()), (Some(200), 1));
/// assert_eq!(books.pdv(1.0), Some(200));
/// ```
#[derive(Debug, Default)]
pub struct Delays {
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    sequence: u32,
    transit: u64,
    /// True if other frames arrived after it.
    skipped: bool,
}

impl Delays {
    /// The flow starts again. The statistics are left as they are, except the jitter, which
    /// restarts at 0.
    pub fn restart(&mut self) {
        self.last = None;
    }

    /// Frames arrive that are not recorded: the next recorded frame has no IPDV, and adds nothing
    /// to the jitter.
    pub fn skip(&mut self) {
        if let Some(last) = &mut self.last {
            last.skipped = true;
        }
    }

    /// Records a frame with a transit of `transit` cycles.
    #[inline]
    pub fn see(&mut self, books: &DelayBooks, sequence: u32, transit: u64) {
        self.see_row(books, sequence, 1, transit);
    }

    /// Records `count` frames with consecutive numbers from `first` on that were sent at one time
    /// and arrived at one time, as fast as one frame. The result is the same as one by one; for the
    /// jitter, to the precision of an `f64`.
    #[inline]
    pub fn see_row(&mut self, books: &DelayBooks, first: u32, count: u32, transit: u64) {
        if count == 0 {
            return;
        }
        let equal = count - 1;
        books.latency.add(transit, u64::from(count));
        let mut jitter = 0.0;
        if let Some(Last { skipped: true, .. }) = self.last {
            jitter = decline(f64::from_bits(books.jitter.get()), equal);
        } else if let Some(last) = self.last {
            let difference = transit.abs_diff(last.transit);
            let before = f64::from_bits(books.jitter.get());
            jitter = decline(before + (difference as f64 - before) / 16.0, equal);
            if first == last.sequence.wrapping_add(1) {
                books.ipdv.add(difference, 1);
                books.ipdv_longer.add(u64::from(transit > last.transit));
                books.ipdv_shorter.add(u64::from(transit < last.transit));
            }
        }
        books.jitter.set(jitter.to_bits());
        books.ipdv.add(0, u64::from(equal));
        self.last = Some(Last { sequence: first.wrapping_add(equal), transit, skipped: false });
    }
}

/// The jitter after `equal` differences of 0, each of which reduces it by a sixteenth.
#[inline]
fn decline(jitter: f64, equal: u32) -> f64 {
    const LEFT: f64 = 15.0 / 16.0;
    const POWERS: [f64; 32] = {
        let (mut powers, mut i) = ([1.0; 32], 1);
        while i < powers.len() {
            powers[i] = powers[i - 1] * LEFT;
            i += 1;
        }
        powers
    };
    match POWERS.get(equal as usize) {
        Some(power) => jitter * power,
        None => jitter * LEFT.powf(f64::from(equal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(books: &DelayBooks) -> [u64; 10] {
        let figures = |values: &Distribution| {
            [values.count(), values.sum(), values.min().unwrap_or(7), values.max().unwrap_or(7)]
        };
        let [a, b, c, d] = figures(&books.latency);
        let [e, f, g, h] = figures(&books.ipdv);
        let signs = (books.ipdv_longer.get(), books.ipdv_shorter.get());
        [a, b, c, d, e, f, g, h, signs.0, signs.1]
    }

    #[test]
    fn the_first_frame_adds_nothing_to_the_jitter() {
        let (mut delays, books) = (Delays::default(), DelayBooks::default());
        assert_eq!((books.jitter(), books.pdv(0.5)), (None, None));
        delays.see_row(&books, 0, 5, 160_000);
        assert_eq!((books.jitter(), books.pdv(0.5)), (Some(0.0), Some(0)));
        delays.see(&books, 5, 160_016);
        assert_eq!(books.jitter(), Some(1.0), "a sixteenth of the difference");
        delays.see(&books, 6, 160_000);
        assert_eq!(books.jitter(), Some(1.9375), "1 + (16 - 1)/16");
    }

    #[test]
    fn lost_and_reordered_frames_have_no_ipdv() {
        let (mut delays, books) = (Delays::default(), DelayBooks::default());
        for (sequence, transit) in [(u32::MAX, 100), (0, 130), (2, 500), (1, 90), (2, 80)] {
            delays.see(&books, sequence, transit);
        }
        // u32::MAX to 0, and 1 to 2.
        assert_eq!((books.ipdv.count(), books.ipdv.sum()), (2, 30 + 10));
        assert_eq!((books.ipdv_longer.get(), books.ipdv_shorter.get()), (1, 1));
        assert_eq!(books.pdv(1.0), Some(420));
    }

    #[test]
    fn a_frame_after_skipped_ones_has_no_neighbour() {
        let (mut delays, books) = (Delays::default(), DelayBooks::default());
        delays.skip();
        delays.see_row(&books, 0, 2, 1000);
        delays.see(&books, 2, 1016);
        delays.skip();
        delays.see(&books, 3, 9000);
        assert_eq!((books.jitter(), books.ipdv.count(), books.ipdv.sum()), (Some(1.0), 2, 16));
        delays.see(&books, 4, 9016);
        assert_eq!((books.jitter(), books.ipdv.count()), (Some(1.9375), 3));
    }

    #[test]
    fn a_restart_starts_the_jitter_at_nothing() {
        let (mut delays, books) = (Delays::default(), DelayBooks::default());
        delays.see(&books, 0, 10);
        delays.see(&books, 1, 900);
        delays.restart();
        delays.see(&books, 2, 10);
        assert_eq!((books.jitter(), books.ipdv.count()), (Some(0.0), 1));
        books.clear();
        assert_eq!(read(&books), [0, 0, 7, 7, 0, 0, 7, 7, 0, 0]);
        assert_eq!(books.jitter.get(), 0);
    }

    /// Rows of frames: whether the first follows on, how many, their transit.
    fn rows() -> impl Strategy<Value = Vec<(u32, u32, u64)>> {
        let transit = prop_oneof![1_000u64..1_300, 0u64..1 << 33, Just(0)];
        prop::collection::vec((0u32..3, 0u32..70, transit), 1..40)
    }

    proptest! {
        #[test]
        fn a_row_is_its_frames(rows in rows(), start: u32) {
            let (mut single, singles) = (Delays::default(), DelayBooks::default());
            let (mut row, row_books) = (Delays::default(), DelayBooks::default());
            let mut next = start;
            for (skipped, count, transit) in rows {
                let first = next.wrapping_add(skipped);
                next = first.wrapping_add(count);
                for frame in 0..count {
                    single.see(&singles, first.wrapping_add(frame), transit);
                }
                row.see_row(&row_books, first, count, transit);
                prop_assert_eq!(read(&row_books), read(&singles));
                let [a, b] = [&row_books, &singles].map(|books| books.jitter().unwrap_or(0.0));
                prop_assert!((a - b).abs() <= 1e-9 * b, "{a} {b}");
            }
            for quantile in [0.01, 0.5, 0.99] {
                prop_assert_eq!(row_books.pdv(quantile), singles.pdv(quantile));
                prop_assert_eq!(
                    row_books.ipdv.quantile(quantile), singles.ipdv.quantile(quantile));
            }
        }

        #[test]
        fn the_figures_are_those_of_the_definitions(
            frames in prop::collection::vec((0u32..4, 0u64..1 << 30), 1..80),
        ) {
            let (mut delays, books) = (Delays::default(), DelayBooks::default());
            for (sequence, transit) in &frames {
                delays.see(&books, *sequence, *transit);
            }
            let differences: Vec<(bool, i64)> = frames
                .windows(2)
                .map(|two| (two[1].0 == two[0].0 + 1, two[1].1 as i64 - two[0].1 as i64))
                .collect();
            let ipdv: Vec<i64> =
                differences.iter().filter(|(follows, _)| *follows).map(|(_, d)| *d).collect();
            prop_assert_eq!(books.ipdv.count(), ipdv.len() as u64);
            prop_assert_eq!(books.ipdv.sum(), ipdv.iter().map(|d| d.unsigned_abs()).sum::<u64>());
            let longer = ipdv.iter().filter(|d| **d > 0).count() as u64;
            prop_assert_eq!(books.ipdv_longer.get(), longer);
            let shorter = ipdv.iter().filter(|d| **d < 0).count() as u64;
            prop_assert_eq!(books.ipdv_shorter.get(), shorter);
            // The formula of section 6.4.1 itself.
            let jitter = differences.iter().fold(0.0, |j, (_, d)| j + (d.abs() as f64 - j) / 16.0);
            prop_assert!((books.jitter().unwrap() - jitter).abs() <= 1e-9 * jitter);
            let least = frames.iter().map(|(_, transit)| transit).min().unwrap();
            let most = frames.iter().map(|(_, transit)| transit).max().unwrap();
            prop_assert_eq!(books.pdv(1.0), Some(most - least));
        }
    }
}
