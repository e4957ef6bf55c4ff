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

/// What is known of a row so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    traffic: Traffic,
    /// TSC of the first and the last frame.
    times: Option<(u64, u64)>,
}

impl Sum {
    fn add(&mut self, counts: &Counts, rates: (f64, f64)) {
        let frames = counts.frames.get();
        self.traffic.frames += frames;
        self.traffic.bytes += with_fcs(counts.bytes.get(), frames);
        self.traffic.frame_rate += rates.0;
        self.traffic.byte_rate += rates.1;
        if frames > 0 {
            let (first, last) = (counts.first_tsc.get(), counts.last_tsc.get());
            let (least, most) = self.times.unwrap_or((first, last));
            self.times = Some((least.min(first), most.max(last)));
        }
    }
}

/// The rows of each thread that receives.
fn tables(books: &Books, flow: usize) -> impl Iterator<Item = &Rows> {
    books.rx.iter().filter_map(move |books| books.flows.get(flow)?.rows.as_deref())
}

/// Counters of rows whose rates are reported: always the same number, in the same order.
pub(super) fn counters(books: &Books, all: &mut Vec<u64>) {
    let mut add = |counts: &Counts| {
        let frames = counts.frames.get();
        all.extend([frames, with_fcs(counts.bytes.get(), frames)]);
    };
    for rows in (0..books.tx.len()).flat_map(|flow| tables(books, flow)) {
        let (unused, none) = (rows.most() - rows.iter().count(), Counts::default());
        rows.iter().for_each(|(_, counts)| add(counts));
        (0..unused).for_each(|_| add(&none));
        add(rows.other());
    }
}

/// For each flow, where the counters of its rows begin among those of [`counters`].
pub(super) fn places(books: &Books) -> Vec<usize> {
    let place = |next: &mut usize, flow: usize| {
        let own: usize = tables(books, flow).map(|rows| PER_ROW * (rows.most() + 1)).sum();
        Some(std::mem::replace(next, *next + own))
    };
    (0..books.tx.len()).scan(0, place).collect()
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
        let mut other = Sum::default();
        if tags.only_ports() {
            // Ports where nothing has arrived have rows too.
            let all = 0..self.plan.ports.len();
            let own = all.filter(|port| flow.rx_mask() & 1 << (port & 63) != 0);
            sums.extend(own.map(|port| (tags.at_port(port), Sum::default())));
        }
        let mut at = self.sampled_before_rows() + self.row_places.get(index).copied()?;
        for rows in tables(&self.books, index) {
            let rates = |row: usize| {
                let at = at + PER_ROW * row;
                (self.sampler.rate(at), self.sampler.rate(at + 1))
            };
            for (row, (key, counts)) in rows.iter().enumerate() {
                sums.entry(key).or_default().add(counts, rates(row));
            }
            other.add(rows.other(), rates(rows.most()));
            at += PER_ROW * (rows.most() + 1);
        }
        let began = self.books.tx.get(index)?.began_tsc.get();
        let since = |tsc: u64| settings.nanoseconds(tsc.saturating_sub(began)) as f64;
        let figures = |tags: Vec<(String, TagValue)>, sum: Sum| TaggedFigures {
            tags,
            rx: sum.traffic,
            timestamps_ns: sum
                .times
                .filter(|_| flow.metrics.timestamps)
                .map(|(first, last)| (since(first), since(last))),
        };
        let values = |key: &Key| values(tags, key, &self.plan.ports);
        let mut all: Vec<_> = sums.iter().map(|(key, sum)| figures(values(key), *sum)).collect();
        if other.traffic.frames > 0 {
            let word = |name: &str| (name.to_owned(), TagValue::Text(OTHER.to_owned()));
            all.push(figures(tags.names().map(word).collect(), other));
        }
        Some(all)
    }
}

/// The tags of a row: names and values.
fn values(tags: &Tags, key: &Key, ports: &[PortPlan]) -> Vec<(String, TagValue)> {
    let mut values = Vec::new();
    if tags.rx_name {
        let port = usize::try_from(key.port).ok().and_then(|port| ports.get(port.checked_sub(1)?));
        let name = port.map_or_else(String::new, |port| port.name.clone());
        values.push((RX_NAME.to_owned(), TagValue::Text(name)));
    }
    values
}
