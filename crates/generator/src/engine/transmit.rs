// SPDX-License-Identifier: BSD-3-Clause
//! The sending half of the packet path.

use std::cmp::Reverse;

use packet::signature;

use super::io::{BURST, Frame, Transmit};
use super::runs::Runs;
use super::sender::{Flow, Sender, follow};
use super::{Limit, Mode};
use crate::books::TxBooks;

impl Sender {
    /// Sends due frames on every queue, at most a burst each. Returns true if anything remains to
    /// be sent.
    #[inline]
    pub fn transmit<T: Transmit>(&mut self, queues: &mut [T], now: impl Fn() -> u64) -> bool {
        let mut busy = false;
        for (lane, queue) in queues.iter_mut().enumerate() {
            match self.lanes.get(lane) {
                Some(state) if !state.active.is_empty() => match self.settings.mode {
                    Mode::Paced => self.pace(lane, queue, now()),
                    Mode::Flood => self.flood(lane, queue, now()),
                },
                // Frames left from a stopped flood.
                Some(state) if state.queued.frames() > 0 && state.paused == 0 => {
                    self.drop_queued(lane, queue);
                }
                _ => continue,
            }
            busy = true;
        }
        busy
    }

    fn drop_queued<T: Transmit>(&mut self, lane: usize, queue: &mut T) {
        queue.discard();
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.queued = Runs::default();
        }
    }

    /// Sends the frames that are due, at most a burst.
    #[inline]
    fn pace<T: Transmit>(&mut self, at: usize, queue: &mut T, now: u64) {
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let late_after = self.settings.late_after;
        let mut earliest = now;
        // Consume the slots.
        if let [only] = *lane.active.as_slice() {
            let Some(flow) = self.flows.get_mut(usize::from(only)) else { return };
            let room = flow.unbuilt.min(BURST as u64) as usize;
            let (mut n, mut late) = (0, 0);
            let first = flow.timetable.slot();
            earliest = first;
            let (mut slot, mut last) = (first, first);
            while n < room && slot <= now && slot < flow.end {
                late += u64::from(now - slot > late_after);
                flow.timetable.advance();
                last = slot;
                slot = flow.timetable.slot();
                n += 1;
            }
            if n == 0 {
                if now >= flow.end {
                    self.finish_settled(at, now);
                }
                return;
            }
            flow.unbuilt -= n as u64;
            lane.queued.push(only, n);
            if let Some(books) = self.books.tx.get(usize::from(flow.setup.index)) {
                flow.departures.see_burst(&books.gaps, now, n as u32);
                enter_slots(books, (first, last), late, now);
            }
        } else {
            while lane.queued.frames() < BURST {
                let Some(mut top) = lane.heap.peek_mut() else { break };
                let Reverse((slot, local)) = *top;
                if slot > now {
                    break;
                }
                let Some(flow) = self.flows.get_mut(usize::from(local)) else { return };
                if slot >= flow.end {
                    *top = Reverse((u64::MAX, local));
                    continue;
                }
                earliest = earliest.min(slot);
                flow.timetable.advance();
                flow.unbuilt -= 1;
                let next = if flow.unbuilt > 0 { flow.timetable.slot() } else { u64::MAX };
                *top = Reverse((next, local));
                drop(top);
                lane.queued.push(local, 1);
                if let Some(books) = self.books.tx.get(usize::from(flow.setup.index)) {
                    let late = u64::from(now - slot > late_after);
                    flow.departures.see_burst(&books.gaps, now, 1);
                    enter_slots(books, (slot, slot), late, now);
                }
            }
            if lane.queued.frames() == 0 {
                if now >= lane.end {
                    self.finish_settled(at, now);
                }
                return;
            }
        }
        if let Some(gaps) = lane.whole_port.and_then(|port| self.books.gaps.get(port)) {
            lane.departures.see_burst(gaps, now, lane.queued.frames() as u32);
        }
        if lane.follow(now, now - earliest, late_after) {
            mark(&self.flows, at, &self.books.tx, lane.behind.is_some());
        }
        let disturbed = lane.behind.is_some();
        // Write and offer. No free buffers means that the port holds them all: its ring is full.
        let resident = queue.resident();
        let (written, accepted) = match queue.reserve(lane.queued.frames()) {
            Some(frames) => {
                write(&mut self.flows, &lane.queued, frames, &mut lane.lens, now, resident);
                (true, queue.offer())
            }
            None => (false, 0),
        };
        let (mut ended, tagged) = (Ended::default(), self.tagged);
        let (flows, books) = (&mut self.flows, &self.books.tx);
        let mut settle = |local: u16, count: u64, lens: Option<&[u16]>| {
            let Some(flow) = flows.get_mut(usize::from(local)) else { return };
            let Some(books) = books.get(usize::from(flow.setup.index)) else { return };
            match lens {
                Some(lens) => {
                    books.accepted.add(count);
                    books.bytes.add(bytes_of(flow, count, lens));
                }
                None => books.lost_at_ingress.add(count),
            }
            if tagged && written {
                enter_tagged(flow, books, count, lens, now);
            }
            if disturbed {
                let cell =
                    if lens.is_some() { &books.accepted_disturbed } else { &books.lost_disturbed };
                cell.add(count);
            }
            // For a flow that is limited by time and whose slots were not counted beforehand, the
            // intended frames are those served.
            if flow.setup.limit == Limit::Endless || flow.end != u64::MAX {
                books.intended.add(count);
            }
            flow.unsettled -= count;
            if flow.unsettled == 0 {
                ended.push(local);
            }
        };
        let mut lens = lane.lens.as_slice();
        lane.queued.take_front(accepted, |local, count| {
            let (own, rest) = lens.split_at(lens.len().min(count as usize));
            lens = rest;
            settle(local, count, Some(own));
        });
        if lane.queued.frames() > 0 {
            lane.queued.take_front(BURST, |local, count| settle(local, count, None));
            queue.discard();
        }
        if now >= lane.end {
            self.finish_settled(at, now);
        } else if ended.count > 0 {
            self.finish_some(at, ended.flows());
        }
    }

    /// Fills the burst and offers it; refused frames stay for the next call.
    #[inline]
    fn flood<T: Transmit>(&mut self, at: usize, queue: &mut T, now: u64) {
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let over = now >= lane.end;
        let mut ended = Ended::default();
        if lane.queued.frames() > 0 {
            restamp(&self.flows, &lane.queued, queue.queued(), now);
        }
        let share = BURST.div_ceil(lane.active.len().max(1));
        for _ in 0..lane.active.len() {
            let queued = lane.queued.frames();
            let room = BURST - queued;
            if room == 0 {
                break;
            }
            lane.turn = if lane.turn >= lane.active.len() { 0 } else { lane.turn };
            let Some(&local) = lane.active.get(lane.turn) else { break };
            lane.turn += 1;
            let Some(flow) = self.flows.get_mut(usize::from(local)) else { break };
            if now >= flow.end {
                continue;
            }
            let n = (room.min(share) as u64).min(flow.unbuilt) as usize;
            let resident = queue.resident();
            let Some(frames) = queue.reserve(n) else { break };
            flow.setup.source.write(frames, stamp(flow, now), resident);
            note_lens(flow, frames, lane.lens.iter_mut().skip(queued));
            if flow.unbuilt != u64::MAX {
                flow.unbuilt -= n as u64;
            }
            if n > 0 {
                lane.queued.push(local, n);
            }
        }
        let (offered, tagged) = (lane.queued.frames(), self.tagged);
        if offered > 0 {
            let (flows, books) = (&mut self.flows, &self.books.tx);
            let book = |flows: &[Flow], local: u16| -> Option<&TxBooks> {
                books.get(usize::from(flows.get(usize::from(local))?.setup.index))
            };
            lane.queued.each(|local, _| {
                if let Some(books) = book(flows, local) {
                    enter_offer(books, now);
                }
            });
            let accepted = queue.offer();
            let mut lens = lane.lens.as_slice();
            lane.queued.take_front(accepted, |local, count| {
                let (own, rest) = lens.split_at(lens.len().min(count as usize));
                lens = rest;
                let Some(flow) = flows.get_mut(usize::from(local)) else { return };
                if let Some(books) = books.get(usize::from(flow.setup.index)) {
                    books.accepted.add(count);
                    books.bytes.add(bytes_of(flow, count, own));
                    if tagged {
                        enter_tagged(flow, books, count, Some(own), now);
                    }
                }
                if flow.unsettled != u64::MAX {
                    flow.unsettled -= count;
                    if flow.unsettled == 0 {
                        ended.push(local);
                    }
                }
            });
            if accepted < offered {
                lane.lens.copy_within(accepted..offered, 0);
                lane.queued.each(|local, count| {
                    if let Some(books) = book(flows, local) {
                        books.refused.add(count);
                    }
                });
            }
        }
        if over {
            self.finish_settled(at, now);
        } else if ended.count > 0 {
            self.finish_some(at, ended.flows());
        }
    }
}

/// Flows of one burst that have nothing left to send.
#[derive(Default)]
struct Ended {
    places: [u16; BURST],
    count: usize,
}

impl Ended {
    #[cold]
    fn push(&mut self, flow: u16) {
        if let Some(place) = self.places.get_mut(self.count) {
            *place = flow;
            self.count += 1;
        }
    }

    fn flows(&self) -> &[u16] {
        self.places.get(..self.count).unwrap_or_default()
    }
}

/// A disturbance begins or ends with the next frames of a queue's flows.
#[cold]
fn mark(flows: &[Flow], lane: usize, books: &[TxBooks], begins: bool) {
    for flow in flows.iter().filter(|flow| flow.setup.lane == lane) {
        if let Some(books) = books.get(usize::from(flow.setup.index)) {
            follow(flow, books, begins);
        }
    }
}

/// Records that a flow's frames of the slots from `first` to `last` are offered now.
#[inline]
fn enter_slots(books: &TxBooks, (first, last): (u64, u64), late: u64, now: u64) {
    if late > 0 {
        books.late.add(late);
    }
    if books.first_tsc.get() == 0 {
        books.first_slot.set(first);
    }
    books.last_slot.set(last);
    enter_offer(books, now);
}

#[inline]
fn enter_offer(books: &TxBooks, now: u64) {
    if books.first_tsc.get() == 0 {
        books.first_tsc.set(now);
        books.began_tsc.set(now);
    }
    books.last_tsc.set(now);
}

/// The stamp for frames that leave now; 0 for those without one.
#[inline]
fn stamp(flow: &Flow, now: u64) -> u64 {
    if flow.setup.stamped { now } else { 0 }
}

/// Updates the stamps of refused frames to now: their latency starts with the offer that the port
/// accepts.
fn restamp<F: Frame>(flows: &[Flow], queued: &Runs, mut frames: &mut [F], now: u64) {
    queued.each(|local, count| {
        let taken = std::mem::take(&mut frames);
        let (own, rest) = taken.split_at_mut(taken.len().min(count as usize));
        frames = rest;
        if flows.get(usize::from(local)).is_some_and(|flow| flow.setup.stamped) {
            let bytes = own.iter_mut().filter_map(Frame::bytes_mut);
            bytes.for_each(|frame| signature::restamp(frame, now));
        }
    });
}

/// Bytes of `count` frames of a flow, from the noted lengths if they differ.
#[inline]
fn bytes_of(flow: &Flow, count: u64, lens: &[u16]) -> u64 {
    match flow.len {
        Some(len) => count * u64::from(len),
        None => lens.iter().map(|len| u64::from(*len)).sum(),
    }
}

/// Counts frames by a flow's metric tags, if it has any: sent frames, with their lengths if they differ, or, without `lens`,
/// lost ones.
#[inline(never)]
fn enter_tagged(flow: &Flow, books: &TxBooks, count: u64, lens: Option<&[u16]>, now: u64) {
    let Some(tagged) = &books.tagged else { return };
    match lens {
        Some(lens) => {
            let len = |at: usize| flow.len.or(lens.get(at).copied()).unwrap_or(0).into();
            tagged.accept(count, len, now);
        }
        None => tagged.skip(count),
    }
}

/// Notes the lengths of a flow's frames if they differ.
#[inline]
fn note_lens<'a, F: Frame>(flow: &Flow, frames: &[F], lens: impl Iterator<Item = &'a mut u16>) {
    if flow.len.is_none() {
        frames.iter().zip(lens).for_each(|(frame, len)| *len = frame.len() as u16);
    }
}

/// Writes the queued frames and notes their lengths.
#[inline]
fn write<F: Frame>(
    flows: &mut [Flow],
    queued: &Runs,
    mut frames: &mut [F],
    lens: &mut [u16; BURST],
    now: u64,
    resident: bool,
) {
    let mut at = 0;
    queued.each(|local, count| {
        let taken = std::mem::take(&mut frames);
        let (own, rest) = taken.split_at_mut(taken.len().min(count as usize));
        frames = rest;
        if let Some(flow) = flows.get_mut(usize::from(local)) {
            flow.setup.source.write(own, stamp(flow, now), resident);
            note_lens(flow, own, lens.iter_mut().skip(at));
        }
        at += own.len();
    });
}
