// SPDX-License-Identifier: BSD-3-Clause
//! The books: what became of every frame, per flow and per port.
//!
//! The engine is the only writer; anybody may read at any time. `attempted` is not stored but is the
//! sum of `accepted`, `lost_at_ingress` and `refused`, so that the books close at every moment.

use std::sync::atomic::{AtomicBool, Ordering};

use measure::Cell;

/// A flow since its last start.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct FlowBooks {
    /// Frames that the port took.
    pub accepted: Cell,
    /// Paced: frames that found the link's ring full at their slot.
    pub lost_at_ingress: Cell,
    /// Flood: offers that the port refused; the frame was offered again.
    pub refused: Cell,
    /// Paced: frames offered later than their slot by more than the tolerance.
    pub late: Cell,
    /// Frames that came back on a port where they belong.
    pub received: Cell,
    /// Frames due by the schedule; meaningless in an endless flood.
    pub intended: Cell,
    /// TSC of the first offer, 0 before it.
    pub first_tsc: Cell,
    /// TSC of the last offer so far.
    pub last_tsc: Cell,
    /// Whether the flow transmits.
    pub transmitting: AtomicBool,
}

impl FlowBooks {
    /// Frames offered to the port: accepted, lost at ingress or refused.
    pub fn attempted(&self) -> u64 {
        self.accepted.get() + self.lost_at_ingress.get() + self.refused.get()
    }

    /// From the first offer to the last, in cycles.
    pub fn tx_duration_tsc(&self) -> u64 {
        self.last_tsc.get().saturating_sub(self.first_tsc.get())
    }

    /// Whether the flow transmits.
    pub fn is_transmitting(&self) -> bool {
        self.transmitting.load(Ordering::Acquire)
    }

    /// Starts a new book.
    pub fn clear(&self) {
        for cell in [
            &self.accepted,
            &self.lost_at_ingress,
            &self.refused,
            &self.late,
            &self.received,
            &self.intended,
            &self.first_tsc,
            &self.last_tsc,
        ] {
            cell.set(0);
        }
    }
}

/// What a port received since traffic last started from rest.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct PortBooks {
    /// All frames.
    pub frames: Cell,
    /// Their bytes, without FCS.
    pub bytes: Cell,
    /// Frames of the flows' present runs that belong here.
    pub received: Cell,
    /// Frames without our signature.
    pub foreign: Cell,
    /// Frames of ours from before the flow's last start.
    pub stale: Cell,
    /// Frames of ours that belong to other ports.
    pub misdirected: Cell,
}

impl PortBooks {
    /// Starts a new book.
    pub fn clear(&self) {
        for cell in [
            &self.frames,
            &self.bytes,
            &self.received,
            &self.foreign,
            &self.stale,
            &self.misdirected,
        ] {
            cell.set(0);
        }
    }
}

/// The books of one configuration.
#[derive(Debug, Default)]
pub struct Books {
    /// By index of the flow.
    pub flows: Box<[FlowBooks]>,
    /// By index of the port.
    pub ports: Box<[PortBooks]>,
}

impl Books {
    /// Empty books.
    pub fn new(flows: usize, ports: usize) -> Self {
        Books {
            flows: std::iter::repeat_with(FlowBooks::default).take(flows).collect(),
            ports: std::iter::repeat_with(PortBooks::default).take(ports).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempted_is_the_sum_of_its_fates() {
        let books = Books::new(1, 0);
        let flow = &books.flows[0];
        flow.accepted.add(5);
        flow.lost_at_ingress.add(2);
        flow.refused.add(1);
        flow.late.add(9);
        assert_eq!(flow.attempted(), 8);
        flow.clear();
        assert_eq!((flow.attempted(), flow.late.get()), (0, 0));
    }
}
