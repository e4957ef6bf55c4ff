// SPDX-License-Identifier: BSD-3-Clause
//! Virtual devices with typed arguments, for [`Eal::attach_vdev`](crate::Eal::attach_vdev).
//!
//! Each type writes the text that EAL reads: its `Display` is the argument of `--vdev`. A name or
//! value that EAL would misread is refused when the device is attached (a comma begins another
//! argument, a second `=` ends a value, `[` begins a list); the text then also passes the check of
//! [`Eal::attach`](crate::Eal::attach).
//!
//! Unset arguments are left out, so that the driver's default applies; the documented defaults are
//! those of DPDK 22.11 to 25.11.

pub use super::arguments::{Vdev, VdevError};
pub use super::driver::{
    AfPacket, AfXdp, Memif, Null, Pcap, Ring, Role, Tap, TapMac, Vhost, VirtioUser,
};

#[cfg(test)]
mod tests;
