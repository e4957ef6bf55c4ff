// SPDX-License-Identifier: BSD-3-Clause
// expect: E0599
//! A port started before it has queues.

use dpdk::{Port, PortConfig, PortError, Started, Unconfigured};

pub fn start<'eal>(
    port: Port<'eal, Unconfigured>,
    config: &PortConfig<'eal>,
) -> Result<Port<'eal, Started>, PortError> {
    #[cfg(not(fault))]
    let port = port.configure(config)?;
    #[cfg(fault)]
    let _ = config;
    port.start()
}
