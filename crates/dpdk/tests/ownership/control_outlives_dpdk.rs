// SPDX-License-Identifier: BSD-3-Clause
// expect: E0505
//! A port queried after DPDK has ended.

use dpdk::{Eal, PortError, PortId};

pub fn ask(eal: Eal, port: PortId) -> Result<bool, PortError> {
    let control = eal.take_port(port)?.control();
    #[cfg(fault)]
    drop(eal);
    control.promiscuous()
}
