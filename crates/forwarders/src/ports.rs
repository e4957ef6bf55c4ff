// SPDX-License-Identifier: BSD-3-Clause
//! Ports of a forwarder: one RX and one TX queue each, started, their links awaited.

use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use dpdk::{
    Eal, Mempool, Port, PortConfig, PortControl, PortError, PortId, RxConfig, Started, TxConfig,
};

use crate::stop::Stop;

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
        })?
        .start()?;
    if promiscuous {
        port.control().set_promiscuous(true)?;
    }
    Ok(port)
}

/// `02:00:00:00:00:01` and the like.
#[must_use]
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02X}")).join(":")
}

/// Waits until every link is up, 9 seconds at most, and prints their state, as the C example does.
pub fn await_links(ports: &[PortControl<'_>], stop: &Stop) {
    const INTERVAL: Duration = Duration::from_millis(100);
    const CHECKS: u32 = 90;
    print!("\nChecking link status");
    let _ = std::io::stdout().flush();
    for _ in 0..CHECKS {
        if stop.is_raised() {
            return;
        }
        if ports.iter().all(|port| port.link().is_ok_and(|link| link.up)) {
            break;
        }
        print!(".");
        let _ = std::io::stdout().flush();
        sleep(INTERVAL);
    }
    println!("done");
    for port in ports {
        match port.link() {
            Ok(link) => {
                let speed = link.speed_mbps.map_or("speed unknown".to_owned(), |mbps| {
                    format!("{} Gbps", f64::from(mbps) / 1000.0)
                });
                let state = if link.up { "up" } else { "down" };
                println!("Port {} Link {state} at {speed}", port.id());
            }
            Err(error) => println!("Port {} link get failed: {error}", port.id()),
        }
    }
}
