// SPDX-License-Identifier: BSD-3-Clause
//! The receiving half of an lcore: recognises frames by their signatures and counts them.
//!
//! If all flows have full signatures, frames take the fast path, [`Drain::see`]; otherwise that of [`small`].

mod small;

use std::sync::Arc;

use measure::{Arrivals, Delays};
use packet::classifier::Classifier;
use packet::signature::{self, Reading, Signature, Successor};

use super::io::{BURST, Receive};
use super::watch::Watch;
use super::{Mode, Settings};
use crate::books::{Books, RxBooks, TxBooks};
use crate::capture::Tap;
use crate::neighbors::Ear;
use crate::plan::Mark;
use small::Small;

/// Most full bursts that are received from one queue before the other queues and sending have their
/// turn.
const MAX_BURSTS_PER_DRAIN: usize = 8;
/// The same in a flood: sending then has as much of the lcore's time as receiving, whatever
/// arrives.
const MAX_BURSTS_IN_A_FLOOD: usize = 1;

/// Ranges of missing numbers that are remembered per flow. Frames that arrive after that many later
/// losses count as unknown, not as reordered or duplicated.
const GAPS: usize = 1024;

/// The run number of a flow that has not been started: no frame has it.
const NEVER: u16 = 0x100;
/// Added to the runs of flows with short signatures, so that no full signature matches them.
const SHORT: u16 = 0x200;
/// The run of a flow that has been started and is recognised by header fields.
const FIELDS: u16 = 0x400;

/// What receivers need to know about the flows.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    /// Ports where each flow's frames belong, as bits.
    pub rx_masks: Vec<u64>,
    /// How each flow's frames are recognised; flows after the last have full signatures.
    pub marks: Vec<Mark>,
    /// Finds the flows that are recognised by header fields.
    pub classifier: Arc<Classifier>,
    /// Finds flows without signatures whose header fields no frame with a short signature has.
    pub distinct: Arc<Classifier>,
    /// True if payloads are checked. All signatures are full then.
    pub integrity: bool,
}

#[derive(Debug)]
struct Flow {
    rx_mask: u64,
    mark: Mark,
    run: u16,
    arrivals: Arrivals,
    delays: Delays,
    /// True if the last row contained disturbed frames.
    disturbed: bool,
}

/// A queue being polled.
#[derive(Debug)]
struct Lane {
    /// Index of the port.
    port: usize,
    tap: Option<Box<Tap>>,
    /// If its port has devices: takes frames of ARP and neighbor discovery.
    ear: Option<Box<Ear>>,
    /// The lcore's number of pauses when it last found the queue empty or emptied it: what arrives
    /// after another pause has waited.
    pauses: u64,
}

/// Flows, what has arrived of them, and their books.
#[derive(Debug)]
pub(super) struct Receiver {
    flows: Vec<Flow>,
    lanes: Vec<Lane>,
    books: Arc<Books>,
    /// The number of this receiving thread.
    number: usize,
    /// Cycles for one reading of the clock: subtracted from every transit time.
    clock_cost: u64,
    /// True if payloads are checked.
    integrity: bool,
    /// Recognises frames without a full signature, if there are such flows.
    small: Option<Small>,
    /// True if any flow has metric tags.
    tagged: bool,
    /// True if any flow has tags that differ from frame to frame.
    by_frame: bool,
    max_bursts: usize,
}

/// Frames of one flow that arrived together, with consecutive numbers and one stamp: the usual
/// case, counted in one go.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    flow: u16,
    first: u32,
    count: u32,
    stamp: u64,
    bytes: u64,
    corrupt: u64,
}

impl Receiver {
    /// A receiver of these flows that polls these queues of ports.
    pub fn new(
        settings: &Settings,
        flows: &Expectations,
        ports: Vec<usize>,
        books: Arc<Books>,
        number: usize,
    ) -> Self {
        let flow = |(index, rx_mask): (usize, &u64)| Flow {
            rx_mask: *rx_mask,
            mark: flows.marks.get(index).copied().unwrap_or(Mark::Full),
            run: NEVER,
            arrivals: Arrivals::new(GAPS),
            delays: Delays::default(),
            disturbed: false,
        };
        let lane = |port| Lane { port, tap: None, ear: None, pauses: 0 };
        let own = books.rx.get(number).map_or(&[][..], |books| &books.flows);
        Receiver {
            tagged: own.iter().any(|flow| flow.rows.is_some()),
            by_frame: own
                .iter()
                .filter_map(|flow| flow.rows.as_ref())
                .any(|rows| !rows.tags.only_ports()),
            flows: flows.rx_masks.iter().enumerate().map(flow).collect(),
            lanes: ports.into_iter().map(lane).collect(),
            books,
            number,
            clock_cost: settings.clock_cost,
            integrity: flows.integrity,
            small: Small::of(flows),
            max_bursts: match settings.mode {
                Mode::Paced => MAX_BURSTS_PER_DRAIN,
                Mode::Flood => MAX_BURSTS_IN_A_FLOOD,
            },
        }
    }

    /// Expects no more frames of these flows, and does not touch their books.
    pub fn forget(&mut self, which: &[usize]) {
        for &index in which {
            if let Some(flow) = self.flows.get_mut(index) {
                flow.run = NEVER;
            }
        }
    }

    /// Expects frames of run `run` of these flows, from the first one on; their books are empty.
    /// `from_rest` means that nothing else is sending: then the ports' books are cleared.
    pub fn expect(&mut self, which: &[usize], run: u8, from_rest: bool) {
        let Some(books) = self.books.rx.get(self.number) else { return };
        if from_rest {
            books.ports.iter().for_each(|port| port.clear());
        }
        for &index in which {
            if let Some(flow) = self.flows.get_mut(index) {
                flow.run = match flow.mark {
                    Mark::None | Mark::Full => run.into(),
                    Mark::Short => small::short_run(run),
                    Mark::Fields => FIELDS,
                };
                flow.arrivals.restart();
                flow.delays.restart();
                flow.disturbed = false;
            }
        }
    }

    /// Returns true if stamped frames have been sent and have not arrived.
    pub fn expects_stamps(&self) -> bool {
        let Some(own) = self.books.rx.get(self.number) else { return false };
        let stamped = |flow: &usize| own.flows.get(*flow).is_some_and(|rx| rx.delays.is_some());
        (0..self.flows.len()).filter(stamped).any(|flow| {
            let sent = self.books.tx.get(flow).map_or(0, |tx| tx.accepted.get());
            sent > self.books.rx_sum(flow, |rx| rx.received.get())
        })
    }

    /// Swaps the tap of a queue with `tap`; either may be none.
    pub fn swap_tap(&mut self, lane: usize, tap: &mut Option<Box<Tap>>) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            std::mem::swap(&mut lane.tap, tap);
        }
    }

    /// Swaps the ear of a queue with `ear`; either may be none.
    pub fn swap_ear(&mut self, lane: usize, ear: &mut Option<Box<Ear>>) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            std::mem::swap(&mut lane.ear, ear);
        }
    }

    /// Receives all frames that have arrived on all queues and counts them. Returns true if there
    /// were any. `watch` is given all readings of the lcore's clock except `now`.
    #[inline]
    pub fn drain<R: Receive>(
        &mut self,
        queues: &mut [R],
        now: impl Fn() -> u64 + Copy,
        watch: &Watch,
    ) -> bool {
        let mut busy = false;
        for (lane, queue) in queues.iter_mut().enumerate() {
            busy |= self.drain_one(lane, queue, now, watch);
        }
        busy
    }

    #[inline]
    fn drain_one<R: Receive>(
        &mut self,
        lane: usize,
        queue: &mut R,
        now: impl Fn() -> u64 + Copy,
        watch: &Watch,
    ) -> bool {
        let Some(lane) = self.lanes.get_mut(lane) else { return false };
        let Some(books) = self.books.rx.get(self.number) else { return false };
        let Some(port) = books.ports.get(lane.port) else { return false };
        let mut drain = Drain {
            flows: &mut self.flows,
            books: &books.flows,
            sent: &self.books.tx,
            waited: false,
            port: lane.port,
            bit: 1 << (lane.port & 63),
            clock_cost: self.clock_cost,
            integrity: self.integrity,
            ear: lane.ear.as_deref_mut(),
            tagged: self.tagged,
            by_frame: self.by_frame,
            row: Row::default(),
            count: Count::default(),
        };
        let mut frames = 0;
        for _ in 0..self.max_bursts {
            let pauses = watch.pauses();
            let n = queue.receive();
            if n == 0 {
                lane.pauses = pauses;
                break;
            }
            let now = watch.see(now());
            drain.waited = watch.pauses() != lane.pauses;
            if let Some(tap) = &mut lane.tap {
                (0..n).for_each(|i| tap.look(queue.frame(i), now));
            }
            match &self.small {
                None if self.by_frame => drain.see::<R, true>(queue, n, now),
                None => drain.see::<R, false>(queue, n, now),
                Some(small) => drain.see_small(small, queue, n, now),
            }
            drain.enter(now);
            frames += n as u64;
            if n < BURST {
                lane.pauses = pauses;
                break;
            }
        }
        // The frames go back to their pool now, not at the next call.
        queue.free();
        if frames == 0 {
            return false;
        }
        let count = drain.count;
        port.frames.add(frames - count.neighbor);
        port.bytes.add(count.bytes - count.neighbor_bytes);
        port.received.add(count.received);
        if count.foreign + count.corrupt + count.stale + count.misdirected > 0 {
            port.foreign.add(count.foreign);
            port.corrupt.add(count.corrupt);
            port.stale.add(count.stale);
            port.misdirected.add(count.misdirected);
        }
        if count.neighbor > 0 {
            port.neighbor.add(count.neighbor);
        }
        if count.altered + count.duplicates + count.reordered > 0 {
            port.altered.add(count.altered);
            port.duplicates.add(count.duplicates);
            port.reordered.add(count.reordered);
        }
        if count.disturbed != 0 || count.missing_disturbed != 0 {
            port.disturbed.add(count.disturbed);
            port.missing_disturbed.add(count.missing_disturbed);
        }
        true
    }
}

/// What a drain found on its port.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    bytes: u64,
    received: u64,
    foreign: u64,
    corrupt: u64,
    stale: u64,
    misdirected: u64,
    altered: u64,
    duplicates: u64,
    reordered: u64,
    disturbed: u64,
    missing_disturbed: u64,
    neighbor: u64,
    neighbor_bytes: u64,
}

/// A drain of one queue.
struct Drain<'a> {
    flows: &'a mut [Flow],
    books: &'a [RxBooks],
    sent: &'a [TxBooks],
    /// True if the lcore was away from its CPU while these frames waited in the queue.
    waited: bool,
    port: usize,
    /// The port as a bit.
    bit: u64,
    clock_cost: u64,
    integrity: bool,
    ear: Option<&'a mut Ear>,
    tagged: bool,
    by_frame: bool,
    row: Row,
    count: Count,
}

impl Drain<'_> {
    /// Counts the `n` frames of a queue that were there at `now`. `BY_FRAME`: some flows have metric tags that differ from
    /// frame to frame.
    #[inline]
    fn see<R: Receive, const BY_FRAME: bool>(&mut self, queue: &R, n: usize, now: u64) {
        let (mut next, mut count, mut bytes, mut all_bytes) = (Successor::default(), 0, 0, 0);
        let mut rest = 0..n;
        // Usually all frames of a burst are one row.
        let mut following = Successor::of(queue.frame(0));
        let mut sum = queue.frame(0).len();
        let following_frame = |i| {
            let frame = queue.frame(i + 1);
            sum += frame.len();
            frame
        };
        if !self.integrity && following.is_in_all(n - 1, following_frame) {
            if self.begin_row(queue.frame(0), now).is_some() {
                bytes = sum as u64;
                self.row.count += n as u32;
                if BY_FRAME {
                    (0..n).for_each(|i| self.tag(queue.frame(i), i as u32, now));
                }
                self.row.bytes += bytes;
                self.count.bytes += bytes;
                return;
            }
            all_bytes = queue.frame(0).len() as u64;
            rest = 1..n;
        }
        // The end of the row is kept in registers while it grows.
        for i in rest {
            let frame = queue.frame(i);
            all_bytes += frame.len() as u64;
            if !next.is_in(frame) {
                self.row.count += std::mem::take(&mut count);
                self.row.bytes += std::mem::take(&mut bytes);
                match self.begin_row(frame, now) {
                    Some(successor) => next = successor,
                    None => continue,
                }
            }
            if BY_FRAME {
                self.tag(frame, self.row.count + count, now);
            }
            count += 1;
            bytes += frame.len() as u64;
            if self.integrity {
                let intact = signature::payload_is_intact(frame) != Some(false);
                self.row.corrupt += u64::from(!intact);
            }
        }
        self.row.count += count;
        self.row.bytes += bytes;
        self.count.bytes += all_bytes;
    }

    /// Starts a row with a frame that does not continue the present one, and returns the successor
    /// that would continue it; `None` if the frame belongs to no row.
    #[inline(never)]
    fn begin_row(&mut self, frame: &[u8], now: u64) -> Option<Successor> {
        let found = match Signature::inspect(frame) {
            Reading::Ours(found) => found,
            Reading::None => {
                self.see_foreign(frame, now);
                return None;
            }
            Reading::Corrupt => {
                self.count.corrupt += 1;
                return None;
            }
        };
        match self.flows.get(usize::from(found.flow)) {
            Some(flow) if flow.run == u16::from(found.run) => {
                if flow.rx_mask & self.bit == 0 {
                    self.count.misdirected += 1;
                    return None;
                }
            }
            _ => {
                self.count.stale += 1;
                return None;
            }
        }
        self.enter(now);
        self.row =
            Row { flow: found.flow, first: found.sequence, stamp: found.stamp, ..Row::default() };
        Some(Successor::of(frame))
    }

    /// Counts a frame that belongs to no flow. On a port with devices it may be for them.
    #[inline]
    fn see_foreign(&mut self, frame: &[u8], now: u64) {
        if self.ear.as_mut().is_some_and(|ear| ear.hears(frame, now)) {
            self.count.neighbor += 1;
            self.count.neighbor_bytes += frame.len() as u64;
        } else {
            self.count.foreign += 1;
        }
    }

    /// Counts a frame of the present row by the metric tags of its flow, if they differ from frame to frame. It is the
    /// `nth` of the row.
    #[inline(never)]
    fn tag(&self, frame: &[u8], nth: u32, now: u64) {
        let sequence = self.row.first.wrapping_add(nth);
        self.tag_one(self.row.flow, sequence, frame, now);
    }

    /// The same for a frame of this flow. `sequence` has the low bits of its number, and does not matter if it has none.
    #[inline]
    fn tag_one(&self, flow: u16, sequence: u32, frame: &[u8], now: u64) {
        let flow = usize::from(flow);
        let rows = self.books.get(flow).and_then(|books| books.rows.as_deref());
        let Some(rows) = rows.filter(|rows| !rows.tags.only_ports()) else { return };
        let sent = self.sent.get(flow).and_then(|books| books.tagged.as_deref());
        let number = sent.map_or(0, |sent| sent.number(sequence));
        let key = rows.tags.received(number, frame, self.port);
        rows.add(&key, 1, frame.len() as u64, now);
    }

    /// Enters the completed row, which was there at `now`, into the books.
    #[inline]
    fn enter(&mut self, now: u64) {
        let row = std::mem::take(&mut self.row);
        if row.count == 0 {
            return;
        }
        let index = usize::from(row.flow);
        let (Some(flow), Some(books)) = (self.flows.get_mut(index), self.books.get(index)) else {
            return;
        };
        let count = u64::from(row.count);
        self.count.received += count;
        books.received.add(count);
        books.bytes.add(row.bytes);
        if row.corrupt > 0 {
            books.corrupt.add(row.corrupt);
            self.count.altered += row.corrupt;
        }
        if self.tagged {
            enter_tagged(books, self.port, count, row.bytes, now);
        }
        if books.first_tsc.get() == 0 {
            books.first_tsc.set(now);
        }
        books.last_tsc.set(now);
        let order = &books.sequence;
        let (duplicates, reordered) = (order.duplicates.get(), order.reordered.get());
        let missing = order.missing.get();
        flow.arrivals.see_row(order, row.first, row.count);
        let sent = self.sent.get(index).map(|books| &books.disturbed);
        let disturbed = match self.waited {
            true => row.count,
            false => sent.map_or(0, |sent| sent.overlap(row.first, row.count)),
        };
        if disturbed > 0 || flow.disturbed || order.missing.get() != missing {
            let skipped = order.missing.get() as i64 - missing as i64;
            // Lost next to disturbed frames, or while they left.
            let lost = match u32::try_from(skipped) {
                Ok(skipped) if disturbed > 0 || flow.disturbed => i64::from(skipped),
                Ok(skipped) => {
                    let first = row.first.wrapping_sub(skipped);
                    i64::from(sent.map_or(0, |sent| sent.overlap(first, skipped)))
                }
                // Frames that were missing have arrived.
                Err(_) if disturbed > 0 => skipped.max(-(books.missing_disturbed.get() as i64)),
                Err(_) => 0,
            };
            books.disturbed.add(disturbed.into());
            books.missing_disturbed.add(lost as u64);
            self.count.disturbed += u64::from(disturbed);
            self.count.missing_disturbed = self.count.missing_disturbed.wrapping_add(lost as u64);
            flow.disturbed = disturbed > 0;
        }
        self.count.duplicates += order.duplicates.get() - duplicates;
        self.count.reordered += order.reordered.get() - reordered;
        if disturbed > 0 {
            flow.delays.skip();
        } else if row.stamp != 0 {
            if let Some(delays) = &books.delays {
                // Two CPUs' counters may differ a little: count such a negative transit as 0, not
                // as 2^48 cycles.
                let transit = match signature::elapsed(now, row.stamp) {
                    negative if negative >= 1 << 47 => 0,
                    passed => passed.saturating_sub(self.clock_cost),
                };
                flow.delays.see_row(delays, row.first, row.count, transit);
            }
        }
    }
}

/// Counts frames of a flow that arrived at a port, if only ports tell its rows apart.
#[inline(never)]
fn enter_tagged(books: &RxBooks, port: usize, frames: u64, bytes: u64, now: u64) {
    if let Some(rows) = books.rows.as_ref().filter(|rows| rows.tags.only_ports()) {
        rows.add(&rows.tags.at_port(port), frames, bytes, now);
    }
}
