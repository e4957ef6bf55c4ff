// SPDX-License-Identifier: BSD-3-Clause
//! Statistics of one thread's polls of one receive queue.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};

use measure::Cell;

use crate::poller::Poller;

/// The number of counters for burst sizes: one each for 0 to 510 packets, and one for all longer
/// bursts. A telemetry array of DPDK holds 512 numbers.
pub const COUNTERS: usize = 512;

/// The polls of one (thread, port, RX queue). The thread writes, any thread may read; plain loads
/// and stores of atomics are enough.
#[repr(C, align(64))] // what every poll touches is in front
pub struct Figures {
    /// The thread that polls.
    pub poller: &'static Poller,
    /// Non-empty polls until the next burst is stamped.
    pub until_stamp: Cell,
    /// The sampling rate that it was chosen for; 0: none.
    pub one_in: AtomicU32,
    /// Packets that were stamped.
    pub stamped: Cell,
    /// The most packets that the latest poll asked for.
    limit: AtomicU32,
    /// From the return of a poll with packets to the return of the thread's next poll.
    pub busy_tsc: Cell,
    /// Packets in bursts of the last counter.
    long_packets: Cell,
    bursts: [Cell; COUNTERS],
    /// The TSC at the first poll.
    first_tsc: u64,
    /// Cycles since then without counting: callbacks off, the port closed, or the thread ended.
    /// Written with the registry locked, as are the next two.
    away_tsc: Cell,
    /// The TSC at the start of such a time; 0 while polls are counted.
    gone_tsc: Cell,
    /// True if the queue's callback or port was removed: then a new thread alone does not resume
    /// counting.
    unwatched: AtomicBool,
    /// Statistics of the same thread for other queues; see [`Poller::known`].
    pub next: AtomicPtr<Figures>,
    /// The port polled.
    pub port: u16,
    /// Its queue.
    pub queue: u16,
}

/// Statistics read at one moment, or the sum over several threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// `LCORE_ID_ANY` for a thread without an id.
    pub lcore: u32,
    pub port: u16,
    pub queue: u16,
    pub packets: u64,
    pub burst_limit: u32,
    /// Polls that returned 0, 1, .. packets; at least up to `burst_limit`, limited by the number of
    /// counters.
    pub bursts: Vec<u64>,
    pub busy_tsc: u64,
    pub total_tsc: u64,
}

impl Figures {
    /// Statistics of a thread that polls a queue for the first time, at TSC `now`.
    pub fn new(poller: &'static Poller, port: u16, queue: u16, now: u64) -> Self {
        Self {
            poller,
            until_stamp: Cell::new(u64::MAX),
            one_in: AtomicU32::new(0),
            stamped: Cell::new(0),
            limit: AtomicU32::new(0),
            busy_tsc: Cell::new(0),
            long_packets: Cell::new(0),
            bursts: [const { Cell::new(0) }; COUNTERS],
            first_tsc: now,
            away_tsc: Cell::new(0),
            gone_tsc: Cell::new(0),
            unwatched: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
            port,
            queue,
        }
    }

    /// Counts a poll that asked for `limit` packets and got `packets`.
    #[inline(always)]
    pub fn count(&self, packets: u16, limit: u16) {
        match self.bursts.get(usize::from(packets)) {
            Some(polls) if usize::from(packets) < COUNTERS - 1 => polls.add(1),
            _ => self.count_long(packets),
        }
        if self.limit.load(Relaxed) != u32::from(limit) {
            self.limit.store(u32::from(limit), Relaxed);
        }
    }

    #[cold]
    fn count_long(&self, packets: u16) {
        self.bursts[COUNTERS - 1].add(1);
        self.long_packets.add(u64::from(packets));
    }

    /// The queue has no callback from now on. The registry is locked.
    pub fn unwatch(&self, now: u64) {
        self.unwatched.store(true, Relaxed);
        self.leave(now);
    }

    /// The queue has a callback. The registry is locked.
    pub fn watch(&self, now: u64) {
        self.unwatched.store(false, Relaxed);
        self.come_back(now);
    }

    /// The thread does not poll any more. The registry is locked.
    pub fn leave(&self, now: u64) {
        if self.gone_tsc.get() == 0 {
            self.gone_tsc.set(now);
        }
    }

    /// Returns true if polls are counted at present.
    pub fn are_counted(&self) -> bool {
        self.gone_tsc.get() == 0
    }

    /// A thread polls again under the same lcore id. The registry is locked.
    pub fn come_back(&self, now: u64) {
        if self.unwatched.load(Relaxed) {
            return;
        }
        match self.gone_tsc.get() {
            0 => {}
            gone => {
                self.gone_tsc.set(0);
                self.away_tsc.add(now.saturating_sub(gone));
            }
        }
    }

    /// The statistics at TSC `now`. The registry is locked.
    pub fn read(&self, now: u64) -> Reading {
        let mut bursts: Vec<u64> = self.bursts.iter().map(Cell::get).collect();
        let limit = self.limit.load(Relaxed);
        let used = bursts.iter().rposition(|count| *count > 0).map_or(1, |last| last + 1);
        bursts.truncate(used.max(limit as usize + 1));
        let counted = (0u64..).zip(&bursts).take(COUNTERS - 1).map(|(size, polls)| size * polls);
        let end = match self.gone_tsc.get() {
            0 => now,
            gone => gone,
        };
        let total = end.saturating_sub(self.first_tsc).saturating_sub(self.away_tsc.get());
        Reading {
            lcore: self.poller.lcore,
            port: self.port,
            queue: self.queue,
            packets: counted.sum::<u64>() + self.long_packets.get(),
            burst_limit: limit,
            bursts,
            // A thread that was busy with a queue when counting stopped stays busy until it polls
            // another.
            busy_tsc: self.busy_tsc.get().min(total),
            total_tsc: total,
        }
    }
}

impl Reading {
    pub fn polls(&self) -> u64 {
        self.bursts.iter().sum()
    }

    pub fn empty_polls(&self) -> u64 {
        self.bursts.first().copied().unwrap_or(0)
    }

    /// Adds what other threads under the same lcore id did with the same queue.
    pub fn join(&mut self, other: Self) {
        self.bursts.resize(self.bursts.len().max(other.bursts.len()), 0);
        for (sum, more) in self.bursts.iter_mut().zip(&other.bursts) {
            *sum += more;
        }
        self.packets += other.packets;
        self.burst_limit = other.burst_limit;
        self.busy_tsc += other.busy_tsc;
        self.total_tsc += other.total_tsc;
    }
}
