// SPDX-License-Identifier: BSD-3-Clause
//! `af-packet-ping --iface IF [options]`; see [`kernel_io::ping`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    kernel_io::ping::af_packet_ping()
}
