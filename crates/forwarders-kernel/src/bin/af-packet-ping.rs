// SPDX-License-Identifier: BSD-3-Clause
//! `af-packet-ping --iface IF [options]`; see [`forwarders_kernel::ping`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    forwarders_kernel::ping::af_packet_ping()
}
