// SPDX-License-Identifier: BSD-3-Clause
//! The rows of flows' tagged metrics, put together from the books of all threads that receive.

use std::collections::BTreeMap;

use super::Active;
use super::figures::with_fcs;
use crate::books::Books;
use crate::books::rows::{Counts, Key, Rows};
use crate::engine::Settings;
use crate::otg::metrics::{TagValue, TaggedFigures, Traffic};
use crate::plan::PortPlan;
use crate::tags::{RX_NAME, Tags};

/// Counters that are sampled per row: frames and bytes.
const PER_ROW: usize = 2;
/// The value of every tag in the row of frames that found no row of their own.
const OTHER: &str = "other";
/// The value of tags whose field received frames do not have.
const ABSENT: &str = "absent";

/// What is known of a row so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    tx: Traffic,
    rx: Traffic,
    /// TSC of the first and the last frame received.
    times: Option<(u64, u64)>,
    /// In how many of the tables that are full it has a row.
    in_full: usize,
}

/// Which way frames of a table went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sent,
    Received,
}

impl Sum {
    fn add(&mut self, way: Way, counts: &Counts, rates: (f64, f64)) {
        let frames = counts.frames.get();
        let traffic = match way {
            Way::Sent => &mut self.tx,
            Way::Received => &mut self.rx,
        };
        traffic.frames += frames;
        traffic.bytes += with_fcs(counts.bytes.get(), frames);
        traffic.frame_rate += rates.0;
        traffic.byte_rate += rates.1;
        if frames > 0 && way == Way::Received {
            let (first, last) = (counts.first_tsc.get(), counts.last_tsc.get());
            let (least, most) = self.times.unwrap_or((first, last));
            self.times = Some((least.min(first), most.max(last)));
        }
    }

    /// Adds a row that may be incomplete to that of all others.
    fn take(&mut self, row: &Sum) {
        for (own, more) in [(&mut self.tx, &row.tx), (&mut self.rx, &row.rx)] {
            own.frames += more.frames;
            own.bytes += more.bytes;
            own.frame_rate += more.frame_rate;
            own.byte_rate += more.byte_rate;
        }
        let both = self.times.zip(row.times);
        let both = both.map(|(own, more)| (own.0.min(more.0), own.1.max(more.1)));
        self.times = both.or(self.times).or(row.times);
    }
}

/// The rows of a flow: those of the thread that sends it, if it has any, and those of each thread that receives.
fn tables(books: &Books, flow: usize) -> impl Iterator<Item = (Way, &Rows)> {
    let sent = books.tx.get(flow).and_then(|books| books.tagged.as_ref()?.rows());
    let received = books.rx.iter().filter_map(move |books| books.flows.get(flow)?.rows.as_deref());
    sent.map(|rows| (Way::Sent, rows)).into_iter().chain(received.map(|rows| (Way::Received, rows)))
}

/// Counters of rows whose rates are reported: always the same number, in the same order.
pub(super) fn counters(books: &Books, all: &mut Vec<u64>) {
    let mut add = |counts: &Counts| {
        let frames = counts.frames.get();
        all.extend([frames, with_fcs(counts.bytes.get(), frames)]);
    };
    for (_, rows) in (0..books.tx.len()).flat_map(|flow| tables(books, flow)) {
        // There may be more rows at any moment.
        let mut used = 0;
        for (_, counts) in rows.iter() {
            add(counts);
            used += 1;
        }
        let none = Counts::default();
        (used..rows.most()).for_each(|_| add(&none));
        add(rows.other());
    }
}

/// For each flow, where the counters of its rows begin among those of [`counters`].
pub(super) fn places(books: &Books) -> Vec<usize> {
    let place = |next: &mut usize, flow: usize| {
        let own: usize = tables(books, flow).map(|(_, rows)| PER_ROW * (rows.most() + 1)).sum();
        Some(std::mem::replace(next, *next + own))
    };
    (0..books.tx.len()).scan(0, place).collect()
}

/// Adds the rows of a flow to `sums`, and returns the row of all others. `rate` has the rates of the flow's counters.
fn add_up(
    books: &Books,
    flow: usize,
    sums: &mut BTreeMap<Key, Sum>,
    rate: impl Fn(usize) -> f64,
) -> Sum {
    let (mut at, mut full, mut other) = (0, 0, Sum::default());
    for (way, rows) in tables(books, flow) {
        let rates = |row: usize| (rate(at + PER_ROW * row), rate(at + PER_ROW * row + 1));
        let is_full = rows.other().frames.get() > 0;
        full += usize::from(is_full);
        for (row, (key, counts)) in rows.iter().enumerate() {
            let sum = sums.entry(key).or_default();
            sum.add(way, counts, rates(row));
            sum.in_full += usize::from(is_full);
        }
        other.add(way, rows.other(), rates(rows.most()));
        at += PER_ROW * (rows.most() + 1);
    }
    // If a table is full, values that have no row there may have frames among its others.
    sums.retain(|_, sum| {
        let whole = sum.in_full == full;
        if !whole {
            other.take(sum);
        }
        whole
    });
    other
}

impl Active<'_> {
    /// The rows of a flow, by the values of its tags; `None` if it has no tags.
    pub(super) fn tagged_figures(
        &self,
        index: usize,
        settings: &Settings,
    ) -> Option<Vec<TaggedFigures>> {
        let flow = self.plan.flows.get(index)?;
        let tags = flow.tags.as_deref()?;
        let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
        if tags.only_ports() {
            // Ports where nothing has arrived have rows too.
            let all = 0..self.plan.ports.len();
            let own = all.filter(|port| flow.rx_mask() & 1 << (port & 63) != 0);
            sums.extend(own.map(|port| (tags.at_port(port), Sum::default())));
        }
        let at = self.sampled_before_rows() + self.row_places.get(index).copied()?;
        let other =
            add_up(&self.books, index, &mut sums, |counter| self.sampler.rate(at + counter));
        let began = self.books.tx.get(index)?.began_tsc.get();
        let since = |tsc: u64| settings.nanoseconds(tsc.saturating_sub(began)) as f64;
        // Frames that come again are not told apart by rows.
        let duplicates = self.books.rx_sum(index, |rx| rx.sequence.duplicates.get());
        let (ratio, loss) = (flow.metrics.rx_tx_ratio, flow.metrics.loss);
        let lossy = loss && tags.count_sent() && (duplicates == 0 || ratio > 1.0);
        let lost = |sum: &Sum| {
            let expected = sum.tx.frames as f64 * ratio;
            let missing = (expected - sum.rx.frames as f64).max(0.0);
            (expected > 0.0).then(|| missing * 100.0 / expected)
        };
        let figures = |tag_values: Vec<(String, TagValue)>, sum: Sum| TaggedFigures {
            tags: tag_values,
            tx: tags.count_sent().then_some(sum.tx),
            rx: sum.rx,
            loss_percent: lost(&sum).filter(|_| lossy),
            timestamps_ns: sum
                .times
                .filter(|_| flow.metrics.timestamps)
                .map(|(first, last)| (since(first), since(last))),
        };
        let values = |key: &Key| values(tags, key, &self.plan.ports);
        let mut all: Vec<_> = sums.iter().map(|(key, sum)| figures(values(key), *sum)).collect();
        if other.tx.frames + other.rx.frames > 0 {
            let word = |name: &str| (name.to_owned(), TagValue::Text(OTHER.to_owned()));
            all.push(figures(tags.names().map(word).collect(), other));
        }
        Some(all)
    }
}

/// The tags of a row: names and values.
fn values(tags: &Tags, key: &Key, ports: &[PortPlan]) -> Vec<(String, TagValue)> {
    let value = |value: Option<u128>| match value {
        Some(bits) => TagValue::Bits(bits),
        None => TagValue::Text(ABSENT.to_owned()),
    };
    let fields = tags.fields.iter().zip(tags.values(key));
    let mut values: Vec<_> = fields.map(|(tag, bits)| (tag.name.clone(), value(bits))).collect();
    if tags.rx_name {
        let port = usize::try_from(key.port).ok().and_then(|port| ports.get(port.checked_sub(1)?));
        let name = port.map_or_else(String::new, |port| port.name.clone());
        values.push((RX_NAME.to_owned(), TagValue::Text(name)));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::Told;
    use crate::tags::{Place, Tag};
    use packet::field::Pattern;
    use std::sync::Arc;

    #[test]
    fn rows_that_may_be_incomplete_count_among_all_others() {
        let course = Pattern::Increment { start: 0, step: 1, count: 9 }.course(0xff).unwrap();
        let tag = Tag { name: "t".into(), bits: 8, place: Place::Sent(course, 0) };
        let tags = Arc::new(Tags { fields: vec![tag], rows: 2, ..Tags::default() });
        let told = Told { tags: Some(tags.clone()), ..Told::default() };
        let books = Books::new(&[Told::default(), told], 1, 2);
        let key = |value| tags.sent(value);
        // Frames 0 to 3, of which there are rows for 0 and 1, and rates of 1 and 2 for frames and bytes of the first.
        let sent = books.tx[1].tagged.as_ref().unwrap();
        sent.accept(4, |_| 60, 5);
        let received = |receiver: usize, value, now| {
            books.rx[receiver].flows[1].rows.as_ref().unwrap().add(&key(value), 1, 60, now);
        };
        // One thread has rows for 1 and 2, and so none for 0; the other one has room.
        [(1, 10), (2, 11), (0, 12)].iter().for_each(|(value, now)| received(0, *value, *now));
        received(1, 1, 9);
        let mut sums = BTreeMap::new();
        let other = add_up(&books, 1, &mut sums, |counter| (counter + 1) as f64);
        let frames = |sum: &Sum| (sum.tx.frames, sum.rx.frames, sum.rx.bytes, sum.times);
        let rows: Vec<_> = sums.iter().map(|(key, sum)| (tags.values(key), frames(sum))).collect();
        assert_eq!(rows, [(vec![Some(1)], (1, 2, 128, Some((9, 10))))]);
        assert_eq!(frames(&other), (3, 2, 128, Some((11, 12))));
        // The row of frame 1 is the second of what was sent, and the first of both threads.
        let sum = &sums[&key(1)];
        assert_eq!((sum.tx.frame_rate, sum.tx.byte_rate), (3.0, 4.0));
        assert_eq!((sum.rx.frame_rate, sum.rx.byte_rate), (7.0 + 13.0, 8.0 + 14.0));
        // The counters are as many, whatever is in the rows.
        let mut all = Vec::new();
        counters(&books, &mut all);
        assert_eq!(all.len(), 18);
        assert_eq!((all[2..4].to_vec(), all[4..6].to_vec()), (vec![1, 64], vec![2, 128]));
        assert_eq!(places(&books), [0, 0]);
    }
}
