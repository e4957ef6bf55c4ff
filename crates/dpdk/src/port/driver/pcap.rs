// SPDX-License-Identifier: BSD-3-Clause
//! net_pcap: capture files, or kernel interfaces through libpcap.

use std::path::Path;

use super::{Driver, Restrictions};
use crate::errno::Errno;
use crate::port::arguments::{Arguments, vdev};

pub(super) const DRIVER: Driver = Driver { name: "net_pcap", after_rx_setup, ..Driver::PLAIN };

/// If the setup of a queue with `infinite_rx` fails, the driver frees its memory, and frees it
/// again when the port is closed; a successful setup of the first queue repairs that.
fn after_rx_setup(queue: u16, code: i32) -> Restrictions {
    match Errno(-code) {
        // The driver has not begun: its file has been closed since the port was stopped.
        Errno(0) | Errno::ENOENT => Restrictions::default(),
        _ => Restrictions { no_configure: queue > 0, no_close: true },
    }
}

/// Receives from a capture file and writes sent packets into one, or does both with a kernel
/// interface.
///
/// ```
/// use dpdk::vdev::Pcap;
/// let device = Pcap::new("net_pcap0").receive_file("in.pcap").send_file("out.pcap");
/// assert_eq!(device.to_string(), "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pcap(Arguments);

vdev!(Pcap, |arguments| {
    // The driver then uses the interface both ways, and silently ignores the files.
    let files = ["rx_pcap", "tx_pcap"].into_iter().find(|key| arguments.get(key).is_some());
    match (arguments.get("iface"), files) {
        (Some(interface), Some(_)) => Err(arguments.refuse(
            "iface",
            interface,
            "it is used both ways and cannot be combined with files",
        )),
        (None, None) => arguments.need("iface", "set a file to receive or send, or an interface"),
        _ => Ok(()),
    }
});

impl Pcap {
    /// A device with that name, which begins with `net_pcap`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arguments::new(name))
    }

    /// Receives the frames of this capture file, once; without it nothing is received.
    #[must_use]
    pub fn receive_file(mut self, path: impl AsRef<Path>) -> Self {
        self.0.set_path("rx_pcap", path);
        self
    }

    /// Writes sent packets into this capture file, which is replaced; without it they are freed.
    #[must_use]
    pub fn send_file(mut self, path: impl AsRef<Path>) -> Self {
        self.0.set_path("tx_pcap", path);
        self
    }

    /// A kernel interface to receive from and send on. Needs `CAP_NET_RAW`.
    #[must_use]
    pub fn interface(mut self, interface: impl AsRef<str>) -> Self {
        self.0.set("iface", interface.as_ref());
        self
    }

    /// Receives the file repeatedly; off by default. Its packets are kept in mbufs of the queue's
    /// pool, which must have more of them, until the device is closed.
    #[must_use]
    pub fn again_and_again(mut self, on: bool) -> Self {
        self.0.set_flag("infinite_rx", on);
        self
    }
}
