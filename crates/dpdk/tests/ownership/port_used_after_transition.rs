// SPDX-License-Identifier: BSD-3-Clause
// expect: E0382
//! A port in two states at once.

use dpdk::{Configured, Port};

pub fn start(port: Port<'_, Configured>) {
    let started = port.start();
    #[cfg(fault)]
    let _ = port.unconfigure();
    drop(started);
}
