// SPDX-License-Identifier: BSD-3-Clause
//! The highest frame rates of the port, by frame size.

use std::time::Duration;

use packet::size::Sizes;

use super::machine::CpuShare;
use super::{Bed, FLOW, Results};
use crate::command::client::Client;
use crate::command::settle;
use crate::command::table::{or_dash, percent};
use crate::engine::Mode;
use crate::otg::ApiError;
use crate::plan::{self, Source};
use crate::telemetry::Subject;

/// Sizes of RFC 2544 for Ethernet, in bytes with FCS.
const SIZES: [usize; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
/// How long each flood takes.
const FLOOD: Duration = Duration::from_millis(400);

/// Floods with each size; checks that every accepted frame was received.
pub fn check(client: &Client, bed: &Bed<'_>, results: &mut Results) -> Result<(), ApiError> {
    let mut plan = bed.plan.clone();
    for size in SIZES.into_iter().filter(|size| *size <= bed.rules.ports.max_frame) {
        if bed.is_to_end() {
            break;
        }
        for flow in &mut plan.flows {
            flow.duration = plan::Duration::Continuous;
            if let Source::Frames(spec) = &mut flow.source {
                spec.sizes = Sizes::Fixed(size);
            }
        }
        client.load(plan.clone(), serde_json::json!({}), Mode::Flood)?;
        let cpu = CpuShare::start();
        client.transmit("start", &[])?;
        std::thread::sleep(FLOOD);
        client.transmit("stop", &[])?;
        let share = cpu.get();
        settle::wait(client, &plan);
        let told = client.ask(Subject::Flow(FLOW.to_owned()));
        let of = |name: &str| told.number(name).unwrap_or(0);
        let (accepted, received, cycles) = (of("accepted"), of("received"), of("tx_duration_tsc"));
        let seconds = cycles as f64 / bed.rules.settings.hz.max(1) as f64;
        let rate = if seconds > 0.0 { accepted as f64 / seconds } else { 0.0 };
        let closed = of("attempted") == accepted + of("refused")
            && accepted > 0
            && of("duplicates") + of("reordered") == 0;
        let back = if bed.own { received == accepted } else { received > 0 };
        let what = format!("flood of {size} bytes: every frame that was taken is accounted for");
        results.check(closed && back, &what, &format!("{accepted} taken, {received} back"));
        results.tell(&format!(
            "{size} bytes: {:.3} Mpps, {:.3} Gbit/s on layer 1, with {} % of the CPU's time",
            rate / 1e6,
            rate * (size + packet::L1_OVERHEAD) as f64 * 8.0 / 1e9,
            or_dash(share, |share| percent(share * 100.0))
        ));
    }
    Ok(())
}
