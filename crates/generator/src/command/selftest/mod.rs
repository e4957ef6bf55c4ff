// SPDX-License-Identifier: BSD-3-Clause
//! `--self-test`: checks this generator's measurements against known traffic, and prints what it
//! and the machine can do.
//!
//! Correctness passes or fails; speed is only reported.

mod ceilings;
mod faults;
mod machine;
mod pacing;

use std::sync::atomic::{AtomicUsize, Ordering};

use dpdk::Eal;

use super::client::Client;
use super::port::PortSpec;
use super::session::{SessionError, session};
use super::table::print;
use crate::control::Rules;
use crate::otg::{ApiError, config};
use crate::plan::Plan;

/// The port of the test if none is given: sent frames return.
const RING: &str = "ring:selftest";
/// Its port's and its flow's name.
const PORT: &str = "selftest";
const FLOW: &str = "selftest";

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    /// Several ports.
    #[error("--self-test takes one --port, or none for a ring of its own")]
    Ports,
    /// The port cannot be opened.
    #[error("{}", .0.errors.join("\n"))]
    Refused(#[from] ApiError),
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// What the tests use.
struct Bed<'a> {
    location: String,
    /// True if every frame must return: on an internal ring.
    own: bool,
    rules: Rules,
    plan: Plan,
    /// A signal to end the program, or 0.
    signal: &'a AtomicUsize,
}

impl Bed<'_> {
    /// Returns true if a signal has arrived: no further measurement is started then.
    fn is_to_end(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }
}

/// The result's lines, printed as they are made.
#[derive(Default)]
struct Results {
    checks: usize,
    failures: usize,
}

impl Results {
    /// Prints a piece of information.
    fn tell(&mut self, text: &str) {
        print(&format!("      {text}\n"));
    }

    /// Prints a check and its result; `detail` has the numbers.
    fn check(&mut self, good: bool, what: &str, detail: &str) {
        self.checks += 1;
        self.failures += usize::from(!good);
        print(&format!("{}  {what}: {detail}\n", if good { "pass" } else { "FAIL" }));
    }
}

/// Runs all checks on the given port or a ring; returns true if all pass, `None` if `signal` was
/// set before all were done.
///
/// # Errors
/// [`SelfTestError`] if the port cannot be opened.
pub fn run(
    eal: &Eal,
    rules: Rules,
    ports: &[PortSpec],
    signal: &AtomicUsize,
) -> Result<Option<bool>, SelfTestError> {
    let location = match ports {
        [] => RING.to_owned(),
        [port] => port.location.clone(),
        _ => return Err(SelfTestError::Ports),
    };
    let bed =
        Bed { plan: plan(&location, &rules)?, own: ports.is_empty(), location, rules, signal };
    let mut results = Results::default();
    machine::tell(eal, &bed, &mut results);
    let work = |client: &Client| -> Result<(), ApiError> {
        // First, because its generated frames belong to the first run of a session.
        faults::check(client, &bed, &mut results)?;
        pacing::check(client, &bed, &mut results)?;
        ceilings::check(client, &bed, &mut results)
    };
    session(eal, bed.rules.clone(), work)??;
    let Results { checks, failures } = results;
    if bed.is_to_end() {
        print(&format!("Ended by a signal after {checks} checks, {failures} of which failed.\n"));
        return Ok(None);
    }
    print(&match failures {
        0 => format!("All {checks} checks pass.\n"),
        _ => format!("{failures} of {checks} checks FAIL.\n"),
    });
    Ok(Some(failures == 0))
}

/// A port, and a flow from it to itself with four fields that change, sequence numbers and stamps.
fn plan(location: &str, rules: &Rules) -> Result<Plan, ApiError> {
    let counter = |start: serde_json::Value, step: serde_json::Value| serde_json::json!({ "increment": { "start": start, "step": step, "count": 1000 } });
    let (address, port) = (
        |start: &str| counter(start.into(), "0.0.0.1".into()),
        |start: u64| counter(start.into(), 1.into()),
    );
    let config = serde_json::json!({
        "ports": [{ "name": PORT, "location": location }],
        "flows": [{
            "name": FLOW,
            "tx_rx": { "port": { "tx_name": PORT, "rx_names": [PORT] } },
            "packet": [
                { "ethernet": { "src": { "value": "02:00:00:00:00:01" }, "dst": { "value": "02:00:00:00:00:02" } } },
                { "ipv4": { "src": address("198.18.0.1"), "dst": address("198.19.0.1") } },
                { "udp": { "src_port": port(10_000), "dst_port": port(20_000) } },
            ],
            "metrics": { "enable": true, "loss": true, "latency": { "enable": true, "mode": "cut_through" } },
        }],
    });
    config::validate(&config, &rules.limits()).map(|(plan, _)| plan)
}
