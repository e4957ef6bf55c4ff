// SPDX-License-Identifier: BSD-3-Clause
//! Counters and rates of ports and flows, for OTG's metrics and for telemetry.

use std::time::Instant;

use dpdk::telemetry::Value;
use measure::{Counters, DelayBooks, histogram};

use super::{Active, tagged};
use crate::books::{Earlier, RxBooks, State, TxBooks};
use crate::engine::{Mode, Settings};
use crate::otg::metrics::{Figures, FlowFigures, Latency, PortFigures, Request, Traffic};
use crate::plan::{Duration, FlowPlan, Mark};
use crate::telemetry::{Histogram, Question, Subject};

/// Counters that are sampled per flow (frames and bytes sent, frames and bytes received) and per port
/// (frames and bytes received).
const PER_FLOW: usize = 4;
const PER_PORT: usize = 2;
/// Most bytes of histograms in one answer: DPDK truncates an answer after 16 KiB.
const MAX_HISTOGRAMS: usize = 12_000;

/// Packet delay variation (RFC 5481): a quantile of the latency less its minimum.
const PDV: [(&str, f64); 3] = [("pdv_p50_ns", 0.5), ("pdv_p99_ns", 0.99), ("pdv_p999_ns", 0.999)];

type Entries = Vec<(&'static str, Value)>;

impl Active<'_> {
    /// Samples all counters, for the rates.
    pub(super) fn sample(&mut self) {
        let now = Instant::now();
        if self.sampler.is_due(now) {
            let counters = self.counters();
            self.sampler.look(now, counters);
        }
    }

    /// Copies what the figures of flows need, for another thread. Ports and captures stay behind.
    pub(super) fn view(&self) -> Active<'static> {
        Active {
            plan: self.plan.clone(),
            books: self.books.clone(),
            sampler: self.sampler.rates(),
            row_places: self.row_places.clone(),
            ..Active::default()
        }
    }

    /// The figures that a request asks for.
    pub(super) fn figures(&self, request: Request, settings: &Settings) -> Figures {
        match request {
            Request::Ports { ports, columns } => Figures::Ports {
                ports: ports.iter().filter_map(|port| self.port_figures(*port)).collect(),
                columns,
            },
            Request::Flows { flows, columns, tagged } => Figures::Flows {
                flows: flows
                    .iter()
                    .filter_map(|flow| self.flow_figures(*flow, settings, tagged.include))
                    .collect(),
                columns,
                tagged,
            },
        }
    }

    /// How many counters come before those of rows.
    pub(super) fn sampled_before_rows(&self) -> usize {
        self.plan.flows.len() * PER_FLOW + self.plan.ports.len() * PER_PORT
    }

    /// The counters whose rates are reported.
    pub(super) fn counters(&self) -> Vec<u64> {
        let books = &self.books;
        let flows = books.tx.iter().enumerate().flat_map(|(flow, tx)| {
            let received = books.rx_sum(flow, |rx| rx.received.get());
            let bytes = books.rx_sum(flow, |rx| rx.bytes.get());
            let accepted = tx.accepted.get();
            [accepted, with_fcs(tx.bytes.get(), accepted), received, with_fcs(bytes, received)]
        });
        let ports = (0..self.plan.ports.len()).flat_map(|port| {
            let frames = books.port_sum(port, |books| books.frames.get());
            [frames, with_fcs(books.port_sum(port, |books| books.bytes.get()), frames)]
        });
        let mut all = flows.chain(ports).collect();
        tagged::counters(books, &mut all);
        all
    }

    fn sent(&self, index: usize, books: &TxBooks) -> Traffic {
        let frames = books.accepted.get();
        Traffic {
            frames,
            bytes: with_fcs(books.bytes.get(), frames),
            frame_rate: self.sampler.rate(index * PER_FLOW),
            byte_rate: self.sampler.rate(index * PER_FLOW + 1),
        }
    }

    /// The books of a flow from the threads that have received frames of it.
    fn rx_books(&self, flow: usize) -> Vec<&RxBooks> {
        let books = self.books.rx.iter().filter_map(|books| books.flows.get(flow));
        books.filter(|books| books.received.get() > 0).collect()
    }

    /// A flow's figures, with its rows by metric tags if they are wanted.
    pub(super) fn flow_figures(
        &self,
        index: usize,
        settings: &Settings,
        tagged: bool,
    ) -> Option<FlowFigures> {
        let (flow, books) = (self.plan.flows.get(index)?, self.books.tx.get(index)?);
        let frames = self.books.rx_sum(index, |rx| rx.received.get());
        let name = |port: usize| self.plan.ports.get(port).map(|port| port.name.clone());
        let rx = self.rx_books(index);
        let since =
            |tsc: u64| settings.nanoseconds(tsc.saturating_sub(books.began_tsc.get())) as f64;
        let first = rx.iter().map(|rx| rx.first_tsc.get()).min();
        let last = rx.iter().map(|rx| rx.last_tsc.get()).max();
        let timestamps = first.zip(last).filter(|_| flow.metrics.timestamps);
        Some(FlowFigures {
            name: flow.name.clone(),
            port_tx: name(flow.tx)?,
            port_rx: match *flow.rx.as_slice() {
                [only] => name(only),
                _ => None,
            },
            state: books.state(),
            tx: self.sent(index, books),
            rx: Traffic {
                frames,
                bytes: with_fcs(self.books.rx_sum(index, |rx| rx.bytes.get()), frames),
                frame_rate: self.sampler.rate(index * PER_FLOW + 2),
                byte_rate: self.sampler.rate(index * PER_FLOW + 3),
            },
            duplicates: rx.iter().map(|rx| rx.sequence.duplicates.get()).sum(),
            loss: flow.metrics.loss,
            rx_tx_ratio: flow.metrics.rx_tx_ratio,
            loss_pace: self.plan.loss_duration.then(|| pace(books, settings)).flatten(),
            timestamps_ns: timestamps.map(|(first, last)| (since(first), since(last))),
            latency: latency(&rx, settings).filter(|_| flow.metrics.latency),
            tagged: tagged.then(|| self.tagged_figures(index, settings)).flatten(),
        })
    }

    /// The flows that a port has sent since traffic last started from rest, with their books.
    fn flows_of(&self, port: usize) -> impl Iterator<Item = (usize, &FlowPlan, &TxBooks)> {
        let flows = self.plan.flows.iter().zip(&self.books.tx).enumerate();
        flows
            .filter(move |(index, (flow, _))| {
                flow.tx == port && self.since_rest.get(*index) == Some(&true)
            })
            .map(|(index, (flow, books))| (index, flow, books))
    }

    /// Bytes of the longest frame that is to be sent on a port, with FCS.
    fn longest(&self, port: usize) -> Option<usize> {
        let own = self.plan.flows.iter().filter(|flow| flow.tx == port);
        own.map(|flow| flow.source.max_with_fcs()).max()
    }

    /// Looks at all links, so that changes get a time even if no client asks. Not while flows are sending: each look
    /// would delay frames.
    pub(super) fn note_links(&self) {
        if self.books.tx.iter().any(|books| books.state() == State::Started) {
            return;
        }
        for (index, entry) in self.ports.iter().enumerate() {
            entry.link_is_up(entry.obstacle(self.longest(index)).as_ref());
        }
    }

    pub(super) fn port_figures(&self, index: usize) -> Option<PortFigures> {
        let (plan, entry) = (self.plan.ports.get(index)?, self.ports.get(index)?);
        let earlier = self.earlier.get(index).copied().unwrap_or_default();
        let mut tx = Traffic {
            frames: earlier.accepted,
            bytes: with_fcs(earlier.bytes, earlier.accepted),
            ..Traffic::default()
        };
        let mut transmitting = false;
        for (number, _, books) in self.flows_of(index) {
            let sent = self.sent(number, books);
            tx.frames += sent.frames;
            tx.bytes += sent.bytes;
            tx.frame_rate += sent.frame_rate;
            tx.byte_rate += sent.byte_rate;
            transmitting |= books.state() == State::Started;
        }
        let first = self.plan.flows.len() * PER_FLOW + index * PER_PORT;
        let frames = self.books.port_sum(index, |books| books.frames.get());
        Some(PortFigures {
            name: plan.name.clone(),
            location: plan.location.to_string(),
            link: entry.link_is_up(entry.obstacle(self.longest(index)).as_ref()),
            last_change: entry.last_change(),
            speed: plan.speed_mbps.or(entry.speed_mbps()).map(u64::from),
            transmitting,
            capturing: self.captures.is_running(index),
            tx,
            rx: Traffic {
                frames,
                bytes: with_fcs(self.books.port_sum(index, |books| books.bytes.get()), frames),
                frame_rate: self.sampler.rate(first),
                byte_rate: self.sampler.rate(first + 1),
            },
            integrity: self.plan.integrity.then(|| {
                let corrupt =
                    self.books.port_sum(index, |books| books.corrupt.get() + books.altered.get());
                (frames, corrupt)
            }),
        })
    }

    /// The answer to a telemetry question; `None` if there is no such port or flow.
    pub(super) fn telemetry(&self, question: &Question, settings: &Settings) -> Option<Value> {
        let entries = match (&question.subject, question.histogram) {
            (Subject::Flow(name), histogram) => {
                let index = self.plan.flows.iter().position(|flow| flow.name == *name)?;
                match histogram {
                    Some(kind) => self.histogram(index, kind, settings)?,
                    None => self.flow_entries(index, settings)?,
                }
            }
            (Subject::Port(name), None) => {
                let index = self.plan.ports.iter().position(|port| port.name == *name)?;
                self.port_entries(index, settings)?
            }
            (Subject::Port(_), Some(_)) => return None,
        };
        let named = |(name, value): (&str, Value)| (name.to_owned(), value);
        Some(Value::Dict(entries.into_iter().map(named).collect()))
    }

    fn flow_entries(&self, index: usize, settings: &Settings) -> Option<Entries> {
        let (flow, books) = (self.plan.flows.get(index)?, self.books.tx.get(index)?);
        let mut entries = sending(Earlier::default(), [(flow, books)].into_iter(), settings);
        let rx = self.rx_books(index);
        let sum =
            |of: fn(&RxBooks) -> u64| -> Value { rx.iter().map(|rx| of(rx)).sum::<u64>().into() };
        entries.push(("received", sum(|rx| rx.received.get())));
        let mark = flow.mark();
        entries.push(("mark", mark.name().into()));
        // Only a full signature shows damage.
        if !matches!(mark, Mark::Short | Mark::Fields) {
            entries.push(("corrupt", sum(|rx| rx.corrupt.get())));
        }
        if mark != Mark::Fields {
            entries.push(("received_disturbed", sum(|rx| rx.disturbed.get())));
            entries.push(("missing_disturbed", sum(|rx| rx.missing_disturbed.get())));
        }
        if flow.metrics.enable && mark.is_numbered() {
            // The order of frames that several lcores received is unknown.
            if let [] | [_] = *rx.as_slice() {
                entries.push(("duplicates", sum(|rx| rx.sequence.duplicates.get())));
                entries.push(("reordered", sum(|rx| rx.sequence.reordered.get())));
                entries.push(("reordered_or_duplicate", sum(|rx| rx.sequence.unknown.get())));
                entries.push(("max_reordering_extent", sum(|rx| rx.sequence.max_extent.get())));
            }
        }
        entries.push(("clock_cost_cycles", settings.clock_cost.into()));
        if let ([only], true) = (rx.as_slice(), flow.metrics.latency) {
            let delays = only.delays.as_ref();
            let ns = |cycles: f64| Value::from(nanoseconds(cycles, settings));
            let jitter = delays.and_then(|delays| delays.jitter());
            entries.extend(jitter.map(|cycles| ("jitter_rfc3550_ns", ns(cycles))));
            let pdv = |quantile| delays.and_then(|delays| delays.pdv(quantile));
            for (name, quantile) in PDV {
                entries.extend(pdv(quantile).map(|cycles| (name, ns(cycles as f64))));
            }
        }
        let texts: Vec<(&'static str, String)> = Histogram::ALL
            .into_iter()
            .filter_map(|kind| Some((kind.name(), self.encoded(index, kind)?)))
            .collect();
        add_histograms(&mut entries, texts);
        entries.push(mode(settings));
        Some(entries)
    }

    /// One histogram of a flow; those of times are in cycles.
    fn histogram(&self, index: usize, kind: Histogram, settings: &Settings) -> Option<Entries> {
        let mut entries = vec![(kind.name(), Value::Text(self.encoded(index, kind)?))];
        if kind != Histogram::ReorderingExtent {
            entries.push(("tsc_hz", settings.hz.into()));
        }
        Some(entries)
    }

    fn encoded(&self, index: usize, kind: Histogram) -> Option<String> {
        let tx = self.books.tx.get(index)?;
        let rx = self.rx_books(index);
        let delays = || rx.iter().filter_map(|rx| rx.delays.as_deref());
        let counters: Vec<&Counters> = match kind {
            Histogram::Gap => vec![tx.gaps.counters()],
            Histogram::Latency => delays().map(|delays| delays.latency.counters()).collect(),
            // The order of frames that several lcores received is unknown, and so are their
            // neighbours.
            Histogram::Ipdv | Histogram::ReorderingExtent if rx.len() > 1 => vec![],
            Histogram::ReorderingExtent => {
                rx.iter().filter_map(|rx| rx.sequence.extents()).collect()
            }
            Histogram::Ipdv => delays().map(|delays| delays.ipdv.counters()).collect(),
        };
        let any = counters.iter().any(|counters| counters.count() > 0);
        any.then(|| histogram::encode(counters)).flatten()
    }

    /// The delays of the flows that belong to this port and no other.
    fn delays_at(&self, port: usize) -> impl Iterator<Item = &DelayBooks> {
        let ports = self.plan.ports.len();
        let flows = self.plan.flows.iter().enumerate();
        let own = flows.filter(move |(_, flow)| match *flow.rx.as_slice() {
            [] => ports == 1,
            [only] => only == port,
            _ => false,
        });
        own.flat_map(|(index, _)| self.rx_books(index)).filter_map(|rx| rx.delays.as_deref())
    }

    fn port_entries(&self, index: usize, settings: &Settings) -> Option<Entries> {
        let entry = self.ports.get(index)?;
        let flows = self.flows_of(index).map(|(_, flow, books)| (flow, books));
        let earlier = self.earlier.get(index).copied().unwrap_or_default();
        let mut entries = sending(earlier, flows, settings);
        let sum = |of: fn(&crate::books::PortBooks) -> u64| -> Value {
            self.books.port_sum(index, of).into()
        };
        let found = entry.obstacle(self.longest(index));
        entries.extend([
            ("received", sum(|port| port.received.get())),
            ("corrupt", sum(|port| port.corrupt.get() + port.altered.get())),
            ("foreign", sum(|port| port.foreign.get())),
            ("stale", sum(|port| port.stale.get())),
            ("misdirected", sum(|port| port.misdirected.get())),
            ("rx_frames", sum(|port| port.frames.get())),
            ("link", if entry.link_is_up(found.as_ref()) { "up" } else { "down" }.into()),
        ]);
        if self.plan.interfaces.iter().any(|interface| interface.port == index) {
            entries.extend([
                ("neighbor_rx", sum(|port| port.neighbor.get())),
                ("neighbor_tx", self.devices.sent(index).into()),
            ]);
        }
        // They are not known of frames without numbers.
        let bit = 1 << (index & 63);
        let unnumbered = |flow: &FlowPlan| flow.mark() == Mark::Fields && flow.rx_mask() & bit != 0;
        if !self.plan.flows.iter().any(unnumbered) {
            entries.extend([
                ("duplicates", sum(|port| port.duplicates.get())),
                ("reordered", sum(|port| port.reordered.get())),
                ("received_disturbed", sum(|port| port.disturbed.get())),
                ("missing_disturbed", self.books.missing_disturbed(index).into()),
            ]);
        }
        entries.extend(found.map(|found| ("obstacle", found.brief().as_str().into())));
        let latencies: Vec<&Counters> =
            self.delays_at(index).map(|delays| delays.latency.counters()).collect();
        let gaps = vec![self.books.gaps.get(index)?.counters()];
        let texts = [(Histogram::Gap, gaps), (Histogram::Latency, latencies)];
        let texts = texts.into_iter().filter_map(|(kind, counters)| {
            let any = counters.iter().any(|counters| counters.count() > 0);
            Some((kind.name(), any.then(|| histogram::encode(counters)).flatten()?))
        });
        add_histograms(&mut entries, texts.collect());
        if let Some(figures) = self.captures.figures(index) {
            entries.extend([
                ("capture_matched", figures.matched.into()),
                ("capture_stored", figures.stored.into()),
                ("capture_dropped", figures.dropped.into()),
                ("capture_overwritten", figures.overwritten.into()),
                ("capture_refused", figures.refused.into()),
            ]);
            let error = self.captures.error(index);
            entries.extend(error.map(|error| ("capture_error", Value::Text(error))));
        }
        entries.push(mode(settings));
        Some(entries)
    }
}

/// Adds histograms, as long as they fit into one answer.
fn add_histograms(entries: &mut Entries, texts: Vec<(&'static str, String)>) {
    if texts.iter().map(|(_, text)| text.len()).sum::<usize>() <= MAX_HISTOGRAMS {
        entries.extend(texts.into_iter().map(|(name, text)| (name, Value::Text(text))));
    } else {
        let what = "too long for one answer: ask /linerate/generator/histogram for each flow's";
        entries.push(("histograms", what.into()));
    }
}

pub(super) fn with_fcs(bytes: u64, frames: u64) -> u64 {
    bytes + frames * packet::FCS_LEN as u64
}

/// Frames per second, from the first frame to the last.
fn pace(books: &TxBooks, settings: &Settings) -> Option<f64> {
    let gaps = books.accepted.get().checked_sub(1).filter(|gaps| *gaps > 0)?;
    let cycles = books.tx_duration_tsc();
    (cycles > 0).then(|| gaps as f64 * settings.hz as f64 / cycles as f64)
}

fn mode(settings: &Settings) -> (&'static str, Value) {
    let mode = match settings.mode {
        Mode::Paced => "paced",
        Mode::Flood => "flood",
    };
    ("pacing", mode.into())
}

fn nanoseconds(cycles: f64, settings: &Settings) -> u64 {
    (cycles * 1e9 / settings.hz.max(1) as f64).round() as u64
}

/// Minimum, mean and maximum of a flow's latency.
fn latency(rx: &[&RxBooks], settings: &Settings) -> Option<Latency> {
    let delays: Vec<&DelayBooks> = rx.iter().filter_map(|rx| rx.delays.as_deref()).collect();
    let (count, sum) = delays.iter().fold((0, 0u64), |(count, sum), delays| {
        (count + delays.latency.count(), sum.saturating_add(delays.latency.sum()))
    });
    let ns = |cycles: f64| cycles * 1e9 / settings.hz.max(1) as f64;
    Some(Latency {
        minimum_ns: ns(delays.iter().filter_map(|delays| delays.latency.min()).min()? as f64),
        maximum_ns: ns(delays.iter().filter_map(|delays| delays.latency.max()).max()? as f64),
        average_ns: ns(sum as f64 / count.max(1) as f64),
    })
}

/// The sending of some flows in total, earlier runs included.
fn sending<'a>(
    earlier: Earlier,
    flows: impl Iterator<Item = (&'a FlowPlan, &'a TxBooks)>,
    settings: &Settings,
) -> Entries {
    let (mut accepted, mut lost) = (earlier.accepted, earlier.lost_at_ingress);
    let (mut refused, mut late) = (earlier.refused, earlier.late);
    let mut disturbed = (earlier.accepted_disturbed, earlier.lost_disturbed);
    let mut intended = Some(earlier.intended);
    let (mut first, mut last) = (u64::MAX, 0);
    let mut state = State::Stopped;
    let mut error: Option<f64> = None;
    for (flow, books) in flows {
        accepted += books.accepted.get();
        lost += books.lost_at_ingress.get();
        refused += books.refused.get();
        late += books.late.get();
        disturbed.0 += books.accepted_disturbed.get();
        disturbed.1 += books.lost_disturbed.get();
        // A flood without a number of frames has no intended number.
        let counted = settings.mode == Mode::Paced || matches!(flow.duration, Duration::Packets(_));
        intended = intended.filter(|_| counted).map(|sum| sum + books.intended.get());
        state = match (state, books.state()) {
            (State::Started, _) | (_, State::Started) => State::Started,
            (State::Paused, _) | (_, State::Paused) => State::Paused,
            _ => State::Stopped,
        };
        if books.first_tsc.get() == 0 {
            continue;
        }
        first = first.min(books.first_tsc.get());
        last = last.max(books.last_tsc.get());
        // Of several flows, the worst.
        error = books.pacing_error_ppm().map(f64::abs).into_iter().chain(error).reduce(f64::max);
    }
    let mut entries: Entries = Vec::new();
    entries.extend(intended.map(|intended: u64| ("intended", intended.into())));
    let transmit = match state {
        State::Started => "started",
        State::Paused => "paused",
        State::Stopped => "stopped",
    };
    entries.extend([
        ("attempted", (accepted + lost + refused).into()),
        ("accepted", accepted.into()),
        ("lost_at_ingress", lost.into()),
        ("refused", refused.into()),
        ("late", late.into()),
        ("accepted_disturbed", disturbed.0.into()),
        ("lost_disturbed", disturbed.1.into()),
        ("late_after_tsc", settings.late_after.into()),
        ("transmit", transmit.into()),
    ]);
    if last > 0 {
        entries.push(("tx_duration_tsc", last.saturating_sub(first).into()));
    }
    if settings.mode == Mode::Paced {
        entries.extend(error.map(|ppm| ("pacing_error_ppm", (ppm.round() as u64).into())));
    }
    entries
}
