// SPDX-License-Identifier: BSD-3-Clause
//! `af-xdp-fwd [-l CPUS] --vdev net_af_xdp0,iface=IF ... -- -p PORTMASK [options]`; see
//! [`forwarders_kernel::af_xdp`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    forwarders_kernel::program::af_xdp_fwd()
}
