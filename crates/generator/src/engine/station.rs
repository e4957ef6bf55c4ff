// SPDX-License-Identifier: BSD-3-Clause
//! The objects that an lcore works with.
//!
//! With a thousand flows they take a hundred megabytes. So they are made on the control plane's
//! thread and return to it to be dropped: an lcore that did either would not poll for tens of
//! milliseconds.

use std::sync::Arc;

use packet::writer::FrameWriter;

use super::layout::{Queue, Share};
use super::receiver::{Expectations, Receiver};
use super::sender::Sender;
use super::source::FrameSource;
use super::{FlowSetup, Settings};
use crate::books::Books;

/// The work of an lcore.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Its queues.
    pub share: Share,
    /// The flows that it sends.
    pub flows: Vec<FlowSetup>,
    /// Number of its receiving thread, if it receives.
    pub receiver: Option<usize>,
}

/// The objects of an lcore, without the queues.
#[derive(Debug)]
pub struct Station {
    pub(super) settings: Settings,
    pub(super) share: Share,
    pub(super) receiver: Receiver,
    pub(super) sender: Sender,
    /// For each transmit queue, the flow that represents all its flows if their frames differ only
    /// in headers and signatures; an index into the sender's flows.
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
        // The queue's port, if it is the port's only queue.
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
                // An lcore that is no receiver polls nothing.
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

    /// Stations for that many lcores without work.
    pub(super) fn idle(settings: Settings, lcores: usize) -> Vec<Station> {
        let work = vec![Work::default(); lcores];
        Station::all(settings, work, &Expectations::default(), &Arc::default())
    }

    /// The writer that represents all flows of a transmit queue, if there is one.
    pub(super) fn still(&self, lane: usize) -> Option<&FrameWriter> {
        let flow = (*self.stills.get(lane)?)?;
        match &self.sender.flows.get(flow)?.setup.source {
            FrameSource::Writer(writer) => Some(writer),
            FrameSource::Player { .. } => None,
        }
    }
}

/// The flow that represents all flows of a lane, if there is one.
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
