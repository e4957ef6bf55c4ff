// SPDX-License-Identifier: BSD-3-Clause
//! Waits until no more frames arrive.

use std::thread;
use std::time::{Duration, Instant};

use super::client::Client;
use crate::plan::Plan;
use crate::telemetry::Subject;

/// How long no frame must have arrived.
const QUIET: Duration = Duration::from_millis(200);
/// The longest wait: other senders may send for ever.
const LONGEST: Duration = Duration::from_secs(3);
/// Time between two checks.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until the ports of a plan have received nothing for 0.2 s, at most 3 s.
pub fn wait(client: &Client, plan: &Plan) {
    let count = || -> u64 {
        let ports = plan.ports.iter().map(|port| client.ask(Subject::Port(port.name.clone())));
        ports.filter_map(|told| told.number("rx_frames")).sum()
    };
    let started = Instant::now();
    let (mut last, mut since) = (count(), started);
    while since.elapsed() < QUIET && started.elapsed() < LONGEST {
        thread::sleep(LOOK);
        let now = count();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
}
