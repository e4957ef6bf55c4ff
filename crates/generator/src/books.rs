// SPDX-License-Identifier: BSD-3-Clause
//! The books: counts of what happened to every frame, per flow and per port.
//!
//! Each book has one writer, a polling thread; any thread may read at any time. `attempted` is not
//! stored but is the sum of `accepted`, `lost_at_ingress` and `refused`, so that the books close at
//! every moment. If several threads receive, each has its own book, and readers add them up.

pub mod rows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use measure::{Cell, DelayBooks, Distribution, SequenceBooks};

use crate::ranges::Ranges;
use crate::tags::Tags;
use rows::{Rows, Sent};

/// The state of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It has not been started, has ended or was stopped.
    #[default]
    Stopped,
    /// It transmits.
    Started,
    /// It is paused.
    Paused,
}

/// Counts of a flow's sent frames since its last start.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct TxBooks {
    /// Frames that the port took.
    pub accepted: Cell,
    /// Their bytes, without FCS.
    pub bytes: Cell,
    /// Paced: frames lost because the link's ring was full at their slot.
    pub lost_at_ingress: Cell,
    /// Flood: offers that the port refused; the frame is offered again.
    pub refused: Cell,
    /// Paced: frames offered later than their slot by more than the tolerance.
    pub late: Cell,
    /// Frames due by the schedule; meaningless in an endless flood.
    pub intended: Cell,
    /// TSC of the first offer.
    pub began_tsc: Cell,
    /// The same, moved later by the length of all pauses. 0 before the first offer.
    pub first_tsc: Cell,
    /// TSC of the last offer so far.
    pub last_tsc: Cell,
    /// Paced: the slot of the first frame.
    pub first_slot: Cell,
    /// Paced: the slot of the last frame offered so far.
    pub last_slot: Cell,
    /// Paced: gaps between departures.
    pub gaps: Distribution,
    /// Paced: frames that left while the sender was behind its slots, and afterwards until it had
    /// been on time for as long as it had been late.
    pub disturbed: Ranges,
    /// Disturbed frames that the port took.
    pub accepted_disturbed: Cell,
    /// Disturbed frames lost because the link's ring was full.
    pub lost_disturbed: Cell,
    /// For flows with metric tags of what is sent.
    pub tagged: Option<Box<Sent>>,
    state: AtomicU8,
}

impl TxBooks {
    /// Frames offered to the port: accepted, lost at ingress or refused.
    pub fn attempted(&self) -> u64 {
        self.accepted.get() + self.lost_at_ingress.get() + self.refused.get()
    }

    /// From the first offer to the last, in cycles.
    pub fn tx_duration_tsc(&self) -> u64 {
        self.last_tsc.get().saturating_sub(self.first_tsc.get())
    }

    /// The relative error of the time from the first frame to the last against the schedule, in
    /// millionths: positive if it took longer. `None` below two slots.
    pub fn pacing_error_ppm(&self) -> Option<f64> {
        let ideal = self.last_slot.get().saturating_sub(self.first_slot.get());
        (ideal > 0).then(|| (self.tx_duration_tsc() as f64 / ideal as f64 - 1.0) * 1e6)
    }

    /// The state of the flow.
    pub fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            1 => State::Started,
            2 => State::Paused,
            _ => State::Stopped,
        }
    }

    /// Sets the state of the flow. Only the writer may call this.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Clears the book.
    pub fn clear(&self) {
        for cell in [
            &self.accepted,
            &self.bytes,
            &self.lost_at_ingress,
            &self.refused,
            &self.late,
            &self.intended,
            &self.began_tsc,
            &self.first_tsc,
            &self.last_tsc,
            &self.first_slot,
            &self.last_slot,
            &self.accepted_disturbed,
            &self.lost_disturbed,
        ] {
            cell.set(0);
        }
        self.gaps.clear();
        self.disturbed.clear();
        if let Some(tagged) = &self.tagged {
            tagged.clear();
        }
    }
}

/// A port's counts of flows' earlier runs, since traffic last started from rest: a flow's own book
/// is cleared at each start, the port's counts are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// See [`TxBooks`], as the others.
    pub accepted: u64,
    /// Bytes of the accepted frames, without FCS.
    pub bytes: u64,
    /// See [`TxBooks`].
    pub lost_at_ingress: u64,
    /// See [`TxBooks`].
    pub refused: u64,
    /// See [`TxBooks`].
    pub late: u64,
    /// See [`TxBooks`].
    pub intended: u64,
    /// See [`TxBooks`].
    pub accepted_disturbed: u64,
    /// See [`TxBooks`].
    pub lost_disturbed: u64,
}

impl Earlier {
    /// Adds a run that has ended.
    pub fn add(&mut self, run: &TxBooks) {
        self.accepted += run.accepted.get();
        self.bytes += run.bytes.get();
        self.lost_at_ingress += run.lost_at_ingress.get();
        self.refused += run.refused.get();
        self.late += run.late.get();
        self.intended += run.intended.get();
        self.accepted_disturbed += run.accepted_disturbed.get();
        self.lost_disturbed += run.lost_disturbed.get();
    }
}

/// Counts of a flow's frames that one thread received, since its last start.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct RxBooks {
    /// Frames that were received on a port where they belong, including duplicates.
    pub received: Cell,
    /// Their bytes, without FCS.
    pub bytes: Cell,
    /// Frames among them whose payload was changed.
    pub corrupt: Cell,
    /// TSC of the first frame, 0 before it.
    pub first_tsc: Cell,
    /// TSC of the last frame so far.
    pub last_tsc: Cell,
    /// Duplicates and reordering.
    pub sequence: SequenceBooks,
    /// Frames among `received` that left or arrived while the generator itself was interrupted:
    /// they are in no latency.
    pub disturbed: Cell,
    /// Missing sequence numbers among such frames.
    pub missing_disturbed: Cell,
    /// Latency and jitter, for flows with stamps.
    pub delays: Option<Box<DelayBooks>>,
    /// Counts by metric tags, for flows that have such.
    pub rows: Option<Box<Rows>>,
}

impl RxBooks {
    /// Clears the book.
    pub fn clear(&self) {
        for cell in [
            &self.received,
            &self.bytes,
            &self.corrupt,
            &self.first_tsc,
            &self.last_tsc,
            &self.disturbed,
            &self.missing_disturbed,
        ] {
            cell.set(0);
        }
        self.sequence.clear();
        if let Some(delays) = &self.delays {
            delays.clear();
        }
        if let Some(rows) = &self.rows {
            rows.clear();
        }
    }
}

/// Counts of a port's frames that one thread received, since traffic last started from rest.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct PortBooks {
    /// All frames but those of devices.
    pub frames: Cell,
    /// Their bytes, without FCS.
    pub bytes: Cell,
    /// Frames of the flows' present runs that belong here.
    pub received: Cell,
    /// Frames without this generator's signature.
    pub foreign: Cell,
    /// Frames whose signature was changed, so that their flow is unknown.
    pub corrupt: Cell,
    /// Frames among `received` whose payload was changed.
    pub altered: Cell,
    /// Frames among `received` that had been received before.
    pub duplicates: Cell,
    /// Frames among `received` that arrived after a later one of their flow.
    pub reordered: Cell,
    /// See [`RxBooks`].
    pub disturbed: Cell,
    /// See [`RxBooks`].
    pub missing_disturbed: Cell,
    /// Frames of this generator from before the flow's last start.
    pub stale: Cell,
    /// Frames of this generator that belong to other ports.
    pub misdirected: Cell,
    /// Frames of ARP and neighbor discovery on a port with devices. They are in no other count.
    pub neighbor: Cell,
}

impl PortBooks {
    /// Clears the book.
    pub fn clear(&self) {
        for cell in [
            &self.frames,
            &self.bytes,
            &self.received,
            &self.foreign,
            &self.corrupt,
            &self.altered,
            &self.duplicates,
            &self.reordered,
            &self.disturbed,
            &self.missing_disturbed,
            &self.stale,
            &self.misdirected,
            &self.neighbor,
        ] {
            cell.set(0);
        }
    }
}

/// The books of one receiving thread.
#[derive(Debug, Default)]
pub struct ReceiverBooks {
    /// By index of the flow.
    pub flows: Box<[RxBooks]>,
    /// By index of the port.
    pub ports: Box<[PortBooks]>,
}

/// The books of one configuration.
#[derive(Debug, Default)]
pub struct Books {
    /// By index of the flow; the thread that sends the flow writes it.
    pub tx: Box<[TxBooks]>,
    /// For each receiving thread, which writes it.
    pub rx: Box<[ReceiverBooks]>,
    /// Paced: gaps between departures by index of the port, over all its flows; if only one thread
    /// sends on the port, that thread writes it.
    pub gaps: Box<[Distribution]>,
}

/// What is recorded about a flow's received frames, besides their number.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Their order, with a histogram of the extents of reordered ones: 28 KiB on each thread that receives.
    pub order: bool,
    /// Latency and its variation, from stamps: 56 KiB on each thread that receives.
    pub delays: bool,
    /// True if no histograms are kept: neither of order and delays nor of gaps between departures.
    pub lean: bool,
    /// Counts by metric tags: about 80 bytes for each row on each thread that receives.
    pub tags: Option<Arc<Tags>>,
}

impl Books {
    /// Empty books for flows that record `told`. `receivers` threads receive.
    pub fn new(told: &[Told], ports: usize, receivers: usize) -> Self {
        let sequence = |told: &Told| match told.order && !told.lean {
            true => SequenceBooks::with_extents(),
            false => SequenceBooks::default(),
        };
        let delays = |told: &Told| match told.lean {
            true => DelayBooks::without_histograms(),
            false => DelayBooks::default(),
        };
        let flow = |told: &Told| RxBooks {
            sequence: sequence(told),
            delays: told.delays.then(|| Box::new(delays(told))),
            rows: told.tags.clone().map(|tags| Box::new(Rows::new(tags))),
            ..RxBooks::default()
        };
        let receiver = || ReceiverBooks {
            flows: told.iter().map(flow).collect(),
            ports: std::iter::repeat_with(PortBooks::default).take(ports).collect(),
        };
        let gaps = |told: &Told| match told.lean {
            true => Distribution::without_histogram(),
            false => Distribution::default(),
        };
        let sent = |told: &Told| TxBooks {
            gaps: gaps(told),
            tagged: told
                .tags
                .clone()
                .filter(|tags| tags.need_numbers())
                .map(|tags| Box::new(Sent::new(tags))),
            ..TxBooks::default()
        };
        Books {
            tx: told.iter().map(sent).collect(),
            rx: std::iter::repeat_with(receiver).take(receivers).collect(),
            gaps: std::iter::repeat_with(Distribution::default).take(ports).collect(),
        }
    }

    /// Clears the books of these flows, and those of sending on ports if nothing else transmits
    /// (`from_rest`). Called by the control plane while the writers leave these books alone
    /// ([`crate::engine::Order::Forget`]): with a thousand flows, 110 MB must be cleared.
    pub fn clear(&self, flows: &[usize], from_rest: bool) {
        for &flow in flows {
            self.tx.get(flow).into_iter().for_each(TxBooks::clear);
            self.rx.iter().filter_map(|books| books.flows.get(flow)).for_each(RxBooks::clear);
        }
        if from_rest {
            self.gaps.iter().for_each(Distribution::clear);
        }
    }

    /// A counter of a flow, summed over all receiving threads.
    pub fn rx_sum(&self, flow: usize, of: impl Fn(&RxBooks) -> u64) -> u64 {
        self.rx.iter().filter_map(|books| books.flows.get(flow)).map(of).sum()
    }

    /// A counter of a port, summed over all receiving threads.
    pub fn port_sum(&self, port: usize, of: impl Fn(&PortBooks) -> u64) -> u64 {
        self.rx.iter().filter_map(|books| books.ports.get(port)).map(of).sum()
    }

    /// Disturbed frames that a port misses. Of a flow on several ports one port may miss frames that then come by another:
    /// they are taken off wherever frames are missing, so that the sum of all ports is right.
    pub fn missing_disturbed(&self, port: usize) -> u64 {
        let missing = |books: &PortBooks| books.missing_disturbed.get() as i64;
        let of = |port| self.rx.iter().filter_map(|books| books.ports.get(port)).map(missing).sum();
        let ports = self.rx.first().map_or(0, |books| books.ports.len());
        let sums: Vec<i64> = (0..ports).map(of).collect();
        let mut came: i64 = sums.iter().map(|sum| (-sum).max(0)).sum();
        for (index, sum) in sums.iter().enumerate() {
            let left = (sum - came).max(0);
            came -= sum.max(&0) - left;
            if index == port {
                return left as u64;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempted_is_the_sum_of_its_fates() {
        let books = Books::new(&[Told::default()], 0, 1);
        let flow = &books.tx[0];
        flow.accepted.add(5);
        flow.lost_at_ingress.add(2);
        flow.refused.add(1);
        flow.late.add(9);
        assert_eq!(flow.attempted(), 8);
        flow.clear();
        assert_eq!((flow.attempted(), flow.late.get()), (0, 0));
    }

    #[test]
    fn a_ports_missing_frames_may_have_come_by_another() {
        for (counts, wanted) in [
            ([[7, -5, 0], [0, -2, 0]], [0, 0, 0]),
            ([[7, -5, 0], [0, 0, 3]], [2, 0, 3]),
            ([[2, -5, 0], [0, 0, 9]], [0, 0, 6]),
            ([[-1, 4, 1], [3, 0, 0]], [2, 4, 1]),
        ] {
            let books = Books::new(&[], 3, 2);
            for (receiver, counts) in books.rx.iter().zip(counts) {
                for (port, count) in receiver.ports.iter().zip(counts) {
                    port.missing_disturbed.add(i64::from(count) as u64);
                }
            }
            assert_eq!([0, 1, 2].map(|port| books.missing_disturbed(port)), wanted);
        }
    }

    #[test]
    fn earlier_runs_add_up() {
        let (run, mut earlier) = (TxBooks::default(), Earlier::default());
        let counts = [1, 2, 3, 4, 5, 6, 7, 8];
        let cells = [
            &run.accepted,
            &run.bytes,
            &run.lost_at_ingress,
            &run.refused,
            &run.late,
            &run.intended,
            &run.accepted_disturbed,
            &run.lost_disturbed,
        ];
        cells.iter().zip(counts).for_each(|(cell, count)| cell.add(count));
        earlier.add(&run);
        earlier.add(&run);
        let Earlier { accepted, bytes, lost_at_ingress, refused, late, .. } = earlier;
        let Earlier { intended, accepted_disturbed, lost_disturbed, .. } = earlier;
        let sums = [
            accepted,
            bytes,
            lost_at_ingress,
            refused,
            late,
            intended,
            accepted_disturbed,
            lost_disturbed,
        ];
        assert_eq!(sums, counts.map(|count| 2 * count));
    }

    #[test]
    fn receiving_threads_add_up() {
        let all = Told { order: true, delays: true, ..Told::default() };
        let books = Books::new(&[Told::default(), all], 1, 2);
        books.rx[0].flows[1].received.add(3);
        books.rx[1].flows[1].received.add(4);
        books.rx[1].ports[0].foreign.add(2);
        assert_eq!(books.rx_sum(1, |flow| flow.received.get()), 7);
        assert_eq!(books.rx_sum(0, |flow| flow.received.get()), 0);
        assert_eq!(books.port_sum(0, |port| port.foreign.get()), 2);
        let told = |flow: usize| {
            let books = &books.rx[0].flows[flow];
            (books.sequence.extents().is_some(), books.delays.is_some())
        };
        assert_eq!((told(0), told(1)), ((false, false), (true, true)));
    }
}
