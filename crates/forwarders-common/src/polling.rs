// SPDX-License-Identifier: BSD-3-Clause
//! Statistics of a polling core: the results of its polls, and how long it was busy.
//!
//! A [`QueueFigures`] belongs to one (lcore, port, RX queue). The lcore writes it through a
//! [`Meter`], everybody may read it.
//! Units are packets and TSC cycles, counted since the first poll.

use std::sync::Arc;

use measure::{Cell, clock};
use telemetry::Value;

use crate::queues::Queues;

/// The telemetry command that returns these statistics.
pub const COMMAND: &str = "/linerate/polling";
/// Its help text.
pub const HELP: &str = "Polls of each receive queue. Parameters: PORT,QUEUE; null if the answer is too long: ask by PORT";

/// The default for the most packets that a poll asks for.
pub const BURST: usize = 32;

const HISTOGRAM: &str = "burst_histogram";

/// Statistics of the polls of one receive queue.
#[repr(align(64))]
pub struct QueueFigures {
    /// The lcore that polls.
    pub lcore: u32,
    /// The port polled.
    pub port: u16,
    /// Its queue.
    pub queue: u16,
    /// Polls that returned 0, 1, .. packets, up to the number asked for. The other counts are
    /// computed from it, so that they always agree.
    bursts: Box<[Cell]>,
    /// From the return of a poll with packets to the return of the lcore's next poll.
    busy_tsc: Cell,
    /// The TSC just before the first poll; 0 before that.
    first_tsc: Cell,
}

impl QueueFigures {
    /// Statistics of an lcore's polls of a port's queue for up to [`BURST`] packets, all 0.
    #[must_use]
    pub fn new(lcore: u32, port: u16, queue: u16) -> Self {
        Self::with_limit(lcore, port, queue, BURST)
    }

    /// The same for polls for up to `limit` packets, at most 511.
    #[must_use]
    pub fn with_limit(lcore: u32, port: u16, queue: u16, limit: usize) -> Self {
        Self {
            lcore,
            port,
            queue,
            bursts: (0..=limit).map(|_| Cell::new(0)).collect(),
            busy_tsc: Cell::new(0),
            first_tsc: Cell::new(0),
        }
    }

    /// The entry of `/linerate/polling`, at TSC `now`.
    fn entry(&self, now: u64) -> Value {
        let bursts: Vec<u64> = self.bursts.iter().map(Cell::get).collect();
        let packets = (0u64..).zip(&bursts).map(|(size, polls)| size * polls).sum::<u64>();
        let total = match self.first_tsc.get() {
            0 => 0,
            first => now.saturating_sub(first),
        };
        Value::dict([
            ("lcore", u64::from(self.lcore).into()),
            ("port", u64::from(self.port).into()),
            ("queue", u64::from(self.queue).into()),
            ("polls", bursts.iter().sum::<u64>().into()),
            ("empty_polls", bursts[0].into()),
            ("packets", packets.into()),
            ("burst_limit", (bursts.len() as u64 - 1).into()),
            (HISTOGRAM, Value::Numbers(bursts)),
            // The lcore continues meanwhile: what it adds after `now` is left out.
            ("busy_tsc", self.busy_tsc.get().min(total).into()),
            ("total_tsc", total.into()),
        ])
    }
}

/// Counts one lcore's polls in the statistics of its queues.
pub struct Meter<'f> {
    /// The queue whose packets the lcore is busy with.
    busy: Option<&'f QueueFigures>,
    /// The TSC at the last poll's return.
    since: u64,
}

impl<'f> Meter<'f> {
    /// Starts counting, just before the first poll of these queues.
    #[must_use]
    pub fn start(queues: impl IntoIterator<Item = &'f QueueFigures>) -> Self {
        let now = clock::now();
        for figures in queues {
            figures.first_tsc.set(now);
        }
        Self { busy: None, since: now }
    }

    /// Records that a poll of a queue returned `packets`, at most as many as it asks for, at TSC
    /// `now`.
    #[inline(always)]
    pub fn polled(&mut self, figures: &'f QueueFigures, packets: usize, now: u64) {
        if let Some(busy) = self.busy {
            busy.busy_tsc.add(now.wrapping_sub(self.since));
        }
        self.busy = (packets > 0).then_some(figures);
        self.since = now;
        if let Some(polls) = figures.bursts.get(packets) {
            polls.add(1);
        }
    }
}

/// An entry for each receive queue.
#[must_use]
pub fn entries(figures: &[Arc<QueueFigures>]) -> Value {
    let now = clock::now();
    Value::List(figures.iter().map(|figures| figures.entry(now)).collect())
}

/// The answer to [`COMMAND`]: the entries of all queues, of a port's, or of one; without histograms
/// if these do not fit. `None` for other parameters, and if the entries do not fit even then.
#[must_use]
pub fn answer(figures: &[Arc<QueueFigures>], parameters: &str) -> Option<Value> {
    let asked = Queues::named(parameters)?;
    let asked = |each: &&Arc<QueueFigures>| asked.have(each.port, each.queue);
    let figures: Vec<_> = figures.iter().filter(asked).cloned().collect();
    let whole = entries(&figures);
    if whole.fits(COMMAND) {
        return Some(whole);
    }
    let short = without_histograms(whole);
    short.fits(COMMAND).then_some(short)
}

fn without_histograms(entries: Value) -> Value {
    match entries {
        Value::List(entries) => Value::List(entries.into_iter().map(without_histograms).collect()),
        Value::Dict(mut entry) => {
            entry.retain(|(name, _)| name != HISTOGRAM);
            Value::Dict(entry)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(entry: &Value, name: &str) -> u64 {
        match entry {
            Value::Dict(entries) => match entries.iter().find(|(key, _)| key == name) {
                Some((_, Value::U64(number))) => *number,
                other => panic!("{name}: {other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn busy_runs_from_a_poll_with_packets_to_the_return_of_the_next_poll() {
        let [first, second] = &[QueueFigures::new(1, 0, 0), QueueFigures::new(1, 1, 0)];
        assert_eq!(number(&first.entry(1000), "total_tsc"), 0, "not polled yet");
        let mut meter = Meter::start([first, second]);
        meter.polled(first, 0, 100); // idle until here
        meter.polled(second, 32, 150); // idle before it: nothing to count
        meter.polled(first, 1, 250); // 100 for port 1
        meter.polled(second, 0, 270); // 20 for port 0
        meter.polled(first, 0, 900); // idle before it
        let begun = first.first_tsc.get();
        assert_eq!(number(&second.entry(begun + 60), "busy_tsc"), 60, "read late");
        let [first, second] = [first.entry(begun + 1000), second.entry(begun + 1000)];
        assert_eq!(number(&first, "busy_tsc"), 20);
        assert_eq!(number(&first, "total_tsc"), 1000);
        assert_eq!(number(&first, "polls"), 3);
        assert_eq!(number(&first, "empty_polls"), 2);
        assert_eq!(number(&first, "packets"), 1);
        assert_eq!(number(&second, "busy_tsc"), 100);
        assert_eq!(number(&second, "total_tsc"), 1000);
        assert_eq!(number(&second, "packets"), 32);
    }

    /// So many queues of two ports, polled by an lcore each.
    fn many(queues: u16) -> Vec<Arc<QueueFigures>> {
        let of = |number: u16| QueueFigures::new(number.into(), number % 2, number / 2);
        (0..queues).map(|number| Arc::new(of(number))).collect()
    }

    fn told(answer: Option<Value>) -> Vec<Value> {
        match answer {
            Some(Value::List(entries)) => entries,
            other => panic!("{other:?}"),
        }
    }

    fn is_whole(entry: &Value) -> bool {
        matches!(entry, Value::Dict(entries) if entries.iter().any(|(name, _)| name == HISTOGRAM))
    }

    #[test]
    fn what_has_no_room_is_asked_for_queue_by_queue() {
        let most = |fits: fn(&[Arc<QueueFigures>]) -> bool| {
            (1..).take_while(|queues| fits(&many(*queues))).last().unwrap()
        };
        let whole = most(|figures| entries(figures).fits(COMMAND));
        let answered = most(|figures| answer(figures, "").is_some());
        assert!(whole > 10 && answered > whole, "{whole}, {answered}");
        for queues in [whole, whole + 1, answered] {
            let entries = told(answer(&many(queues), ""));
            assert_eq!(entries.len(), usize::from(queues), "each is told of");
            assert!(entries.iter().all(|entry| is_whole(entry) == (queues == whole)));
        }
        let figures = many(answered + 1);
        assert_eq!(answer(&figures, ""), None);
        assert_eq!(told(answer(&figures, "1")).len(), figures.len() / 2);
        let one = told(answer(&figures, "1,3"));
        assert_eq!((one.len(), number(&one[0], "lcore")), (1, 7));
        assert!(is_whole(&one[0]));
        assert_eq!(told(answer(&figures, "2")).len(), 0);
        assert_eq!(answer(&figures, "x"), None);
    }
}
