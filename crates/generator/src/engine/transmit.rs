// SPDX-License-Identifier: BSD-3-Clause
//! The sending half of the packet path.

use std::cmp::Reverse;

use super::io::{BURST, Frame, Io};
use super::runs::Runs;
use super::{Engine, Flow, Limit, Mode};
use crate::books::FlowBooks;

impl Engine {
    /// Sends what is due on a port, at most a burst.
    #[inline]
    pub(super) fn transmit<I: Io>(&mut self, port: usize, io: &mut I, now: u64) {
        match self.settings.mode {
            Mode::Paced => self.pace(port, io, now),
            Mode::Flood => self.flood(port, io, now),
        }
    }

    /// Sends the frames that are due, at most a burst.
    #[inline]
    fn pace<I: Io>(&mut self, port: usize, io: &mut I, now: u64) {
        let Some(lane) = self.lanes.get_mut(port) else { return };
        let late_after = self.settings.late_after;
        // Take the slots.
        if let [only] = *lane.active.as_slice() {
            let Some(flow) = self.flows.get_mut(usize::from(only)) else { return };
            let room = flow.unbuilt.min(BURST as u64) as usize;
            let (mut n, mut late) = (0, 0);
            while n < room && flow.schedule.slot() <= now {
                late += u64::from(now - flow.schedule.slot() > late_after);
                flow.schedule.advance();
                n += 1;
            }
            if n == 0 {
                return;
            }
            flow.unbuilt -= n as u64;
            lane.queued.push(only, n);
            enter_offer(self.books.flows.get(usize::from(only)), late, now);
        } else {
            while lane.queued.frames() < BURST {
                let Some(mut top) = lane.heap.peek_mut() else { break };
                let Reverse((slot, index)) = *top;
                if slot > now {
                    break;
                }
                let Some(flow) = self.flows.get_mut(usize::from(index)) else { return };
                flow.schedule.advance();
                flow.unbuilt -= 1;
                *top = Reverse((
                    if flow.unbuilt > 0 { flow.schedule.slot() } else { u64::MAX },
                    index,
                ));
                drop(top);
                lane.queued.push(index, 1);
                enter_offer(
                    self.books.flows.get(usize::from(index)),
                    u64::from(now - slot > late_after),
                    now,
                );
            }
            if lane.queued.frames() == 0 {
                return;
            }
        }
        // Write and offer. Without buffers the port holds them all: its ring is full.
        let resident = io.resident();
        let accepted = match io.reserve(lane.queued.frames()) {
            Some(frames) => {
                write(&mut self.flows, &lane.queued, frames, resident);
                io.offer()
            }
            None => 0,
        };
        let mut done = false;
        let (flows, books) = (&mut self.flows, &self.books.flows);
        let mut settle = |index: u16, count: u64, accepted: bool| {
            if let (Some(flow), Some(books)) =
                (flows.get_mut(usize::from(index)), books.get(usize::from(index)))
            {
                if accepted {
                    books.accepted.add(count)
                } else {
                    books.lost_at_ingress.add(count)
                }
                if flow.setup.limit == Limit::Endless {
                    books.intended.add(count);
                }
                flow.unsettled -= count;
                done |= flow.unsettled == 0;
            }
        };
        lane.queued.take_front(accepted, |index, count| settle(index, count, true));
        if lane.queued.frames() > 0 {
            lane.queued.take_front(BURST, |index, count| settle(index, count, false));
            io.discard();
        }
        if done {
            self.finish_settled(port, now);
        }
    }

    /// Fills the burst up and offers it; what the port refuses stays for the next time.
    #[inline]
    fn flood<I: Io>(&mut self, port: usize, io: &mut I, now: u64) {
        let Some(lane) = self.lanes.get_mut(port) else { return };
        let mut over = now >= lane.end;
        let share = BURST.div_ceil(lane.active.len().max(1));
        for _ in 0..lane.active.len() {
            let room = BURST - lane.queued.frames();
            if room == 0 {
                break;
            }
            lane.turn = if lane.turn >= lane.active.len() { 0 } else { lane.turn };
            let Some(&index) = lane.active.get(lane.turn) else { break };
            lane.turn += 1;
            let Some(flow) = self.flows.get_mut(usize::from(index)) else { break };
            if now >= flow.end {
                continue;
            }
            let n = (room.min(share) as u64).min(flow.unbuilt) as usize;
            let resident = io.resident();
            let Some(frames) = io.reserve(n) else { break };
            for frame in frames {
                write_one(flow, frame, resident);
            }
            if flow.unbuilt != u64::MAX {
                flow.unbuilt -= n as u64;
            }
            if n > 0 {
                lane.queued.push(index, n);
            }
        }
        let offered = lane.queued.frames();
        if offered > 0 {
            lane.queued
                .each(|index, _| enter_offer(self.books.flows.get(usize::from(index)), 0, now));
            let accepted = io.offer();
            let (flows, books) = (&mut self.flows, &self.books.flows);
            lane.queued.take_front(accepted, |index, count| {
                if let (Some(flow), Some(books)) =
                    (flows.get_mut(usize::from(index)), books.get(usize::from(index)))
                {
                    books.accepted.add(count);
                    if flow.unsettled != u64::MAX {
                        flow.unsettled -= count;
                        over |= flow.unsettled == 0;
                    }
                }
            });
            lane.queued.each(|index, count| {
                if let Some(books) = books.get(usize::from(index)) {
                    books.refused.add(count);
                }
            });
        }
        if over {
            self.finish_settled(port, now);
        }
    }
}

#[inline]
fn enter_offer(books: Option<&FlowBooks>, late: u64, now: u64) {
    if let Some(books) = books {
        if late > 0 {
            books.late.add(late);
        }
        if books.first_tsc.get() == 0 {
            books.first_tsc.set(now);
        }
        books.last_tsc.set(now);
    }
}

#[inline]
fn write<F: Frame>(flows: &mut [Flow], queued: &Runs, frames: &mut [F], resident: bool) {
    let mut frames = frames.iter_mut();
    queued.each(|index, count| {
        if let Some(flow) = flows.get_mut(usize::from(index)) {
            for frame in frames.by_ref().take(count as usize) {
                write_one(flow, frame, resident);
            }
        }
    });
}

#[inline]
fn write_one<F: Frame>(flow: &mut Flow, frame: &mut F, resident: bool) {
    let template = &mut flow.setup.template;
    if let Some(bytes) = frame.resize(template.len()) {
        if resident { template.write(bytes) } else { template.write_whole(bytes) }
    }
}
