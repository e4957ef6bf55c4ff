// SPDX-License-Identifier: BSD-3-Clause
//! Frames that have no room for a full signature: known by a short one or by header fields.
//!
//! Each frame is looked at in this order: full signature, short signature of a flow that has such, header
//! fields. A frame with a damaged full signature is no other flow's. A short signature does not count in a frame with
//! header fields that only flows without signatures have: its last bytes look like one by chance.

use std::sync::Arc;

use packet::classifier::Classifier;
use packet::signature::short::{RUNS, ShortSignature, ShortSuccessor};
use packet::signature::{Reading, Signature, Successor};

use super::super::io::Receive;
use super::{Drain, Expectations, FIELDS, Row, SHORT, enter_tagged};
use crate::plan::Mark;

/// How frames without a full signature are known.
#[derive(Clone, Debug)]
pub struct Small {
    /// Whether some have short signatures.
    short: bool,
    classifier: Arc<Classifier>,
    distinct: Arc<Classifier>,
}

impl Small {
    /// `None` where all flows have full signatures.
    pub fn of(flows: &Expectations) -> Option<Self> {
        let any = |mark| flows.marks.contains(&mark);
        (any(Mark::Short) || any(Mark::Fields)).then(|| Small {
            short: any(Mark::Short),
            classifier: flows.classifier.clone(),
            distinct: flows.distinct.clone(),
        })
    }
}

/// The run of a flow with short signatures.
pub fn short_run(run: u8) -> u16 {
    SHORT | u16::from(run & (RUNS - 1))
}

/// What would continue the frames seen last.
enum Next {
    /// Nothing.
    Nothing,
    /// A full signature.
    Full(Successor),
    /// A short one.
    Short(ShortSuccessor),
    /// Header fields of a flow. These frames are in no row, for they have no numbers.
    Fields(Unnumbered),
}

/// Frames of a flow that is known by header fields.
#[derive(Clone, Copy)]
struct Unnumbered {
    flow: u16,
    count: u64,
    bytes: u64,
}

impl Drain<'_> {
    /// As [`Drain::see`], where some flows' frames have no full signatures.
    #[inline(never)]
    pub fn see_small<R: Receive>(&mut self, small: &Small, queue: &R, n: usize, now: u64) {
        let mut next = Next::Nothing;
        for i in 0..n {
            let frame = queue.frame(i);
            let len = frame.len() as u64;
            self.count.bytes += len;
            let follows = match &mut next {
                Next::Nothing => false,
                Next::Full(next) => next.is_in(frame),
                Next::Short(next) => next.is_in(frame),
                Next::Fields(own) => {
                    self.has_no_signature(small, frame) && small.classifier.matches(own.flow, frame)
                }
            };
            if !follows {
                let before = std::mem::replace(&mut next, Next::Nothing);
                self.enter_unnumbered(&before, now);
                next = self.begin_small(small, frame, now);
            }
            match &mut next {
                Next::Nothing => {}
                Next::Full(_) | Next::Short(_) => {
                    if self.by_frame {
                        self.tag(frame, self.row.count, now);
                    }
                    self.row.count += 1;
                    self.row.bytes += len;
                }
                Next::Fields(own) => {
                    if self.by_frame {
                        self.tag_one(own.flow, 0, frame, now);
                    }
                    own.count += 1;
                    own.bytes += len;
                }
            }
        }
        self.enter_unnumbered(&next, now);
    }

    /// Whether a frame has neither a full signature nor a short one of a flow that has such.
    #[inline]
    fn has_no_signature(&self, small: &Small, frame: &[u8]) -> bool {
        Signature::inspect(frame) == Reading::None && self.short(small, frame).is_none()
    }

    /// The short signature of a frame, if it names a flow that has such.
    #[inline]
    fn short(&self, small: &Small, frame: &[u8]) -> Option<ShortSignature> {
        let found = ShortSignature::read(frame).filter(|_| small.short)?;
        let flow = self.flows.get(usize::from(found.flow))?;
        let chance = || small.distinct.find(frame, |number| self.belongs(number)).is_some();
        (flow.mark == Mark::Short && !chance()).then_some(found)
    }

    /// Returns true if this port expects frames of a flow.
    fn belongs(&self, number: u16) -> bool {
        let flow = self.flows.get(usize::from(number));
        flow.is_some_and(|flow| flow.rx_mask & self.bit != 0)
    }

    /// Finds whose a frame is that does not continue those before it.
    #[inline(never)]
    fn begin_small(&mut self, small: &Small, frame: &[u8], now: u64) -> Next {
        let full = Signature::inspect(frame);
        if let Reading::Ours(_) = full {
            return self.begin_row(frame, now).map_or(Next::Nothing, Next::Full);
        }
        if let Some(found) = self.short(small, frame) {
            let flow = self.flows.get(usize::from(found.flow));
            let Some(flow) = flow.filter(|flow| flow.run == short_run(found.run)) else {
                self.count.stale += 1;
                return Next::Nothing;
            };
            if flow.rx_mask & self.bit == 0 {
                self.count.misdirected += 1;
                return Next::Nothing;
            }
            self.enter(now);
            self.row = Row { flow: found.flow, first: found.sequence, ..Row::default() };
            return Next::Short(ShortSuccessor::of(frame));
        }
        if full == Reading::Corrupt {
            self.count.corrupt += 1;
            return Next::Nothing;
        }
        let Some(number) = small.classifier.find(frame, |number| self.belongs(number)) else {
            match small.classifier.find(frame, |_| true) {
                Some(_) => self.count.misdirected += 1,
                None => self.see_foreign(frame, now),
            }
            return Next::Nothing;
        };
        if self.flows.get(usize::from(number)).is_none_or(|flow| flow.run != FIELDS) {
            self.count.stale += 1;
            return Next::Nothing;
        }
        Next::Fields(Unnumbered { flow: number, count: 0, bytes: 0 })
    }

    /// Enters frames that are known by header fields.
    fn enter_unnumbered(&mut self, seen: &Next, now: u64) {
        let Next::Fields(Unnumbered { flow, count, bytes }) = *seen else { return };
        let Some(books) = self.books.get(usize::from(flow)) else { return };
        self.count.received += count;
        books.received.add(count);
        books.bytes.add(bytes);
        if self.tagged {
            enter_tagged(books, self.port, count, bytes, now);
        }
        if books.first_tsc.get() == 0 {
            books.first_tsc.set(now);
        }
        books.last_tsc.set(now);
    }
}
