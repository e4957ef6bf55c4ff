// SPDX-License-Identifier: BSD-3-Clause
//! `af-packet-fwd [-l CPUS] --vdev net_af_packet0,iface=IF ... -- -p PORTMASK [options]`; see
//! [`forwarders_kernel::af_packet`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    forwarders_kernel::program::af_packet_fwd()
}
