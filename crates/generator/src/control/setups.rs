// SPDX-License-Identifier: BSD-3-Clause
//! Turns planned flows into what the lcores need: resolved rates, and frames that are ready to be
//! written.

use std::sync::Arc;

use packet::frame::FrameSpec;
use packet::writer::FrameWriter;

use super::marks::{self, Marks};
use crate::engine::layout::{Queue, Share};
use crate::engine::source::FrameSource;
use crate::engine::timetable::{Pace, Tact};
use crate::engine::{Expectations, FlowSetup, Limit, Settings, Work};
use crate::otg::ApiError;
use crate::pacing::{FrameRate, Interval, LineRate};
use crate::plan::{Duration, FlowPlan, MAX_WITH_HISTOGRAMS, Plan, Rate, Source, Wait};

/// The work for a plan, by lcore.
pub struct Setup {
    /// The work of each lcore.
    pub work: Vec<Work>,
    /// Which frames the receivers expect.
    pub expected: Expectations,
    /// Threads that receive.
    pub receivers: usize,
    /// By index of a flow the lcore that sends it.
    pub homes: Vec<usize>,
    /// What is to be said about the flows.
    pub warnings: Vec<String>,
}

/// Distributes a plan's flows over the lcores, whose queues are `shares`.
///
/// # Errors
/// A 400 that names each flow which cannot be sent that way, and why.
pub fn setup(
    plan: &Plan,
    shares: Vec<Share>,
    lines: &[Option<LineRate>],
    settings: &Settings,
) -> Result<Setup, ApiError> {
    let mut work: Vec<Work> =
        shares.into_iter().map(|share| Work { share, ..Work::default() }).collect();
    let mut receivers = 0;
    for work in work.iter_mut().filter(|work| !work.share.receives.is_empty()) {
        work.receiver = Some(receivers);
        receivers += 1;
    }
    // The flow's position among the flows of its port.
    let mut turns = vec![0usize; plan.ports.len()];
    let mut errors = Vec::new();
    let mut homes = vec![0; plan.flows.len()];
    for (index, flow) in plan.flows.iter().enumerate() {
        let Some(turn) = turns.get_mut(flow.tx) else { continue };
        let places = places(&work, flow.tx);
        let Some(&(lcore, lane)) = places.get(*turn % places.len().max(1)) else { continue };
        *turn += 1;
        if let Some(home) = homes.get_mut(index) {
            *home = lcore;
        }
        let line = lines.get(flow.tx).copied().flatten();
        let made = flow_setup(plan, index, flow, lane, line, settings);
        match (made, work.get_mut(lcore)) {
            (Ok(setup), Some(work)) => work.flows.push(setup),
            (Err(error), _) => errors.push(format!("flows[{index}].{error}")),
            (_, None) => {}
        }
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid(errors));
    }
    let Marks { classifier, distinct, mut warnings } = marks::marks(plan)?;
    if plan.flows.len() > MAX_WITH_HISTOGRAMS {
        warnings.push(format!(
            "flows: with more than {MAX_WITH_HISTOGRAMS} flows there are no histograms of gaps, latency and \
             reordering, and no quantiles; all counts, and least, mean and longest latency, are there"
        ));
    }
    let expected = Expectations {
        rx_masks: plan.flows.iter().map(FlowPlan::rx_mask).collect(),
        marks: plan.flows.iter().map(FlowPlan::mark).collect(),
        classifier: Arc::new(classifier),
        distinct: Arc::new(distinct),
        integrity: plan.integrity,
    };
    Ok(Setup { work, expected, receivers, homes, warnings })
}

/// The lcores and lanes on which a port's flows can be sent, by number of the queue.
fn places(work: &[Work], port: usize) -> Vec<(usize, usize)> {
    let lanes = |(lcore, work): (usize, &Work)| {
        let own = work.share.sends.iter().enumerate().filter(|(_, queue)| queue.port == port);
        own.map(|(lane, queue)| (*queue, (lcore, lane))).collect::<Vec<(Queue, (usize, usize))>>()
    };
    let mut places: Vec<_> = work.iter().enumerate().flat_map(lanes).collect();
    places.sort_by_key(|(queue, _)| queue.queue);
    places.into_iter().map(|(_, place)| place).collect()
}

fn flow_setup(
    plan: &Plan,
    index: usize,
    flow: &FlowPlan,
    lane: usize,
    line: Option<LineRate>,
    settings: &Settings,
) -> Result<FlowSetup, String> {
    let port = plan.ports.get(flow.tx).map_or("", |port| port.name.as_str());
    let source = match &flow.source {
        Source::Frames(spec) => FrameSource::Writer(writer(spec, index)?),
        Source::Replay(frames, _) => FrameSource::Player { frames: frames.clone(), next: 0 },
    };
    let mean = flow.source.mean_with_fcs();
    let speed = line.and_then(|line| line.bits(mean));
    let delay = wait(flow.delay, speed, settings)
        .ok_or_else(|| format!("{}.delay.bytes: {}", path(flow.duration), no_line_rate(port)))?;
    let tact = match (frame_rate(flow.rate, mean, line), &flow.source) {
        (_, Source::Replay(frames, timing)) if flow.rate == Rate::Own => {
            let slots = frames.schedule(*timing, settings.hz);
            Tact::Recorded(slots.map_err(|error| format!("rate: {error}"))?)
        }
        (Some(rate), _) => Tact::Even {
            rate,
            interval: rate.interval(settings.hz),
            bursts: bursts(flow.duration, speed, settings).map_err(|what| {
                format!("duration.burst.inter_burst_gap.{what}: {}", no_line_rate(port))
            })?,
        },
        (None, _) => return Err(no_rate(flow.rate, line, port)),
    };
    let limit = match flow.duration {
        Duration::Continuous | Duration::Bursts { bursts: 0, .. } => Limit::Endless,
        Duration::Packets(frames) => Limit::Frames(frames),
        Duration::Nanoseconds(time) => Limit::Nanoseconds(time),
        Duration::Bursts { bursts, packets, .. } => Limit::Frames(bursts.saturating_mul(packets)),
    };
    Ok(FlowSetup {
        index: number(index)?,
        lane,
        source,
        stamped: flow.is_stamped(),
        pace: Pace { tact, delay },
        limit,
    })
}

/// Returns the writer of a flow's frames.
///
/// # Errors
/// What is wrong, with the field's path in the flow.
pub fn writer(spec: &FrameSpec, flow: usize) -> Result<Box<FrameWriter>, String> {
    let writer = FrameWriter::new(spec, number(flow)?);
    writer.map(Box::new).map_err(|error| format!("packet: {error}"))
}

fn number(flow: usize) -> Result<u16, String> {
    u16::try_from(flow).map_err(|_| "name: too many flows".to_owned())
}

/// Path of the delay in the model's duration.
fn path(duration: Duration) -> &'static str {
    match duration {
        Duration::Continuous => "duration.continuous",
        Duration::Packets(_) => "duration.fixed_packets",
        Duration::Nanoseconds(_) => "duration.fixed_seconds",
        Duration::Bursts { .. } => "duration.burst",
    }
}

/// Why [`frame_rate`] returned no rate on the port of this name, with the field's path in the flow.
pub fn no_rate(rate: Rate, line: Option<LineRate>, port: &str) -> String {
    match (rate, line) {
        (Rate::Percent(_), None) => format!("rate.percentage: {}", no_line_rate(port)),
        _ => "rate: frames cannot be sent at this rate".to_owned(),
    }
}

fn no_line_rate(port: &str) -> String {
    format!(
        "port {port:?} has no line rate; say one by layer1.speed or start the generator with --line-rate, or give the value in another unit"
    )
}

/// The rate for frames of `mean_with_fcs` bytes on average; `None` if there is none: see
/// [`no_rate`].
pub fn frame_rate(rate: Rate, mean_with_fcs: f64, line: Option<LineRate>) -> Option<FrameRate> {
    let bits = |overhead: usize| (mean_with_fcs + overhead as f64) * 8.0;
    match rate {
        Rate::Frames(rate) => Some(rate),
        Rate::Bits { bits: speed, overhead } => FrameRate::from_bits(speed, bits(overhead)),
        Rate::Percent(percent) => line?.frames(mean_with_fcs)?.percent(percent),
        Rate::Own => None,
    }
}

/// A wait in cycles; bytes take their time at `speed` bits per second.
fn wait(wait: Wait, speed: Option<f64>, settings: &Settings) -> Option<Interval> {
    let nanoseconds = match wait {
        Wait::Nanoseconds(nanoseconds) => nanoseconds,
        Wait::Bytes(bytes) if bytes > 0.0 => bytes * 8e9 / speed?,
        Wait::Bytes(_) => 0.0,
    };
    Some(Interval::from_nanoseconds(nanoseconds, settings.hz))
}

fn bursts(
    duration: Duration,
    speed: Option<f64>,
    settings: &Settings,
) -> Result<Option<(u64, Interval)>, &'static str> {
    match duration {
        Duration::Bursts { packets, gap, .. } => match wait(gap, speed, settings) {
            Some(gap) => Ok(Some((packets, gap))),
            None => Err("bytes"),
        },
        _ => Ok(None),
    }
}
