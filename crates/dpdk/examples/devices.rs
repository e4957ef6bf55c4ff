// SPDX-License-Identifier: BSD-3-Clause
//! Attaches devices and prints the result for each: `devices [EAL options] -- DEVICE...`
//!
//! The available drivers depend on how a program was linked; this shows them. The exit status is 1
//! if a device was refused.
//! ```text
//! $ devices --no-huge --no-pci -- net_null0 net_ring0 net_memif0
//! net_null0: driver net_null
//! net_ring0: driver net_ring
//! net_memif0: driver net_memif
//! ```

mod common;

use std::process::ExitCode;

use common::Result;
use dpdk::Eal;

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let mut refused = 0;
    for device in &arguments {
        let device = device.to_string_lossy();
        match eal.attach(&device) {
            Ok(ports) => {
                for id in ports {
                    println!("{device}: driver {}", eal.take_port(id)?.info()?.driver);
                }
            }
            Err(error) => {
                println!("{device}: {error}");
                refused += 1;
            }
        }
    }
    match refused {
        0 => Ok(()),
        count => Err(format!("{count} of {} devices refused", arguments.len()).into()),
    }
}
