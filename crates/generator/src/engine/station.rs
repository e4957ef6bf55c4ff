// SPDX-License-Identifier: BSD-3-Clause
//! What an lcore works with.
//!
//! With a thousand flows that is a hundred megabytes. So it is made on the control plane's thread, and
//! comes back to it to be dropped: an lcore that did either would not poll for tens of milliseconds.

use std::sync::Arc;

use packet::writer::FrameWriter;

use super::layout::{Queue, Share};
use super::receiver::{Expectations, Receiver};
use super::sender::Sender;
use super::source::FrameSource;
use super::{FlowSetup, Settings};
use crate::books::Books;

/// What an lcore is to do.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Its queues.
    pub share: Share,
    /// The flows that it sends.
    pub flows: Vec<FlowSetup>,
    /// Which of the receiving threads it is, if it is one.
    pub receiver: Option<usize>,
}

/// What an lcore works with, but for the queues.
#[derive(Debug)]
pub struct Station {
    pub(super) settings: Settings,
    pub(super) share: Share,
    pub(super) receiver: Receiver,
    pub(super) sender: Sender,
    /// Of each transmit queue the flow that stands for all, if their frames differ in headers and
    /// signatures only; an index into the sender's.
    stills: Vec<Option<usize>>,
}

impl Station {
    /// Stations for the work of all lcores.
    pub fn all(
        settings: Settings,
        work: Vec<Work>,
        expected: &Expectations,
        books: &Arc<Books>,
    ) -> Vec<Station> {
        let sends: Vec<usize> =
            work.iter().flat_map(|work| &work.share.sends).map(|queue| queue.port).collect();
        // Of a queue the port, if it is the port's only one.
        let whole = |queue: &Queue| {
            let count = sends.iter().filter(|port| **port == queue.port).count();
            (count == 1).then_some(queue.port)
        };
        let nothing = Expectations::default();
        let station = |work: Work| Station {
            settings,
            receiver: Receiver::new(
                &settings,
                if work.receiver.is_some() { expected } else { &nothing },
                work.share.receives.iter().map(|queue| queue.port).collect(),
                books.clone(),
                // One that is no receiver polls nothing.
                work.receiver.unwrap_or(usize::MAX),
            ),
            stills: (0..work.share.sends.len()).map(|lane| still(&work.flows, lane)).collect(),
            sender: Sender::new(
                settings,
                work.flows,
                work.share.sends.iter().map(whole).collect(),
                books.clone(),
            ),
            share: work.share,
        };
        work.into_iter().map(station).collect()
    }

    /// Stations for so many lcores that have nothing to do.
    pub(super) fn idle(settings: Settings, lcores: usize) -> Vec<Station> {
        let work = vec![Work::default(); lcores];
        Station::all(settings, work, &Expectations::default(), &Arc::default())
    }

    /// A writer that stands for all of a transmit queue.
    pub(super) fn still(&self, lane: usize) -> Option<&FrameWriter> {
        let flow = (*self.stills.get(lane)?)?;
        match &self.sender.flows.get(flow)?.setup.source {
            FrameSource::Writer(writer) => Some(writer),
            FrameSource::Player { .. } => None,
        }
    }
}

/// The flow that stands for all that are sent on a lane, if one does.
fn still(flows: &[FlowSetup], lane: usize) -> Option<usize> {
    let mut own = flows.iter().enumerate().filter(|(_, flow)| flow.lane == lane);
    let part = |flow: &FlowSetup| match &flow.source {
        FrameSource::Writer(writer) => writer.still_part(),
        FrameSource::Player { .. } => None,
    };
    let (first, flow) = own.next()?;
    let still = part(flow)?;
    own.all(|(_, flow)| part(flow).as_ref() == Some(&still)).then_some(first)
}
