// SPDX-License-Identifier: BSD-3-Clause
//! net_memif: shared memory with another process.

use std::path::Path;

use dpdk_sys::rte_eth_dev_info;

use super::{Driver, decimal, refuse_key};
use crate::port::arguments::{Arguments, vdev};
use crate::port::config::PortConfig;
use crate::port::tx_guard::TxGuard;
use crate::release::Release;

pub(super) const DRIVER: Driver = Driver {
    name: "net_memif",
    check_arguments,
    max_rx_queues: QUEUES,
    max_tx_queues: QUEUES,
    tx_guard,
    needs_guard: copies_unchecked,
    least_rx_room: || if copies_unchecked() { BUFFER_BYTES as u16 } else { 0 },
    shares_with_interrupts: true,
    hash_table: Some("memif-sh"),
    ..Driver::PLAIN
};

/// The number of queues in each direction whose rings, at the largest allowed size, fit into 4 GiB:
/// the driver adds up their bytes in 32 bits.
const QUEUES: u16 = 63;
/// Bytes of the buffers of one ring, at most.
const RING_BYTES: u64 = 1 << 25;
/// Bytes of a buffer by default.
const BUFFER_BYTES: u64 = 2048;

/// Returns true if this release copies bursts without checks. Releases newer than 22.11 assume that
/// the peer's buffers are as long as their own, and copy whole segments if the pool of a packet's
/// first segment says that they fit. When they receive a packet of several buffers into shorter
/// mbufs, they report more bytes than they have written.
fn copies_unchecked() -> bool {
    Release::running() > Release::V22_11
}

fn check_arguments(arguments: &[&str]) -> Result<(), &'static str> {
    refuse_key(arguments, "zero-copy", "with zero-copy the peer writes to packets at any time")?;
    let (mut bytes, mut log2) = (BUFFER_BYTES, 10);
    for argument in arguments {
        match argument.split_once('=') {
            Some(("bsize", value)) => bytes = decimal(value).ok_or("bsize is a number of bytes")?,
            Some(("rsize", value)) => log2 = decimal(value).ok_or("rsize is a number")?,
            _ => {}
        }
    }
    if log2 > 14 || bytes << log2 > RING_BYTES {
        return Err(
            "bsize * 2^rsize is 2^25 bytes at most: with more the driver's count of its memory overflows",
        );
    }
    if bytes != BUFFER_BYTES && copies_unchecked() {
        return Err(
            "this release of DPDK writes past the end of net_memif's buffers if the peer has another bsize: leave it at 2048",
        );
    }
    Ok(())
}

fn tx_guard<'eal>(_: &rte_eth_dev_info, config: &PortConfig<'eal>) -> Option<TxGuard<'eal>> {
    let pool = config.rx.first().map(|queue| queue.pool);
    copies_unchecked().then_some(TxGuard::OnePool { pool })
}

/// The end of a memif link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Listens on the socket, and accepts one client for each `id`.
    Server,
    /// Allocates the shared memory, and chooses the sizes of rings and buffers.
    Client,
}

/// One end of a memif link. The link is up when the other end is connected.
///
/// Always without zero-copy, which [`Eal::attach`](crate::Eal::attach) refuses: the peer could
/// write to packets while the program reads them.
///
/// ```
/// use dpdk::vdev::{Memif, Role};
/// let device = Memif::new("net_memif0").role(Role::Client).socket("/run/a.sock").id(3);
/// assert_eq!(device.to_string(), "net_memif0,role=client,socket=/run/a.sock,socket-abstract=no,id=3");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memif(Arguments);

vdev!(Memif, |arguments| {
    arguments.check_socket("socket")?;
    match arguments.get("socket") {
        Some(name) if name.len() > ABSTRACT && arguments.get("socket-abstract") != Some("no") => {
            return Err(arguments.refuse(
                "socket",
                name,
                "an abstract socket name has at most 106 bytes",
            ));
        }
        _ => {}
    }
    arguments.check_range("rsize", 1..=14, "must be 1 to 14")?;
    arguments.check_range("bsize", 1..=u16::MAX.into(), "must be 1 to 65535")?;
    match arguments.get("secret") {
        Some(secret) if secret.len() > SECRET => {
            Err(arguments.refuse("secret", secret, "a secret has at most 24 bytes"))
        }
        _ => Ok(()),
    }
});

/// Bytes of a name that is no path.
const ABSTRACT: usize = 106;
/// Bytes of a secret.
const SECRET: usize = 24;

impl Memif {
    /// A device with that name, which begins with `net_memif`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arguments::new(name))
    }

    /// Sets the end of the link; the client by default.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.0.set("role", if role == Role::Server { "server" } else { "client" });
        self
    }

    /// Sets the socket in the file system that connects the two ends; by default the abstract one
    /// `/run/memif.sock`.
    #[must_use]
    pub fn socket(mut self, path: impl AsRef<Path>) -> Self {
        self.0.set_path("socket", path);
        self.0.set("socket-abstract", "no");
        self
    }

    /// Sets an abstract socket of the network namespace: a name of at most 106 bytes, without a
    /// file.
    #[must_use]
    pub fn abstract_socket(mut self, name: impl AsRef<str>) -> Self {
        self.0.set("socket", name.as_ref());
        self.0.set("socket-abstract", "yes");
        self
    }

    /// Sets the number of the link on the socket, the same at both ends; 0 by default.
    #[must_use]
    pub fn id(mut self, id: u32) -> Self {
        self.0.set("id", id);
        self
    }

    /// Sets the bytes of each buffer in the shared memory, which the client chooses; 2048 by
    /// default. Longer packets take several buffers, and the driver does not reset the flag for
    /// that: a later, shorter packet in the same slot is joined with the following one (seen with
    /// 22.11). So choose buffers as long as the longest packets. With DPDK releases newer than
    /// 22.11 safe code cannot attach devices with another length than the default: these releases
    /// write past the end of buffers that are shorter than the other end's.
    #[must_use]
    pub fn buffer_size(mut self, bytes: u16) -> Self {
        self.0.set("bsize", bytes);
        self
    }

    /// The number of slots of each ring as a power of two, which the client chooses: 1 to 14; 10
    /// (1024 slots) by default. The buffers of a ring may have at most 2^25 bytes together, and all
    /// rings at most 65,536 slots: the driver counts slots in 16 bits, and would otherwise use some
    /// twice.
    #[must_use]
    pub fn ring_size_log2(mut self, log2: u8) -> Self {
        self.0.set("rsize", log2);
        self
    }

    /// The MAC address; a random one by default.
    #[must_use]
    pub fn mac(mut self, mac: [u8; 6]) -> Self {
        self.0.set_mac("mac", mac);
        self
    }

    /// Sets a secret that must be the same at both ends, at most 24 bytes; none by default. It is
    /// sent in clear text.
    #[must_use]
    pub fn secret(mut self, secret: impl AsRef<str>) -> Self {
        self.0.set("secret", secret.as_ref());
        self
    }
}
