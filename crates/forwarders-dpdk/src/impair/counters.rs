// SPDX-License-Identifier: BSD-3-Clause
//! Counts of what happened to the frames of a path; its lcore writes them and any thread may read
//! them.

use dpdk::telemetry::Value;
use measure::Cell;

/// Counts of one path's frames. `docs/impair-a-link.md` describes each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    pub(super) received: u64,
    pub(super) duplicated: u64,
    pub(super) sent: u64,
    pub(super) tx_refused: u64,
    pub(super) discarded_at_stop: u64,
    pub(super) held: u64,
    pub(super) dropped_on_purpose: u64,
    pub(super) dropped_delay_full: u64,
    pub(super) dropped_no_mbuf: u64,
    pub(super) corrupted: u64,
    pub(super) reordered: u64,
    pub(super) delayed: u64,
    pub(super) too_short_to_corrupt: u64,
    pub(super) not_duplicated: u64,
}

const FIELDS: usize = 15;
/// A reading of all counts.
pub(super) type Values = [u64; FIELDS];

/// Names of the counts, in the order in which they are printed.
const NAMES: [&str; FIELDS] = [
    "received",
    "duplicated",
    "sent",
    "dropped",
    "tx_refused",
    "discarded_at_stop",
    "held",
    "dropped_on_purpose",
    "dropped_delay_full",
    "dropped_no_mbuf",
    "corrupted",
    "reordered",
    "delayed",
    "too_short_to_corrupt",
    "not_duplicated",
];

impl Counts {
    /// Frames that the path did not pass on, for any reason of its own.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped_on_purpose + self.dropped_delay_full + self.dropped_no_mbuf
    }

    /// In the order of [`NAMES`].
    fn values(&self) -> Values {
        [
            self.received,
            self.duplicated,
            self.sent,
            self.dropped(),
            self.tx_refused,
            self.discarded_at_stop,
            self.held,
            self.dropped_on_purpose,
            self.dropped_delay_full,
            self.dropped_no_mbuf,
            self.corrupted,
            self.reordered,
            self.delayed,
            self.too_short_to_corrupt,
            self.not_duplicated,
        ]
    }
}

/// The counts of one path for other threads to read.
#[repr(align(64))]
pub(super) struct PathCounters {
    /// The port that frames are received on.
    pub(super) rx_port: u16,
    /// The port that they are sent on.
    pub(super) tx_port: u16,
    values: [Cell; FIELDS],
}

impl PathCounters {
    pub(super) fn new(rx_port: u16, tx_port: u16) -> Self {
        Self { rx_port, tx_port, values: [const { Cell::new(0) }; FIELDS] }
    }

    /// Replaces the published counts.
    pub(super) fn show(&self, counts: &Counts) {
        for (shown, value) in self.values.iter().zip(counts.values()) {
            shown.set(value);
        }
    }

    pub(super) fn read(&self) -> Values {
        self.values.each_ref().map(Cell::get)
    }
}

/// Named counts, as in telemetry and in the file.
pub(super) fn entries(values: Values) -> impl Iterator<Item = (&'static str, Value)> {
    NAMES.into_iter().zip(values.map(Value::from))
}

/// The sum over all paths.
pub(super) fn total<'c>(paths: impl IntoIterator<Item = &'c PathCounters>) -> Values {
    paths.into_iter().map(PathCounters::read).fold([0; FIELDS], |mut sum, values| {
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum += value;
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_under_their_names_and_summed() {
        let counts = Counts {
            received: 1,
            duplicated: 2,
            sent: 3,
            tx_refused: 4,
            discarded_at_stop: 5,
            held: 6,
            dropped_on_purpose: 7,
            dropped_delay_full: 8,
            dropped_no_mbuf: 9,
            corrupted: 10,
            reordered: 11,
            delayed: 12,
            too_short_to_corrupt: 13,
            not_duplicated: 14,
        };
        let paths = [PathCounters::new(0, 1), PathCounters::new(1, 0)];
        paths.iter().for_each(|path| path.show(&counts));
        let shown: Vec<String> = entries(total(&paths))
            .map(|(name, value)| match value {
                Value::U64(value) => format!("{name}={}", value / 2),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            shown.join(" "),
            "received=1 duplicated=2 sent=3 dropped=24 tx_refused=4 discarded_at_stop=5 held=6 \
             dropped_on_purpose=7 dropped_delay_full=8 dropped_no_mbuf=9 corrupted=10 reordered=11 \
             delayed=12 too_short_to_corrupt=13 not_duplicated=14"
        );
    }
}
