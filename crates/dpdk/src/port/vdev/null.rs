// SPDX-License-Identifier: BSD-3-Clause
//! net_null: receives empty packets without end, and frees what is sent.

use super::{Arguments, vdev};

/// A device that is nothing: each burst is full of packets of `size` bytes, whatever they hold. RSS can be set
/// and asked, and spreads nothing.
///
/// ```
/// use dpdk::vdev::Null;
/// assert_eq!(Null::new("net_null0").size(60).to_string(), "net_null0,size=60");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Null(Arguments);

vdev!(Null, "net_null", |arguments| arguments.check_range(
    "size",
    1..=64,
    "net_null does not look whether its packets fit; every buffer has 64 bytes"
));

impl Null {
    /// A device of that name, which begins with `net_null`.
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

    /// Whether it receives nothing; by default it does.
    #[must_use]
    pub fn no_rx(mut self, on: bool) -> Self {
        self.0.set_flag("no-rx", on);
        self
    }
}
