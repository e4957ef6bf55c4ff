// SPDX-License-Identifier: BSD-3-Clause
//! `xdp-fwd --vdev net_xdp0,iface=IF ... -- -p PORTMASK [options]`; see
//! [`forwarders_kernel::xdp`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    forwarders_kernel::program::xdp_fwd()
}
