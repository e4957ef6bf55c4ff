// SPDX-License-Identifier: BSD-3-Clause
//! The sending half of an lcore: its flows, their start and end, and their progress.
//!
//! *Paced* sending is open loop: frame k has its slot, is offered once, in the slot or later, and
//! is lost at ingress if the port has no room. *Flood* offers frames as fast as the port accepts
//! them; a refused frame is offered again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use measure::Departures;
use packet::writer::FrameWriter;

use super::io::BURST;
use super::runs::Runs;
use super::source::FrameSource;
use super::timetable::{Tact, Timetable};
use super::{FlowSetup, Limit, Mode, Settings};
use crate::books::{Books, State, TxBooks};
use crate::pacing::FrameRate;

/// A flow that this lcore sends.
#[derive(Debug)]
pub(super) struct Flow {
    pub setup: FlowSetup,
    pub departures: Departures,
    /// Length of its frames, if they all have the same.
    pub len: Option<u16>,
    pub timetable: Timetable,
    /// Frames still to be built, and still to be accepted or lost.
    pub unbuilt: u64,
    pub unsettled: u64,
    /// From this time on, no slot is served.
    pub end: u64,
    /// When the flow started, plus its pauses.
    since: u64,
    /// When it was paused.
    paused: Option<u64>,
    active: bool,
}

/// If a queue has at most so many flows, one that has ended is removed at once.
const FEW_FLOWS: usize = 64;

/// The sending side of a queue.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Flows that send, as indices into [`Sender::flows`]; with many, also some that have ended.
    pub active: Vec<u16>,
    /// How many of them have ended.
    ended: usize,
    /// Paced, with several flows: next slot and flow.
    pub heap: BinaryHeap<Reverse<(u64, u16)>>,
    pub queued: Runs,
    /// Lengths of the queued frames of flows whose frames have several.
    pub lens: [u16; BURST],
    pub turn: usize,
    /// When the first of its flows ends by time.
    pub end: u64,
    /// Number of paused flows, whose queued frames wait too.
    pub paused: usize,
    /// Paced: set if it is behind its slots, or was so recently that latencies of what it sends are
    /// not valid.
    pub behind: Option<Behind>,
    /// The port, if this is its only queue.
    pub whole_port: Option<usize>,
    pub departures: Departures,
}

/// A queue that sends late, in cycles. `latest`: the largest delay. `until`: when it stops being
/// disturbed. After a gap, all frames that were due in it leave at once; a forwarder with twice the
/// rate needs as long as the gap to catch up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    latest: u64,
    until: u64,
}

impl Lane {
    /// To be called before frames leave. `late_by`: how many cycles after its slot the first one
    /// is. Returns true if a disturbance begins or ends here.
    #[inline]
    pub fn follow(&mut self, now: u64, late_by: u64, late_after: u64) -> bool {
        if late_by <= late_after && self.behind.is_none() {
            return false;
        }
        self.follow_late(now, late_by, late_after)
    }

    #[cold]
    fn follow_late(&mut self, now: u64, late_by: u64, late_after: u64) -> bool {
        match self.behind {
            before if late_by > late_after => {
                let latest = before.map_or(0, |behind| behind.latest).max(late_by);
                self.behind = Some(Behind { latest, until: now.saturating_add(latest) });
                before.is_none()
            }
            Some(behind) if now >= behind.until => {
                self.behind = None;
                true
            }
            _ => false,
        }
    }

    /// Notes the length of a flow's queued frames, which so far all had the same.
    fn note_len(&mut self, flow: usize, len: u16) {
        let (mut at, lens) = (0, &mut self.lens);
        self.queued.each(|local, count| {
            let own = lens.iter_mut().skip(at).take(count as usize);
            if usize::from(local) == flow {
                own.for_each(|place| *place = len);
            }
            at += count as usize;
        });
    }
}

/// A new rate, or new sizes, for a flow that may run.
#[derive(Debug)]
pub struct Change {
    /// The flow, as an index into the configuration.
    pub flow: usize,
    /// Its new rate; recorded slots do not change.
    pub rate: Option<FrameRate>,
    /// A writer of the same frames with other sizes. Afterwards, the previous one.
    pub writer: Option<Box<FrameWriter>>,
}

/// Another writer of a flow's frames. They differ only in header fields.
#[derive(Debug)]
pub struct NewWriter {
    /// The flow, as an index into the configuration.
    pub flow: usize,
    /// The writer. Afterwards, the previous one.
    pub writer: Box<FrameWriter>,
}

/// Flows, their state, and their books.
#[derive(Debug)]
pub(super) struct Sender {
    pub settings: Settings,
    pub flows: Vec<Flow>,
    pub lanes: Vec<Lane>,
    pub books: Arc<Books>,
    /// True if any flow has metric tags of what is sent.
    pub tagged: bool,
    /// By the flow's index in the configuration: its index here.
    places: Vec<Option<u16>>,
}

impl Sender {
    /// A sender of these flows; none is active. For each of its queues, `lanes` has the port if
    /// this is the port's only queue.
    pub fn new(
        settings: Settings,
        flows: Vec<FlowSetup>,
        lanes: Vec<Option<usize>>,
        books: Arc<Books>,
    ) -> Self {
        let count = flows.len();
        let lane = |whole_port| Lane {
            whole_port,
            active: Vec::with_capacity(count),
            heap: BinaryHeap::with_capacity(count),
            end: u64::MAX,
            ..Lane::default()
        };
        let idle = |setup: FlowSetup| Flow {
            timetable: setup.pace.from(0, 0, 1),
            departures: Departures::default(),
            len: setup.source.fixed_len(),
            setup,
            unbuilt: 0,
            unsettled: 0,
            end: u64::MAX,
            since: 0,
            paused: None,
            active: false,
        };
        let mut places = Vec::new();
        for (place, flow) in flows.iter().enumerate() {
            let index = usize::from(flow.index);
            places.resize(places.len().max(index + 1), None);
            if let Some(entry) = places.get_mut(index) {
                *entry = u16::try_from(place).ok();
            }
        }
        Sender {
            settings,
            flows: flows.into_iter().map(idle).collect(),
            lanes: lanes.into_iter().map(lane).collect(),
            tagged: books.tx.iter().any(|flow| flow.tagged.is_some()),
            books,
            places,
        }
    }

    /// Returns true if any flow is sending.
    pub fn is_transmitting(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.active.is_empty())
    }

    /// The index of a flow of the configuration in [`Sender::flows`], if it belongs to this sender.
    fn place(&self, index: usize) -> Option<usize> {
        self.places.get(index).copied().flatten().map(usize::from)
    }

    /// Stops those of these flows that belong to this sender, and does not touch their books until
    /// they start again: queued frames of a flood are not counted when they leave.
    pub fn forget(&mut self, which: &[usize], now: u64) {
        self.stop(which, now);
        for &index in which {
            let Some(local) = self.place(index) else { continue };
            let lane = self.flows.get(local).map(|flow| flow.setup.lane);
            if let Some(lane) = lane.and_then(|lane| self.lanes.get_mut(lane)) {
                lane.queued.disown(local as u16);
            }
        }
    }

    /// Starts those of these flows that belong to this sender at `at`, from their first frame, with
    /// run number `run`. They were forgotten ([`Sender::forget`]), and their books are empty.
    pub fn start(&mut self, which: &[usize], run: u8, at: u64) {
        let parts = which.len() as u64;
        for (part, &index) in which.iter().enumerate() {
            let Some(local) = self.place(index) else { continue };
            let Some(flow) = self.flows.get_mut(local) else { continue };
            let Some(books) = self.books.tx.get(index) else { continue };
            flow.setup.source.restart(run);
            flow.departures.restart();
            flow.timetable = flow.setup.pace.from(at, part as u64, parts);
            flow.since = at;
            flow.end = u64::MAX;
            (flow.unbuilt, flow.unsettled) = (u64::MAX, u64::MAX);
            match flow.setup.limit {
                Limit::Endless => {}
                Limit::Frames(frames) => (flow.unbuilt, flow.unsettled) = (frames, frames),
                Limit::Nanoseconds(time) => {
                    let begin = at.saturating_add(flow.setup.pace.delay.whole_cycles());
                    let slots = flow.setup.pace.slots_in(time);
                    match (self.settings.mode, slots) {
                        (Mode::Paced, Some(slots)) => {
                            (flow.unbuilt, flow.unsettled) = (slots, slots);
                        }
                        _ => flow.end = begin.saturating_add(self.settings.cycles(time)),
                    }
                }
            }
            if flow.unsettled != u64::MAX {
                books.intended.set(flow.unsettled);
            }
            Self::activate(flow, local, &mut self.lanes, books);
        }
        self.arrange_all();
    }

    fn activate(flow: &mut Flow, local: usize, lanes: &mut [Lane], books: &TxBooks) {
        if let Some(lane) = lanes.get_mut(flow.setup.lane) {
            if lane.active.is_empty() {
                // The time since then is a rest, not a gap; nothing is late yet.
                lane.departures.restart();
                lane.behind = None;
            }
            follow(flow, books, lane.behind.is_some());
            flow.active = true;
            books.set_state(State::Started);
            lane.active.push(local as u16);
        }
    }

    /// Stops those of these flows that belong to this sender. Slots that were due and not served
    /// stay in the books as intended.
    pub fn stop(&mut self, which: &[usize], now: u64) {
        for &index in which {
            let Some(local) = self.place(index) else { continue };
            let Some(flow) = self.flows.get_mut(local) else { continue };
            if !flow.active && flow.paused.is_none() {
                continue;
            }
            let books = self.books.tx.get(usize::from(flow.setup.index));
            if let (Mode::Paced, Some(books)) = (self.settings.mode, books) {
                let now = flow.paused.unwrap_or(now).min(flow.end.saturating_sub(1));
                books.intended.set(books.attempted() + flow.timetable.due(now, flow.unbuilt));
            }
            flow.unbuilt = 0;
            if let (Some(_), Some(lane)) = (flow.paused.take(), self.lanes.get_mut(flow.setup.lane))
            {
                lane.paused -= 1;
            }
            Self::finish(flow, &self.books, State::Stopped);
        }
        self.arrange_all();
    }

    /// Pauses those of these flows that belong to this sender. Their slots are postponed when they
    /// resume.
    pub fn pause(&mut self, which: &[usize], now: u64) {
        for &index in which {
            let Some(local) = self.place(index) else { continue };
            let Some(flow) = self.flows.get_mut(local).filter(|flow| flow.active) else { continue };
            flow.paused = Some(now);
            if let Some(lane) = self.lanes.get_mut(flow.setup.lane) {
                lane.paused += 1;
            }
            Self::finish(flow, &self.books, State::Paused);
        }
        self.arrange_all();
    }

    /// Resumes those of these flows that belong to this sender and are paused.
    pub fn resume(&mut self, which: &[usize], now: u64) {
        for &index in which {
            let Some(local) = self.place(index) else { continue };
            let Some(flow) = self.flows.get_mut(local) else { continue };
            let Some(paused) = flow.paused.take() else { continue };
            let Some(books) = self.books.tx.get(usize::from(flow.setup.index)) else { continue };
            if let Some(lane) = self.lanes.get_mut(flow.setup.lane) {
                lane.paused -= 1;
            }
            let waited = now.saturating_sub(paused);
            flow.timetable.put_off(waited);
            flow.since = flow.since.saturating_add(waited);
            flow.end = flow.end.saturating_add(waited);
            // So that the pause is neither a gap nor a pacing error.
            for cell in [&books.first_tsc, &books.first_slot] {
                if cell.get() > 0 {
                    cell.set(cell.get().saturating_add(waited));
                }
            }
            flow.departures.restart();
            Self::activate(flow, local, &mut self.lanes, books);
        }
        for lane in 0..self.lanes.len() {
            // After a change of rate, a paused flow may have nothing left to send.
            self.finish_settled(lane, now);
        }
    }

    /// Gives flows that were forgotten ([`Sender::forget`]) other writers.
    pub fn rewrite(&mut self, writers: &mut [NewWriter]) {
        for new in writers {
            let Some(local) = self.place(new.flow) else { continue };
            let source = self.flows.get_mut(local).map(|flow| &mut flow.setup.source);
            if let Some(FrameSource::Writer(own)) = source {
                std::mem::swap(own, &mut new.writer);
            }
        }
    }

    /// Changes rates and sizes, also of running flows.
    pub fn change(&mut self, changes: &mut [Change], now: u64) {
        for change in changes {
            let Some(local) = self.place(change.flow) else { continue };
            let Some(flow) = self.flows.get_mut(local) else { continue };
            if let Some(writer) = &mut change.writer {
                // Queued frames of a flood keep the length with which they were written.
                if let (Some(lane), Some(len)) = (self.lanes.get_mut(flow.setup.lane), flow.len) {
                    lane.note_len(local, len);
                }
                flow.len = None;
                flow.setup.source.go_on_with(writer);
            }
            if let Some(rate) = change.rate {
                set_rate(&self.settings, flow, rate, now, &self.books);
            }
        }
        for lane in 0..self.lanes.len() {
            // A flow whose time is over at the new rate is done.
            self.finish_settled(lane, now);
        }
    }

    /// Ends a flow; the caller then calls `arrange` for its queue.
    fn finish(flow: &mut Flow, books: &Books, state: State) {
        flow.active = false;
        if let Some(books) = books.tx.get(usize::from(flow.setup.index)) {
            books.set_state(state);
        }
    }

    fn arrange_all(&mut self) {
        for lane in 0..self.lanes.len() {
            self.arrange(lane);
        }
    }

    /// Removes ended flows from a queue and rebuilds its heap. Does not allocate: the heap has room
    /// for all flows.
    fn arrange(&mut self, lane: usize) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        let flows = &self.flows;
        lane.ended = 0;
        lane.active.retain(|local| flows.get(usize::from(*local)).is_some_and(|flow| flow.active));
        lane.heap.clear();
        lane.turn = 0;
        lane.end = u64::MAX;
        for &local in &lane.active {
            if let Some(flow) = self.flows.get(usize::from(local)) {
                lane.end = lane.end.min(flow.end);
                lane.heap.push(Reverse((flow.timetable.slot(), local)));
            }
        }
    }

    /// Ends flows of a queue that have nothing left to send. To remove one from the queue takes as long as there
    /// are flows, so with many it is done for half of them at a time.
    #[cold]
    pub fn finish_some(&mut self, lane: usize, ended: &[u16]) {
        let mut count = 0;
        for local in ended {
            let flow = self.flows.get_mut(usize::from(*local));
            if let Some(flow) = flow.filter(|flow| flow.active && flow.unsettled == 0) {
                Self::finish(flow, &self.books, State::Stopped);
                count += 1;
            }
        }
        let Some(state) = self.lanes.get_mut(lane) else { return };
        state.ended += count;
        if state.active.len() <= FEW_FLOWS || 2 * state.ended >= state.active.len() {
            self.arrange(lane);
        }
    }

    /// Ends the queue's flows that have nothing left to send, or whose time is over.
    #[cold]
    pub fn finish_settled(&mut self, lane: usize, now: u64) {
        for flow in &mut self.flows {
            let timed_out = now >= flow.end
                && (self.settings.mode == Mode::Flood || flow.timetable.slot() >= flow.end);
            if flow.active && flow.setup.lane == lane && (flow.unsettled == 0 || timed_out) {
                Self::finish(flow, &self.books, State::Stopped);
            }
        }
        self.arrange(lane);
    }
}

/// Marks a flow's next frames as disturbed or not, like its queue.
pub(super) fn follow(flow: &Flow, books: &TxBooks, disturbed: bool) {
    match flow.setup.source.sequence() {
        Some(next) if disturbed && !books.disturbed.last() => books.disturbed.begin(next),
        Some(next) if !disturbed && books.disturbed.last() => books.disturbed.end(next),
        _ => {}
    }
}

/// Gives a flow a new rate from `now` on, for the rest of its time.
fn set_rate(settings: &Settings, flow: &mut Flow, new: FrameRate, now: u64, books: &Books) {
    let Tact::Even { rate, interval, .. } = &mut flow.setup.pace.tact else { return };
    if *rate == new {
        return;
    }
    (*rate, *interval) = (new, new.interval(settings.hz));
    let interval = *interval;
    let now = flow.paused.unwrap_or(now);
    if !flow.active && flow.paused.is_none() {
        return;
    }
    let books = books.tx.get(usize::from(flow.setup.index));
    match books.is_some_and(|books| books.attempted() > 0) {
        true => flow.timetable.set_interval(interval, now),
        // Before the first frame, the next slot has no predecessor to count from.
        false => flow.timetable.begin_with(interval),
    }
    let Limit::Nanoseconds(time) = flow.setup.limit else { return };
    if settings.mode != Mode::Paced || flow.end != u64::MAX {
        return;
    }
    // The number of frames was computed at the start; compute that of the remaining time from the
    // next slot on.
    let begin = flow.since.saturating_add(flow.setup.pace.delay.whole_cycles());
    let passed = settings.nanoseconds(flow.timetable.slot().saturating_sub(begin));
    let left = new.frames_in(time.saturating_sub(passed));
    flow.unsettled = flow.unsettled - flow.unbuilt + left;
    flow.unbuilt = left;
    if let Some(books) = books {
        books.intended.set(books.attempted() + flow.unsettled);
    }
}
