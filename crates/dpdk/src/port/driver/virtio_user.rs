// SPDX-License-Identifier: BSD-3-Clause
//! net_virtio_user: the guest's end of a virtio link, without a guest.

use std::path::Path;

use super::{Driver, refuse_key};
use crate::port::arguments::{Arguments, vdev};

pub(super) const DRIVER: Driver = Driver {
    name: "net_virtio_user",
    // The driver writes its header in front of packets even if the bytes there belong to another
    // packet or to no mbuf.
    check_arguments: |arguments| {
        let why = "vectorized sends write into packets that are shared";
        refuse_key(arguments, "vectorized", why)
    },
    ..Driver::PLAIN
};

/// The guest's end of a virtio link. The other end reads and writes this process's packet memory:
/// connect only to one that you trust with that, such as the kernel behind `/dev/vhost-net`.
///
/// ```
/// use dpdk::vdev::VirtioUser;
/// let device = VirtioUser::new("net_virtio_user0", "/run/vm/net.sock").queues(2);
/// assert_eq!(device.to_string(), "net_virtio_user0,path=/run/vm/net.sock,queues=2");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VirtioUser(Arguments);

vdev!(VirtioUser, |arguments| {
    arguments.check_socket("path")?;
    arguments.check_range("queues", 1..=128, "virtio has 1 to 128 pairs of queues")?;
    match arguments.get("queue_size").map(str::parse::<u16>) {
        Some(Ok(size)) if !size.is_power_of_two() => {
            Err(arguments.refuse("queue_size", &size.to_string(), "it has to be a power of two"))
        }
        _ => Ok(()),
    }
});

impl VirtioUser {
    /// A device with that name, which begins with `net_virtio_user`, on a vhost-user socket or on
    /// `/dev/vhost-net`.
    #[must_use]
    pub fn new(name: impl Into<String>, path: impl AsRef<Path>) -> Self {
        let mut arguments = Arguments::new(name);
        arguments.set_path("path", path);
        Self(arguments)
    }

    /// Pairs of queues, 1 by default.
    #[must_use]
    pub fn queues(mut self, count: u16) -> Self {
        self.0.set("queues", count);
        self
    }

    /// Descriptors of each queue, a power of two; 256 by default.
    #[must_use]
    pub fn queue_size(mut self, descriptors: u16) -> Self {
        self.0.set("queue_size", descriptors);
        self
    }

    /// The MAC address; a random one by default.
    #[must_use]
    pub fn mac(mut self, mac: [u8; 6]) -> Self {
        self.0.set_mac("mac", mac);
        self
    }

    /// Listens on the socket for a vhost device that connects; by default it connects. Attaching
    /// then waits for the other end, without a time limit, and all operations on any port wait with
    /// it, on every thread: the same process cannot attach the other end afterwards. Use it only if
    /// another process is sure to connect.
    #[must_use]
    pub fn server(mut self, on: bool) -> Self {
        self.0.set_flag("server", on);
        self
    }

    /// The kernel interface behind `/dev/vhost-net`; a new one by default.
    #[must_use]
    pub fn interface(mut self, interface: impl AsRef<str>) -> Self {
        self.0.set("iface", interface.as_ref());
        self
    }

    /// Sets whether long packets are received in several buffers; on by default.
    #[must_use]
    pub fn mergeable_buffers(mut self, on: bool) -> Self {
        self.0.set_flag("mrg_rxbuf", on);
        self
    }

    /// Sets whether descriptors are used in order; on by default.
    #[must_use]
    pub fn in_order(mut self, on: bool) -> Self {
        self.0.set_flag("in_order", on);
        self
    }

    /// Sets whether queues are packed, as in virtio 1.1; off by default.
    #[must_use]
    pub fn packed(mut self, on: bool) -> Self {
        self.0.set_flag("packed_vq", on);
        self
    }
}
