// SPDX-License-Identifier: BSD-3-Clause
//! Safe packet processing on DPDK.
//!
//! # Lifecycle
//! [`Eal::init`] starts DPDK, once per process. Everything else borrows from the [`Eal`]: pools of
//! packet buffers ([`Mempool`]), ports ([`Port`], whose state is part of its type), and the buffers
//! themselves ([`Mbuf`]). Dropping the `Eal` closes the ports; the borrow checker sees to it that nothing
//! is left that could notice.
//!
//! # Threads
//! Work runs on lcores, launched in a scope ([`Eal::scope`]) as with `std::thread::scope`. Queues are
//! `Send` but not `Sync` and polled through `&mut self`, so a queue cannot be polled from two lcores.
//!
//! # Speed
//! DPDK's header-only inline functions are rewritten in Rust in `fast/`, so that bursts are received,
//! sent, allocated and freed without a call into C other than the driver's own.
//!
//! # Linking
//! DPDK is linked by its shared libraries, and drivers are loaded from where the installed DPDK keeps them. With the
//! feature `static` the program has all of it inside, every driver included, and needs no file of DPDK where it runs; the
//! libraries that drivers use (libpcap, libibverbs, ...) stay shared. Debian's libdpdk-dev has what it takes.
//!
//! Plugins that are given to such a program by EAL's `-d` find DPDK's functions only if it shows them. Its own build script
//! says so:
//! ```no_run
//! println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic");
//! ```
//!
//! # A forwarder
//! ```no_run
//! use dpdk::{Burst, Eal, Mempool, PoolConfig, PortConfig, RxConfig, TxConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (eal, _arguments) = Eal::init(std::env::args_os())?;
//! let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets"))?;
//! let port = eal.take_port(eal.ports()[0])?;
//! let mut port = port
//!     .configure(&PortConfig {
//!         rx: vec![RxConfig::new(&pool)],
//!         tx: vec![TxConfig::default()],
//!         ..PortConfig::default()
//!     })?
//!     .start()?;
//! let mut queues = port.queues();
//! let mut burst = Burst::<32>::new();
//! for _ in 0..1_000_000 {
//!     queues.rx[0].receive(&mut burst);
//!     queues.tx[0].send(&mut burst);
//!     burst.clear(); // what the driver did not take is freed
//! }
//! drop((burst, queues)); // packets and queues are gone before the port that they came from stops
//! port.stop()?;
//! # Ok(())
//! # }
//! ```

pub mod acl;
mod burst;
pub mod dynfield;
mod eal;
mod errno;
mod fast;
pub mod fib;
pub mod hash;
mod lcore;
pub mod lpm;
mod mbuf;
mod mempool;
pub mod pcapng;
mod pdump;
mod per_socket;
mod port;
pub mod qsbr;
pub mod ring;
mod sockets;
pub mod telemetry;
pub mod tsc;

pub use burst::{Burst, Drain};
pub use eal::{Eal, EalError};
pub use errno::Errno;
pub use lcore::{LaunchError, Lcore, Scope};
pub use mbuf::{
    Checksum, ExternalBuffer, ForeignError, ForeignMemory, HeapBuffer, HeapError, IpOffload,
    L2Type, L3Type, L4Offload, L4Type, Mbuf, OffloadError, PacketType, PartError, ShareError,
    SharedMbuf, TunnelType, TxOffload,
};
pub use mempool::{Exhausted, Mempool, MempoolError, PoolConfig};
pub use pdump::PdumpError;
pub use per_socket::PerSocket;
pub use port::vdev;
pub use port::{
    CallbackId, Configured, Descriptors, FlowTuple, Lack, Link, Packets, Port, PortConfig,
    PortControl, PortError, PortId, PortInfo, Queues, Request, Reta, Rss, RssHashTypes, RxConfig,
    RxOffloads, RxQueue, Shortfall, Started, Stats, TxBuffer, TxConfig, TxOffloads, TxQueue,
    Unconfigured, VlanModes, XstatIds, XstatNames, XstatsError, toeplitz,
};

/// Version of the DPDK library that runs, as it calls itself.
#[must_use]
pub fn version() -> String {
    // SAFETY: returns a static C string.
    unsafe { std::ffi::CStr::from_ptr(dpdk_sys::rte_version()) }.to_string_lossy().into_owned()
}

/// The guides' examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-a-forwarder.md")]
#[doc = include_str!("../../../docs/look-packets-up.md")]
#[doc = include_str!("../../../docs/work-with-packets.md")]
#[doc = include_str!("../../../docs/set-up-ports.md")]
#[doc = include_str!("../../../docs/capture-packets.md")]
struct Guides;
