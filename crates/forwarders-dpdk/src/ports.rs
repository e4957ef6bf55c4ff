// SPDX-License-Identifier: BSD-3-Clause
//! Ports of a forwarder: one RX and one TX queue each; starts them and waits for their links.

use std::thread::sleep;
use std::time::Duration;

use dpdk::{
    Eal, Lcore, Mempool, Port, PortConfig, PortControl, PortError, PortId, RxConfig, Started,
    TxConfig,
};

use crate::options::ports_of;
use crate::stop::Stop;
use forwarders_common::{say, say_on};

/// The ports of a mask, or all ports if there is none.
///
/// # Errors
/// The number of a port that does not exist.
pub fn chosen(eal: &Eal, mask: Option<u32>) -> Result<Vec<PortId>, u16> {
    let present = eal.ports();
    let Some(mask) = mask else { return Ok(present) };
    ports_of(mask)
        .map(|port| present.iter().find(|id| id.index() == port).copied().ok_or(port))
        .collect()
}

/// Configures and starts one port with one queue each way.
///
/// # Errors
/// See [`PortError`].
pub fn start<'eal>(
    eal: &'eal Eal,
    id: PortId,
    pool: &Mempool<'eal>,
    promiscuous: bool,
) -> Result<Port<'eal, Started>, PortError> {
    let port = eal
        .take_port(id)?
        .configure(&PortConfig {
            rx: vec![RxConfig::new(pool)],
            tx: vec![TxConfig::default()],
            no_packet_types: true,
            ..PortConfig::default()
        })?
        .start()?;
    if promiscuous {
        port.control().set_promiscuous(true)?;
    }
    Ok(port)
}

/// Waits until every link is up, at most 9 seconds, and prints their state, as the C example does.
pub fn await_links(ports: &[PortControl<'_>], stop: &Stop) {
    const INTERVAL: Duration = Duration::from_millis(100);
    const CHECKS: u32 = 90;
    say_on!("\nChecking link status");
    for _ in 0..CHECKS {
        if stop.is_raised() {
            return;
        }
        if ports.iter().all(|port| port.link().is_ok_and(|link| link.up)) {
            break;
        }
        say_on!(".");
        sleep(INTERVAL);
    }
    say!("done");
    for port in ports {
        match port.link_text() {
            Ok(text) => say!("Port {} {text}", port.id()),
            Err(error) => say!("Port {} link get failed: {error}", port.id()),
        }
    }
}

/// Warns if a port is polled from another NUMA node than its device's: each packet then crosses
/// from one to the other. DPDK's l2fwd does not check this; the text is that of its examples that
/// do.
pub fn warn_if_remote(port: PortId, lcore: Lcore) {
    if is_remote(port.socket(), lcore.socket()) {
        say!(
            "WARNING, port {port} is on remote NUMA node to polling thread (lcore {}).\
             \n\tPerformance will not be optimal.",
            lcore.id()
        );
    }
}

/// Unknown nodes are not remote.
fn is_remote(port: Option<u32>, lcore: Option<u32>) -> bool {
    matches!((port, lcore), (Some(port), Some(lcore)) if port != lcore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_nodes_that_differ_are_remote() {
        assert!(is_remote(Some(1), Some(0)));
        for (port, lcore) in [(Some(0), Some(0)), (None, Some(0)), (Some(1), None), (None, None)] {
            assert!(!is_remote(port, lcore));
        }
    }
}
