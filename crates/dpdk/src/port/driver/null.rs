// SPDX-License-Identifier: BSD-3-Clause
//! net_null: receives empty packets endlessly, and frees sent ones.

use super::Driver;
use crate::mempool::LEAST_DATA;
use crate::port::arguments::{Arguments, vdev};

pub(super) const DRIVER: Driver = Driver { name: "net_null", check_arguments, ..Driver::PLAIN };

/// With `copy` the driver copies `size` bytes into and out of buffers of any length. Without it,
/// the driver only reports that length. This crate does not trust the length, but a driver that
/// sends the packets later does: so `size` is limited to the bytes that every buffer has.
fn check_arguments(arguments: &[&str]) -> Result<(), &'static str> {
    let is_safe = |argument: &&str| match argument.split_once('=') {
        // DPDK reads a leading 0 as octal.
        Some(("size", size)) => {
            size.parse().is_ok_and(|size| (1..=LEAST_DATA).contains(&size))
                && size.bytes().all(|b| b.is_ascii_digit())
                && !size.starts_with('0')
        }
        Some(("copy", copy)) => copy == "0",
        Some(("no-rx", no_rx)) => no_rx == "0" || no_rx == "1",
        _ => false,
    };
    match arguments.iter().all(is_safe) {
        true => Ok(()),
        false => Err(
            "net_null takes size=1 to size=64, no-rx=0, no-rx=1 and copy=0 here; larger packets might not fit their buffers",
        ),
    }
}

/// A device without a wire: each burst is full of packets of `size` bytes with arbitrary content.
/// RSS can be configured and queried, but spreads nothing.
///
/// ```
/// use dpdk::vdev::Null;
/// assert_eq!(Null::new("net_null0").size(60).to_string(), "net_null0,size=60");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Null(Arguments);

vdev!(Null, |arguments| arguments.check_range(
    "size",
    1..=64,
    "net_null does not check whether its packets fit; only 64 bytes are sure to be in every buffer"
));

impl Null {
    /// A device with that name, which begins with `net_null`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arguments::new(name))
    }

    /// Bytes of each packet, 1 to 64; 64 by default.
    #[must_use]
    pub fn size(mut self, bytes: u16) -> Self {
        self.0.set("size", bytes);
        self
    }

    /// Sets whether it receives nothing; by default it receives packets.
    #[must_use]
    pub fn no_rx(mut self, on: bool) -> Self {
        self.0.set_flag("no-rx", on);
        self
    }
}
