// SPDX-License-Identifier: BSD-3-Clause
//! The engine: one lcore that drains every port, then sends what is due.
//!
//! *Paced* sending is open loop: frame k has its slot, is offered once, at the slot or after it, and
//! is lost at ingress if the port has no room. *Flood* offers as fast as the port takes; a refused
//! frame is offered again. The packet path ([`Engine::step`]) allocates nothing and calls nothing but
//! the ports. Everything belongs to one thread; what it counts is in [`crate::books`].

pub mod io;
mod link;
mod poll;
mod receive;
mod runs;
mod transmit;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use packet::template::Template;

use crate::books::Books;
use crate::pacing::{Interval, Schedule};
use io::Io;
pub use link::Link;
pub use poll::{Command, Load, Source, run};
use runs::Runs;

/// The run of a flow that has not been started: no frame is of it.
const NEVER: u16 = 0x100;

/// How frames leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At their slots; a frame without room is lost.
    Paced,
    /// As fast as the port takes them.
    Flood,
}

/// What does not change while the program runs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How frames leave.
    pub mode: Mode,
    /// Cycles per second.
    pub hz: u64,
    /// A frame offered more than this many cycles after its slot is late.
    pub late_after: u64,
}

/// How long a flow lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Until it is stopped.
    Endless,
    /// So many frames.
    Frames(u64),
    /// So many cycles (flood only; paced flows count frames).
    Cycles(u64),
}

/// A flow as the engine wants it.
#[derive(Clone, Debug)]
pub struct FlowSetup {
    /// Writes its frames.
    pub template: Template,
    /// Index of the sending port.
    pub port: usize,
    /// Ports where its frames belong, as bits.
    pub rx_mask: u64,
    /// Cycles between two frames.
    pub interval: Interval,
    /// How long it lasts.
    pub limit: Limit,
}

#[derive(Debug)]
struct Flow {
    setup: FlowSetup,
    run: u16,
    schedule: Schedule,
    /// Frames still to be built, and still to be accepted or lost.
    unbuilt: u64,
    unsettled: u64,
    /// When a flood ends.
    end: u64,
    active: bool,
}

/// The sending side of a port.
#[derive(Debug, Default)]
struct Lane {
    active: Vec<u16>,
    /// Paced, with several flows: next slot and flow.
    heap: BinaryHeap<Reverse<(u64, u16)>>,
    queued: Runs,
    turn: usize,
    /// When the first of its floods ends.
    end: u64,
}

/// Flows, their state, and the books.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    flows: Vec<Flow>,
    lanes: Vec<Lane>,
    books: Arc<Books>,
    run: u8,
}

impl Engine {
    /// An engine without flows.
    pub fn new(settings: Settings) -> Self {
        Engine { settings, flows: Vec::new(), lanes: Vec::new(), books: Arc::default(), run: 0 }
    }

    /// Replaces all flows; none is active. Frames still queued are the caller's to discard.
    pub fn load(&mut self, flows: Vec<FlowSetup>, ports: usize, books: Arc<Books>) {
        for flow in &self.books.flows {
            flow.transmitting.store(false, Ordering::Release);
        }
        let count = flows.len();
        self.lanes = std::iter::repeat_with(|| Lane {
            active: Vec::with_capacity(count),
            heap: BinaryHeap::with_capacity(count),
            ..Lane::default()
        })
        .take(ports)
        .collect();
        let idle = |setup| Flow {
            setup,
            run: NEVER,
            schedule: Schedule::default(),
            unbuilt: 0,
            unsettled: 0,
            end: 0,
            active: false,
        };
        self.flows = flows.into_iter().map(idle).collect();
        self.books = books;
    }

    /// Whether any flow transmits.
    pub fn is_transmitting(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.active.is_empty())
    }

    /// Starts these flows, from their first frame, with empty books. Flows that transmit already
    /// begin again. Ports' books are emptied when nothing transmits.
    pub fn start(&mut self, which: &[usize], now: u64) {
        self.stop(which, now);
        if !self.is_transmitting() {
            self.books.ports.iter().for_each(|port| port.clear());
        }
        self.run = self.run.wrapping_add(1);
        let parts = which.len() as u64;
        for (part, &index) in which.iter().enumerate() {
            let (Some(flow), Some(books)) =
                (self.flows.get_mut(index), self.books.flows.get(index))
            else {
                continue;
            };
            books.clear();
            flow.run = u16::from(self.run);
            flow.setup.template.restart(self.run);
            // Flows of one rate do not all send at the same moment.
            let interval = flow.setup.interval;
            flow.schedule = Schedule::new(now, interval.part(part as u64, parts), interval);
            flow.end = u64::MAX;
            (flow.unbuilt, flow.unsettled) = (u64::MAX, u64::MAX);
            match flow.setup.limit {
                Limit::Endless => {}
                Limit::Frames(frames) => {
                    (flow.unbuilt, flow.unsettled) = (frames, frames);
                    books.intended.set(frames);
                }
                Limit::Cycles(cycles) => flow.end = now.saturating_add(cycles),
            }
            if let Some(lane) = self.lanes.get_mut(flow.setup.port) {
                flow.active = true;
                books.transmitting.store(true, Ordering::Release);
                lane.active.push(index as u16);
            }
        }
        self.arrange_all();
    }

    /// Stops these flows. Slots that were due and not served stay in the books as intended.
    pub fn stop(&mut self, which: &[usize], now: u64) {
        for &index in which {
            let Some(flow) = self.flows.get_mut(index).filter(|flow| flow.active) else { continue };
            if self.settings.mode == Mode::Paced {
                if let Some(books) = self.books.flows.get(index) {
                    books.intended.set(books.attempted() + flow.schedule.due(now, flow.unbuilt));
                }
            }
            flow.unbuilt = 0;
            Self::finish(flow, index as u16, &mut self.lanes, &self.books);
        }
        self.arrange_all();
    }

    fn finish(flow: &mut Flow, index: u16, lanes: &mut [Lane], books: &Books) {
        flow.active = false;
        if let Some(lane) = lanes.get_mut(flow.setup.port) {
            lane.active.retain(|active| *active != index);
        }
        if let Some(books) = books.flows.get(usize::from(index)) {
            books.transmitting.store(false, Ordering::Release);
        }
    }

    fn arrange_all(&mut self) {
        for port in 0..self.lanes.len() {
            self.arrange(port);
        }
    }

    /// Sets the heap of a port up anew. Allocates nothing: the heap has room for all flows.
    fn arrange(&mut self, port: usize) {
        let Some(lane) = self.lanes.get_mut(port) else { return };
        lane.heap.clear();
        lane.turn = 0;
        lane.end = u64::MAX;
        for &index in &lane.active {
            if let Some(flow) = self.flows.get(usize::from(index)) {
                lane.end = lane.end.min(flow.end);
                lane.heap.push(Reverse((flow.schedule.slot(), index)));
            }
        }
    }

    /// Drains every port, then sends what is due on each. Returns whether there was anything to do.
    #[inline]
    pub fn step<I: Io>(&mut self, ios: &mut [I], now: impl Fn() -> u64) -> bool {
        let mut busy = false;
        for (port, io) in ios.iter_mut().enumerate() {
            busy |= self.drain(port, io);
        }
        for (port, io) in ios.iter_mut().enumerate() {
            match self.lanes.get(port) {
                Some(lane) if !lane.active.is_empty() => self.transmit(port, io, now()),
                // What a stopped flood has left.
                Some(lane) if lane.queued.frames() > 0 => self.drop_queued(port, io),
                _ => continue,
            }
            busy = true;
        }
        busy
    }

    fn drop_queued<I: Io>(&mut self, port: usize, io: &mut I) {
        io.discard();
        if let Some(lane) = self.lanes.get_mut(port) {
            lane.queued = Runs::default();
        }
    }

    /// Ends the port's flows that have nothing left to send, or whose time is over.
    #[cold]
    fn finish_settled(&mut self, port: usize, now: u64) {
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if flow.active && flow.setup.port == port && (flow.unsettled == 0 || now >= flow.end) {
                Self::finish(flow, index as u16, &mut self.lanes, &self.books);
            }
        }
        self.arrange(port);
    }
}

#[cfg(test)]
mod tests;
