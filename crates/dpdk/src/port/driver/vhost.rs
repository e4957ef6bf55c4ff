// SPDX-License-Identifier: BSD-3-Clause
//! net_vhost: the host's end of a virtio link.

use std::path::Path;

use super::{Driver, refuse_key};
use crate::port::arguments::{Arguments, vdev};
use crate::port::tx_guard::TxGuard;

pub(super) const DRIVER: Driver = Driver {
    name: "net_vhost",
    aliases: &["eth_vhost"],
    // Received packets would request offloads at offsets that the peer chooses, and that move when
    // the program changes the packet.
    check_arguments: |arguments| {
        let why = "with legacy-ol-flags the peer decides where checksums are written";
        refuse_key(arguments, "legacy-ol-flags", why)
    },
    // The driver frees a packet into which it cannot insert a tag, and then returns it as not sent.
    tx_guard: |_, _| Some(TxGuard::InsertVlan),
    needs_guard: || true,
    ..Driver::PLAIN
};

/// The host's end of a virtio link. The other end is a virtual machine's device, or
/// [`VirtioUser`](super::VirtioUser). The link is up when the other end is connected.
///
/// The other end shares the memory of its packets; they are copied from and to there.
///
/// ```
/// use dpdk::vdev::Vhost;
/// let device = Vhost::new("net_vhost0", "/run/vm/net.sock").queues(2);
/// assert_eq!(device.to_string(), "net_vhost0,iface=/run/vm/net.sock,queues=2");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vhost(Arguments);

vdev!(Vhost, |arguments| {
    arguments.check_socket("iface")?;
    arguments.check_range("queues", 1..=128, "virtio has 1 to 128 pairs of queues")
});

impl Vhost {
    /// A device with that name, which begins with `net_vhost`, on a socket in the file system.
    #[must_use]
    pub fn new(name: impl Into<String>, socket: impl AsRef<Path>) -> Self {
        let mut arguments = Arguments::new(name);
        arguments.set_path("iface", socket);
        Self(arguments)
    }

    /// Pairs of queues, 1 by default.
    #[must_use]
    pub fn queues(mut self, count: u16) -> Self {
        self.0.set("queues", count);
        self
    }

    /// Connects to the socket, and reconnects when the other end comes back; by default it listens.
    #[must_use]
    pub fn client(mut self, on: bool) -> Self {
        self.0.set_flag("client", on);
        self
    }

    /// Lets the other end send large TCP packets that are still to be segmented (as `virtio` does
    /// between virtual machines); off by default.
    #[must_use]
    pub fn tso(mut self, on: bool) -> Self {
        self.0.set_flag("tso", on);
        self
    }
}
