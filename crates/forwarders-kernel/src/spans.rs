// SPDX-License-Identifier: BSD-3-Clause
//! The time of frames inside a lane: the clock is read next to the calls that receive and send
//! them, in a sample of bursts.
//!
//! A lane owns a [`Timer`], which measures; the [`SpanBook`] that it writes can be read by any
//! thread.

use std::sync::Arc;

use forwarders_common::queues::Queues;
use measure::{Cell, Distribution, clock, histogram};
use telemetry::Value;

use crate::lane::Place;
use crate::way::OwnCommand;

/// The spans' names in `/linerate/latency`. Three of them are the same in all programs of this
/// project. The last one, the send call alone, is what was published for PF_PACKET.
const NAMES: [&str; 4] =
    ["rx-return_tx-call", "rx-return_tx-return", "rx-call_tx-return", "tx-call_tx-return"];
/// The most bytes of an answer: those of telemetry without the text around the entries.
const ROOM: usize = 16_000;

/// The spans of one lane, in cycles.
pub(crate) struct SpanBook {
    one_in: u32,
    tx_port: u16,
    queue: u16,
    /// Sampled bursts of which frames were sent.
    sampled: Cell,
    spans: [Distribution; 4],
}

impl SpanBook {
    /// For a lane, if it is to be measured.
    pub(crate) fn of(one_in: u32, place: &Place) -> Option<Arc<Self>> {
        (one_in > 0).then(|| Arc::new(Self::new(one_in, place.tx_port, place.queue)))
    }

    fn new(one_in: u32, tx_port: u16, queue: u16) -> Self {
        let spans = std::array::from_fn(|_| Distribution::new());
        Self { one_in, tx_port, queue, sampled: Cell::new(0), spans }
    }

    fn entries(&self) -> impl Iterator<Item = Entry> {
        NAMES.iter().zip(&self.spans).map(|(name, spans)| {
            // First, so that the histogram includes all that it counts.
            let count = spans.count();
            let mut told = vec![
                ("port".to_owned(), u64::from(self.tx_port).into()),
                ("queue".to_owned(), u64::from(self.queue).into()),
                ("span".to_owned(), (*name).into()),
                ("sampled".to_owned(), self.sampled.get().into()),
                ("one_in".to_owned(), u64::from(self.one_in).into()),
                ("count".to_owned(), count.into()),
            ];
            let figures =
                [("min_tsc", spans.min()), ("mean_tsc", spans.mean()), ("max_tsc", spans.max())];
            told.extend(figures.into_iter().filter_map(|(name, figure)| {
                figure.map(|figure| (name.to_owned(), Value::U64(figure)))
            }));
            let hdr = (count > 0).then(|| histogram::encode([spans.counters()])).flatten();
            Entry { told, hdr }
        })
    }
}

/// An entry of the answer, without its histogram.
struct Entry {
    told: Vec<(String, Value)>,
    hdr: Option<String>,
}

impl Entry {
    /// An upper bound of its size as JSON, in bytes.
    fn size(&self) -> usize {
        const NAMES_AND_NUMBERS: usize = 260;
        // Quotes and a comma for each string of 127.
        NAMES_AND_NUMBERS + self.hdr.as_ref().map_or(0, |hdr| hdr.len() + hdr.len() / 40 + 12)
    }

    fn value(self, whole: bool) -> Value {
        let mut told = self.told;
        if let Some(hdr) = self.hdr.filter(|_| whole) {
            told.push(("hdr".to_owned(), Value::Text(hdr)));
        }
        Value::Dict(told)
    }
}

/// The telemetry command for these lanes.
pub(crate) fn command(books: Vec<Arc<SpanBook>>) -> OwnCommand {
    OwnCommand {
        name: "/linerate/latency",
        help: "How long frames are inside. Parameters: none, int port_id, or int port_id,int queue_id",
        answer: Box::new(move |parameters| answer(&books, parameters)),
    }
}

/// The answer to `/linerate/latency`, for all lanes or those that send on a port, or on one queue
/// of it; without histograms if these do not fit. None for other parameters.
fn answer(books: &[Arc<SpanBook>], parameters: &str) -> Option<Value> {
    let asked = Queues::named(parameters)?;
    let asked = books.iter().filter(|book| asked.have(book.tx_port, book.queue));
    let entries: Vec<Entry> = asked.flat_map(|book| book.entries()).collect();
    let whole = entries.iter().map(Entry::size).sum::<usize>() <= ROOM;
    Some(Value::List(entries.into_iter().map(|entry| entry.value(whole)).collect()))
}

/// Measures the bursts of one lane, or none. A lane calls its methods around its system calls.
pub(crate) struct Timer {
    book: Option<Arc<SpanBook>>,
    /// True if this burst is measured.
    on: bool,
    /// Bursts until the next one that is.
    left: u32,
    random: u64,
    rx_call: u64,
    rx_return: u64,
    tx_call: u64,
    sent: bool,
}

impl Timer {
    /// Without a book it measures nothing, and reads no clock.
    pub(crate) fn new(book: Option<Arc<SpanBook>>) -> Self {
        let on = book.is_some();
        // Any number except 0.
        let random = clock::now() | 1;
        Self { book, on, left: 0, random, rx_call: 0, rx_return: 0, tx_call: 0, sent: false }
    }

    /// Called before a receive call, or before reading a ring.
    #[inline]
    pub(crate) fn rx_call(&mut self) {
        if self.on {
            self.rx_call = clock::now();
        }
    }

    /// Called after it.
    #[inline]
    pub(crate) fn rx_return(&mut self) {
        if self.on {
            self.rx_return = clock::now();
        }
    }

    /// Called before a send call.
    #[inline]
    pub(crate) fn tx_call(&mut self) {
        if self.on {
            self.tx_call = clock::now();
        }
    }

    /// Called after a send call that sent this many frames.
    #[inline]
    pub(crate) fn tx_return(&mut self, frames: u64) {
        if self.on {
            self.enter(clock::now(), frames);
        }
    }

    fn enter(&mut self, now: u64, frames: u64) {
        let Some(book) = &self.book else { return };
        self.sent |= frames > 0;
        let times = [
            self.tx_call.wrapping_sub(self.rx_return),
            now.wrapping_sub(self.rx_return),
            now.wrapping_sub(self.rx_call),
            now.wrapping_sub(self.tx_call),
        ];
        for (spans, time) in book.spans.iter().zip(times) {
            spans.add(time, frames);
        }
    }

    /// Called when the burst was forwarded.
    #[inline]
    pub(crate) fn end(&mut self) {
        let Some(book) = &self.book else { return };
        if self.on {
            book.sampled.add(u64::from(self.sent));
            self.sent = false;
            self.left = distance(&mut self.random, book.one_in);
        }
        self.left -= 1;
        self.on = self.left == 0;
    }
}

/// The distance from a measured burst to the next: uniform on 1 to 2 N - 1, so that a periodic
/// pattern of the frames is not always or never sampled.
fn distance(random: &mut u64, one_in: u32) -> u32 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    let choices = 2 * u64::from(one_in) - 1;
    1 + (*random % choices) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(answer: &Value, at: usize) -> Vec<(String, Value)> {
        match answer {
            Value::List(entries) => match &entries[at] {
                Value::Dict(told) => told.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn number(told: &[(String, Value)], name: &str) -> Option<u64> {
        told.iter().find(|(key, _)| key == name).map(|(_, value)| match value {
            Value::U64(number) => *number,
            other => panic!("{name}: {other:?}"),
        })
    }

    #[test]
    fn each_span_is_the_distance_of_its_two_readings() {
        let book = Arc::new(SpanBook::new(1, 1, 0));
        let mut timer = Timer::new(Some(Arc::clone(&book)));
        (timer.rx_call, timer.rx_return, timer.tx_call) = (100, 110, 150);
        timer.enter(200, 2);
        timer.tx_call = 210;
        timer.enter(250, 1);
        timer.end();
        let told = answer(&[book], "1").unwrap();
        for (at, (name, least, greatest)) in [
            ("rx-return_tx-call", 40, 100),
            ("rx-return_tx-return", 90, 140),
            ("rx-call_tx-return", 100, 150),
            ("tx-call_tx-return", 40, 50),
        ]
        .into_iter()
        .enumerate()
        {
            let told = entry(&told, at);
            assert!(told.contains(&("span".to_owned(), name.into())), "{told:?}");
            assert_eq!(number(&told, "count"), Some(3));
            assert_eq!(number(&told, "sampled"), Some(1));
            assert_eq!(number(&told, "min_tsc"), Some(least), "{name}");
            assert_eq!(number(&told, "max_tsc"), Some(greatest), "{name}");
            let hdr = told.iter().find(|(key, _)| key == "hdr");
            let Some((_, Value::Text(text))) = hdr else { panic!("{told:?}") };
            assert_eq!(histogram::decode(text).unwrap().count(), 3);
        }
    }

    #[test]
    fn nothing_is_measured_without_a_book() {
        let mut timer = Timer::new(None);
        timer.rx_call();
        timer.tx_call();
        timer.tx_return(1);
        timer.end();
        assert_eq!((timer.rx_call, timer.tx_call, timer.on), (0, 0, false));
    }

    #[test]
    fn one_burst_in_so_many_is_measured() {
        for one_in in [1, 8] {
            let book = Arc::new(SpanBook::new(one_in, 0, 0));
            let mut timer = Timer::new(Some(Arc::clone(&book)));
            timer.random = 1;
            let bursts = 80_000;
            for _ in 0..bursts {
                timer.tx_return(1);
                timer.end();
            }
            let found = book.sampled.get();
            // The mean of distances uniform on 1 to 2 N - 1 is N.
            let expected = bursts / u64::from(one_in);
            assert!(found.abs_diff(expected) <= expected / 20, "{one_in}: {found}");
            assert_eq!(book.spans[0].count(), found);
        }
    }

    #[test]
    fn lanes_are_asked_for_by_port_and_queue() {
        let books: Vec<Arc<SpanBook>> = [(0, 0), (1, 0), (1, 1)]
            .into_iter()
            .map(|(port, queue)| Arc::new(SpanBook::new(64, port, queue)))
            .collect();
        let count = |parameters: &str| match answer(&books, parameters) {
            Some(Value::List(entries)) => Some(entries.len() / NAMES.len()),
            _ => None,
        };
        assert_eq!(count(""), Some(3));
        assert_eq!(count("1"), Some(2));
        assert_eq!(count("1,1"), Some(1));
        assert_eq!(count("7"), Some(0));
        assert_eq!(answer(&books, "0,0,0"), None);
        assert_eq!(answer(&books, "x"), None);
        let told = entry(&answer(&books, "0").unwrap(), 0);
        assert_eq!((number(&told, "count"), number(&told, "one_in")), (Some(0), Some(64)));
        assert_eq!(number(&told, "min_tsc"), None, "absent, not 0");
    }

    #[test]
    fn histograms_are_left_out_where_they_have_no_room() {
        let books: Vec<Arc<SpanBook>> =
            (0..16).map(|port| Arc::new(SpanBook::new(1, port, 0))).collect();
        for book in &books {
            for value in 0..4000 {
                book.spans[0].add(value * 997, 1 + value % 7);
            }
        }
        let has = |parameters| {
            let told = entry(&answer(&books, parameters).unwrap(), 0);
            told.iter().any(|(key, _)| key == "hdr")
        };
        assert!(has("0"));
        assert!(!has(""));
    }
}
