// SPDX-License-Identifier: BSD-3-Clause
//! `xdp-fwd --vdev net_xdp0,iface=IF ... -- -p PORTMASK [options]`; see
//! [`kernel_io::xdp`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    kernel_io::program::xdp_fwd()
}
