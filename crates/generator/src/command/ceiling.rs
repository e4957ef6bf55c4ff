// SPDX-License-Identifier: BSD-3-Clause
//! What 100 percent is on a link without a line rate: the highest frame rate that the generator
//! reaches on it.

use std::thread;
use std::time::Duration;

use super::client::Client;
use super::settle;
use crate::engine::Mode;
use crate::otg::ApiError;
use crate::pacing::FrameRate;
use crate::plan::{self, Metrics, Plan};
use crate::telemetry::Subject;

/// The number of floods of a measurement, of which the best counts, and how long each takes.
const FLOODS: usize = 3;
const FLOOD: Duration = Duration::from_millis(300);

/// Why the rate could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum CeilingError {
    /// The control plane's error.
    #[error("{}", .0.errors.join("\n"))]
    Refused(#[from] ApiError),
    /// The port accepted no frame.
    #[error(
        "flow {0:?}: its port accepted no frame of a flood, so it is unknown what 100 % is: set a rate by --line-rate"
    )]
    Nothing(String),
}

/// The rate in frames per second at which a plan's flow `index` floods its port, while the other
/// flows are silent.
///
/// # Errors
/// [`CeilingError`].
pub fn ceiling(client: &Client, hz: u64, plan: &Plan, index: usize) -> Result<f64, CeilingError> {
    let mut alone = Plan { captures: Vec::new(), ..plan.clone() };
    alone.flows = plan.flows.get(index).cloned().into_iter().collect();
    let mut name = String::new();
    for flow in &mut alone.flows {
        name.clone_from(&flow.name);
        flow.duration = plan::Duration::Continuous;
        flow.rate = FrameRate::new(1, 1).map_or(flow.rate, plan::Rate::Frames);
        flow.metrics = Metrics { latency: false, ..flow.metrics };
    }
    let best = flood(client, alone, &name, hz as f64)?;
    match best > 0.0 {
        true => Ok(best),
        false => Err(CeilingError::Nothing(name)),
    }
}

fn flood(client: &Client, plan: Plan, name: &str, hz: f64) -> Result<f64, ApiError> {
    client.load(plan.clone(), serde_json::json!({}), Mode::Flood)?;
    let mut best = 0.0f64;
    for _ in 0..FLOODS {
        client.transmit("start", &[])?;
        thread::sleep(FLOOD);
        client.transmit("stop", &[])?;
        let told = client.ask(Subject::Flow(name.to_owned()));
        let cycles = told.number("tx_duration_tsc").unwrap_or(0) as f64;
        if cycles > 0.0 {
            best = best.max(told.number("accepted").unwrap_or(0) as f64 * hz / cycles);
        }
        settle::wait(client, &plan);
    }
    Ok(best)
}
