// SPDX-License-Identifier: BSD-3-Clause
//! The figures of ports and flows, for OTG's metrics and for telemetry.

use std::time::Instant;

use dpdk::telemetry::Value;

use super::Active;
use crate::books::FlowBooks;
use crate::engine::{Mode, Settings};
use crate::obstacle::obstacle;
use crate::otg::metrics::{FlowFigures, PortFigures, Traffic};
use crate::pacing;
use crate::plan::{Duration, FlowPlan};
use crate::telemetry::Subject;

/// Counters that are sampled per flow (sent, received) and per port (frames, bytes received).
const PER_FLOW: usize = 2;
const PER_PORT: usize = 2;

impl Active<'_> {
    /// Looks at all counters, for the rates.
    pub(super) fn sample(&mut self) {
        let flows =
            self.books.flows.iter().flat_map(|flow| [flow.accepted.get(), flow.received.get()]);
        let ports = self.books.ports.iter().flat_map(|port| {
            [port.frames.get(), self.with_fcs(port.bytes.get(), port.frames.get())]
        });
        let counters = flows.chain(ports).collect();
        self.sampler.look(Instant::now(), counters);
    }

    fn with_fcs(&self, bytes: u64, frames: u64) -> u64 {
        bytes + frames * packet::FCS_LEN as u64
    }

    fn sent(&self, index: usize, flow: &FlowPlan, books: &FlowBooks) -> Traffic {
        let (frames, len) = (books.accepted.get(), flow.frame.len_with_fcs as u64);
        let frame_rate = self.sampler.rate(index * PER_FLOW);
        Traffic { frames, bytes: frames * len, frame_rate, byte_rate: frame_rate * len as f64 }
    }

    pub(super) fn flow_figures(&self, index: usize) -> Option<FlowFigures> {
        let (flow, books) = (self.plan.flows.get(index)?, self.books.flows.get(index)?);
        let (received, len) = (books.received.get(), flow.frame.len_with_fcs as u64);
        let rx_rate = self.sampler.rate(index * PER_FLOW + 1);
        let name = |port: usize| self.plan.ports.get(port).map(|port| port.name.clone());
        Some(FlowFigures {
            name: flow.name.clone(),
            port_tx: name(flow.tx)?,
            port_rx: match *flow.rx.as_slice() {
                [only] => name(only),
                _ => None,
            },
            transmitting: books.is_transmitting(),
            tx: self.sent(index, flow, books),
            rx: Traffic {
                frames: received,
                bytes: received * len,
                frame_rate: rx_rate,
                byte_rate: rx_rate * len as f64,
            },
            loss: flow.loss,
        })
    }

    /// The flows that a port sends, with their books.
    fn flows_of(&self, port: usize) -> impl Iterator<Item = (usize, &FlowPlan, &FlowBooks)> {
        let flows = self.plan.flows.iter().zip(&self.books.flows).enumerate();
        flows
            .filter(move |(_, (flow, _))| flow.tx == port)
            .map(|(index, (flow, books))| (index, flow, books))
    }

    pub(super) fn port_figures(&self, index: usize) -> Option<PortFigures> {
        let (plan, entry, books) =
            (self.plan.ports.get(index)?, self.ports.get(index)?, self.books.ports.get(index)?);
        let mut tx = Traffic::default();
        let mut transmitting = false;
        for (number, flow, books) in self.flows_of(index) {
            let sent = self.sent(number, flow, books);
            tx.frames += sent.frames;
            tx.bytes += sent.bytes;
            tx.frame_rate += sent.frame_rate;
            tx.byte_rate += sent.byte_rate;
            transmitting |= books.is_transmitting();
        }
        let first = self.plan.flows.len() * PER_FLOW + index * PER_PORT;
        let frames = books.frames.get();
        Some(PortFigures {
            name: plan.name.clone(),
            location: plan.location.to_string(),
            link: entry.link_is_up(),
            speed: entry.speed_mbps().map(u64::from),
            transmitting,
            tx,
            rx: Traffic {
                frames,
                bytes: self.with_fcs(books.bytes.get(), frames),
                frame_rate: self.sampler.rate(first),
                byte_rate: self.sampler.rate(first + 1),
            },
        })
    }

    /// The answer to a telemetry question; `None` when there is no such port or flow.
    pub(super) fn telemetry(&self, subject: &Subject, settings: &Settings) -> Option<Value> {
        let mut entries = match subject {
            Subject::Flow(name) => {
                let index = self.plan.flows.iter().position(|flow| flow.name == *name)?;
                let (flow, books) = (self.plan.flows.get(index)?, self.books.flows.get(index)?);
                let mut entries = self.sending([(index, flow, books)].into_iter(), settings);
                entries.push(("received", books.received.get().into()));
                entries
            }
            Subject::Port(name) => {
                let index = self.plan.ports.iter().position(|port| port.name == *name)?;
                let (entry, books) = (self.ports.get(index)?, self.books.ports.get(index)?);
                let mut entries = self.sending(self.flows_of(index), settings);
                entries.extend([
                    ("received", books.received.get().into()),
                    ("foreign", books.foreign.get().into()),
                    ("stale", books.stale.get().into()),
                    ("misdirected", books.misdirected.get().into()),
                    ("rx_frames", books.frames.get().into()),
                    ("link", if entry.link_is_up() { "up" } else { "down" }.into()),
                ]);
                let longest = self.flows_of(index).map(|(_, flow, _)| flow.frame.len_with_fcs);
                let found = obstacle(&self.plan.ports.get(index)?.location, longest.max());
                entries.extend(found.map(|found| ("obstacle", found.brief().as_str().into())));
                entries
            }
        };
        let mode = match settings.mode {
            Mode::Paced => "paced",
            Mode::Flood => "flood",
        };
        entries.push(("pacing", mode.into()));
        Some(Value::Dict(
            entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ))
    }

    /// What is known about the sending of some flows, together.
    fn sending<'a>(
        &self,
        flows: impl Iterator<Item = (usize, &'a FlowPlan, &'a FlowBooks)>,
        settings: &Settings,
    ) -> Vec<(&'static str, Value)> {
        let (mut accepted, mut lost, mut refused, mut late, mut intended) = (0, 0, 0, 0, Some(0));
        let (mut first, mut last, mut transmitting) = (u64::MAX, 0, false);
        let mut error: Option<f64> = None;
        for (index, flow, books) in flows {
            accepted += books.accepted.get();
            lost += books.lost_at_ingress.get();
            refused += books.refused.get();
            late += books.late.get();
            // A flood without a number of frames intends as many as go.
            let counted =
                settings.mode == Mode::Paced || matches!(flow.duration, Duration::Packets(_));
            intended = intended.filter(|_| counted).map(|sum| sum + books.intended.get());
            transmitting |= books.is_transmitting();
            if books.first_tsc.get() == 0 {
                continue;
            }
            first = first.min(books.first_tsc.get());
            last = last.max(books.last_tsc.get());
            let interval = self.intervals.get(index).copied().unwrap_or_default();
            let own = pacing::error_ppm(books.attempted(), books.tx_duration_tsc(), interval)
                .map(f64::abs);
            // Of several flows, that of the worst.
            error = own.into_iter().chain(error).reduce(f64::max);
        }
        let mut entries: Vec<(&'static str, Value)> = Vec::new();
        entries.extend(intended.map(|intended: u64| ("intended", intended.into())));
        entries.extend([
            ("attempted", (accepted + lost + refused).into()),
            ("accepted", accepted.into()),
            ("lost_at_ingress", lost.into()),
            ("refused", refused.into()),
            ("late", late.into()),
            ("late_after_tsc", settings.late_after.into()),
            ("transmit", if transmitting { "started" } else { "stopped" }.into()),
        ]);
        if last > 0 {
            entries.push(("tx_duration_tsc", last.saturating_sub(first).into()));
        }
        if settings.mode == Mode::Paced {
            entries.extend(error.map(|ppm| ("pacing_error_ppm", (ppm.round() as u64).into())));
        }
        entries
    }
}
