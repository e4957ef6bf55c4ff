// SPDX-License-Identifier: BSD-3-Clause
//! Checks that the books close at several rates, and reports how precisely frames leave.

use super::{Bed, FLOW, Results};
use crate::command::client::Client;
use crate::command::figures::{Flow, Observer};
use crate::command::settle;
use crate::command::table::{micros, or_dash, percent};
use crate::engine::{Mode, Settings};
use crate::otg::ApiError;
use crate::pacing::FrameRate;
use crate::plan::{Duration, Rate};

/// Frames per second.
const RATES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// How long each takes, in nanoseconds.
const TIME: u64 = 500_000_000;

/// Sends at each rate; checks that every frame is accounted for and that the measurements are
/// consistent.
pub fn check(client: &Client, bed: &Bed<'_>, results: &mut Results) -> Result<(), ApiError> {
    for rate in RATES {
        if bed.is_to_end() {
            break;
        }
        let mut plan = bed.plan.clone();
        for flow in &mut plan.flows {
            flow.rate = FrameRate::new(rate, 1).map_or(flow.rate, Rate::Frames);
            flow.duration = Duration::Nanoseconds(TIME);
        }
        client.load(plan.clone(), serde_json::json!({}), Mode::Paced)?;
        client.transmit("start", &[])?;
        while client.transmitting(&plan) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        settle::wait(client, &plan);
        let snapshot = Observer::new(client, &plan, bed.rules.settings.hz).look(1, true)?;
        let (Some(flow), Some(port)) = (snapshot.flows.first(), snapshot.ports.first()) else {
            return Err(ApiError::internal(format!("flow {FLOW:?} has no figures")));
        };
        judge(bed, rate, flow, port.stale + port.misdirected + port.corrupt, results);
    }
    Ok(())
}

fn judge(bed: &Bed<'_>, rate: u64, flow: &Flow, strange: u64, results: &mut Results) {
    let wanted = rate * TIME / 1_000_000_000;
    let received = flow.received.unwrap_or(0);
    let again = flow.duplicates.unwrap_or(u64::MAX) + flow.reordered.unwrap_or(u64::MAX);
    let closed = flow.intended == Some(wanted)
        && flow.attempted == wanted
        && flow.accepted + flow.lost_at_ingress == wanted
        && strange == 0
        && again == 0;
    let back = if bed.own { received == flow.accepted } else { received > 0 };
    let detail = format!(
        "{wanted} intended, {} sent, {} lost at ingress, {received} back, {again} twice or late, {strange} altered or unknown",
        flow.accepted, flow.lost_at_ingress
    );
    results.check(closed && back, &format!("{rate} pps: every frame is accounted for"), &detail);
    let timed = received.saturating_sub(flow.disturbed.received);
    let (sane, detail) = latency(flow, timed, &bed.rules.settings);
    results.check(
        sane,
        &format!("{rate} pps: each frame that came back undisturbed has a latency"),
        &detail,
    );
    let late = flow.late as f64 * 100.0 / wanted.max(1) as f64;
    let ns = |cycles: u64| micros(bed.rules.settings.nanoseconds(cycles) as f64);
    let gaps = or_dash(flow.gaps.as_ref(), |gaps| {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| ns(gaps.quantile(share)));
        format!("{p50} / {p99} / {p999}, at most {} us", ns(gaps.max()))
    });
    results.tell(&format!(
        "{rate} pps: pacing error {} ppm; gaps p50 / p99 / p99.9 {gaps}; {} % late",
        or_dash(flow.pacing_error_ppm, |ppm| ppm.to_string()),
        percent(late)
    ));
}

/// Checks that there is one latency for each of the `timed` frames, and that minimum, mean and maximum agree with the
/// histogram. Returns the result, and the figures as text.
fn latency(flow: &Flow, timed: u64, settings: &Settings) -> (bool, String) {
    let (Some([min, mean, max]), Some(all)) = (flow.latency, &flow.latencies) else {
        return (timed == 0, "no latency".to_owned());
    };
    // The distribution has a resolution of one in 128.
    let close = |exact: f64, read: u64| {
        let read = read as f64 * 1e9 / settings.hz.max(1) as f64;
        (exact - read).abs() <= exact / 100.0 + 2.0
    };
    let sane = all.count() == timed
        && min <= mean
        && mean <= max
        && close(min, all.min())
        && (close(max, all.max()) || all.max() >= measure::histogram::LARGEST);
    let detail = format!(
        "{} of {timed}; min {} mean {} max {} us",
        all.count(),
        micros(min),
        micros(mean),
        micros(max)
    );
    (sane, detail)
}
