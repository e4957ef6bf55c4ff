// SPDX-License-Identifier: BSD-3-Clause
//! Safe packet processing on DPDK.
//!
//! # Lifecycle
//! [`Eal::init`] starts DPDK, once per process. Everything else borrows from the [`Eal`]: pools of
//! packet buffers ([`Mempool`]), ports ([`Port`], whose state is part of its type), and the buffers
//! themselves ([`Mbuf`]). Dropping the `Eal` closes the ports; the borrow checker ensures that
//! nothing is left that could still use them.
//!
//! # Threads
//! Work runs on lcores, launched in a scope ([`Eal::scope`]) as with `std::thread::scope`. Queues are
//! `Send` but not `Sync` and polled through `&mut self`, so a queue cannot be polled from two lcores.
//!
//! # Speed
//! DPDK's header-only inline functions are rewritten in Rust in `fast/`: bursts, pool caches, rings, mbuf allocation and
//! free, lookups of IPv4 routes, quiescent states. The rest is a call into DPDK, as it is from C: drivers, the backends of
//! pools, freeing chained or shared mbufs, lookups in hash tables, ACLs, FIBs and IPv6 routes.
//!
//! # Linking
//! DPDK is linked by its shared libraries, and drivers are loaded from the installed DPDK's
//! directory. With the feature `static` the program contains all of DPDK, every driver included,
//! and needs no file of DPDK where it runs; the libraries that drivers use (libpcap, libibverbs,
//! ...) stay shared. Debian's libdpdk-dev has what this needs.
//!
//! Plugins that are loaded into such a program by EAL's `-d` find DPDK's functions only if the
//! program exports them, by its own build script:
//! ```no_run
//! println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic");
//! ```
//!
//! DPDK 22.11 and later are supported; 22.11, 24.11 and 25.11 are tested.
//!
//! # A forwarder
//! ```standalone_crate
//! use dpdk::{Burst, Eal, Mempool, PoolConfig, PortConfig, RxConfig, TxConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(any())]
//! let (eal, _arguments) = Eal::init(std::env::args_os())?;
//! # let (eal, _) = Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256 --vdev net_ring0".split(' '))?;
//! # let config = PoolConfig { count: 2047, ..PoolConfig::named("packets") };
//! # #[cfg(any())]
//! let config = PoolConfig::named("packets");
//! let pool = Mempool::packet_pool(&eal, &config)?;
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
//! for _ in 0..100_000 {
//!     queues.rx[0].receive(&mut burst);
//!     queues.tx[0].send(&mut burst);
//!     burst.clear(); // what the driver did not take is freed
//! }
//! drop((burst, queues)); // packets and queues are gone before the port that they came from stops
//! port.stop()?;
//! # Ok(())
//! # }
//! ```
//! With the EAL options `--no-pci --no-huge -m 128 -l 0 --vdev net_ring0`, it runs without a network
//! card, root or hugepages. The README lists what must be installed, and other devices; `examples/`
//! has a firewall, a router, a flow table and more.
//!
//! # Packets
//! A packet has one owner: a [`Burst`], a queue of the driver, a [`ring`], or a variable. Sending
//! moves it out of the burst, dropping it returns it to its pool; so none is lost, freed twice or
//! used after it was sent. A packet with several owners is a [`SharedMbuf`], which is read-only.
//!
//! # Several queues
//! Give the port one [`RxConfig`] for each lcore: it then has as many queues, and the device
//! spreads flows over them ([`Rss`]). Each [`RxQueue`] then moves to its lcore, together with the
//! [`TxQueue`] of the same number if the lcore sends too ([`Queues::pairs`]):
//! ```standalone_crate
//! # use dpdk::{Burst, Eal, Mempool, PoolConfig, PortConfig, Queues, RxConfig};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let arguments = "doc --no-huge --no-pci --no-shconf --no-telemetry -m 256 --vdev net_null0";
//! # let (eal, _) = Eal::init(arguments.split(' '))?;
//! # if eal.workers().is_empty() {
//! #     return Ok(()); // a machine with one CPU
//! # }
//! # let pool = Mempool::packet_pool(&eal, &PoolConfig { count: 4095, ..PoolConfig::named("packets") })?;
//! # let config = PortConfig {
//! #     rx: eal.workers().iter().take(2).map(|_| RxConfig::new(&pool)).collect(),
//! #     tx: vec![Default::default()],
//! #     ..PortConfig::default()
//! # };
//! # let mut port = eal.take_port(eal.ports()[0])?.configure(&config)?.start()?;
//! # let control = port.control();
//! let Queues { rx, .. } = port.queues(); // taken apart: what is left of a `queues` would keep the port from stopping
//! eal.scope(|scope| {
//!     for (lcore, mut rx) in eal.workers().into_iter().zip(rx) {
//!         scope.launch(lcore, move || {
//!             for _ in 0..1000 {
//!                 let mut burst = Burst::<32>::new();
//!                 rx.receive(&mut burst);
//!             }
//!         })?;
//!     }
//!     Ok::<(), dpdk::LaunchError>(())
//! })?; // waits for all lcores
//! port.stop()?;
//! # assert!(control.stats()?.ipackets >= 32_000);
//! # Ok(())
//! # }
//! ```
//!
//! # What the compiler refuses
//! - polling a queue from two lcores, and stopping a port whose queues are in use;
//! - a packet, pool, table or port that outlives the [`Eal`];
//! - using a packet after it was sent, and writing to one that has several owners;
//! - starting a port that was not configured, classifying by rules that were not built ([`acl`]);
//! - keeping a reference to a value read from a table ([`qsbr`]) when the table may be freed.
//!
//! # Later versions
//! Error enums are `#[non_exhaustive]`: a `match` needs an arm for the rest. Configurations may get
//! more fields: end their literals with `..PortConfig::default()`, or, if a name or a pool is
//! required, with a constructor: `..PoolConfig::named("packets")`, `..RxConfig::new(&pool)`.
//!
//! # Overview
//! | what | where | C |
//! |---|---|---|
//! | callbacks | [`RxQueue::add_callback`], [`TxQueue::add_callback`] | `rte_eth_add_rx_callback` |
//! | rings | [`ring`] | `rte_ring` |
//! | tables | [`hash`], [`lpm`], [`fib`], [`acl`] | `rte_hash`, `rte_lpm`, `rte_fib`, `rte_acl` |
//! | changing tables while others read | [`qsbr`] | `rte_rcu_qsbr` |
//! | fields of packets of one's own | [`dynfield`] | `rte_mbuf_dyn` |
//! | captures | [`pcapng`], [`Eal::pdump`] | `rte_pcapng`, `rte_pdump` |
//! | telemetry | [`telemetry`] | `rte_telemetry` |
//! | virtual devices | [`vdev`] | `--vdev` |
//!
//! `docs/from-c.md` of the source has a row for each C function.

#![warn(missing_debug_implementations)]

pub mod acl;
mod burst;
mod debug;
pub mod dynfield;
mod eal;
mod early_exit;
mod errno;
mod fast;
pub mod fib;
pub mod hash;
mod heap;
mod lcore;
pub mod lpm;
mod mbuf;
mod mempool;
mod mutex;
mod names;
mod numa;
pub mod pcapng;
mod pdump;
mod per_socket;
mod port;
pub mod qsbr;
mod release;
pub mod ring;
mod sockets;
mod stop;
pub mod telemetry;
mod telemetry_guard;
pub mod tsc;

pub use burst::{Burst, Drain};
pub use eal::{Eal, EalError};
pub use errno::Errno;
pub use heap::{map_large_blocks, trim_heap};
pub use lcore::{LaunchError, Lcore, Scope};
pub use mbuf::{
    Checksum, ExternalBuffer, ForeignError, ForeignMemory, HeapBuffer, HeapError, IpOffload,
    L2Type, L3Type, L4Offload, L4Type, Mbuf, OffloadError, PacketType, PartError, ShareError,
    SharedMbuf, TunnelType, TxOffload,
};
pub use mempool::{Exhausted, Mempool, MempoolError, PoolConfig};
pub use numa::UnknownNode;
pub use pdump::PdumpError;
pub use per_socket::PerSocket;
pub use port::vdev;
pub use port::{
    CallbackId, Configured, Descriptors, FlowTuple, Lack, Link, Packets, Port, PortConfig,
    PortControl, PortError, PortEvents, PortId, PortInfo, PortWatch, Queues, Request, Reta, Rss,
    RssHashTypes, RxConfig, RxOffloads, RxQueue, Shortfall, Started, Stats, TxBuffer, TxConfig,
    TxOffloads, TxQueue, Unconfigured, VlanModes, XstatIds, XstatNames, XstatsError, toeplitz,
};
pub use release::{Release, version};
pub use stop::{Stop, StopGuard};

/// The guides' examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/write-a-forwarder.md")]
#[doc = include_str!("../../../docs/look-packets-up.md")]
#[doc = include_str!("../../../docs/work-with-packets.md")]
#[doc = include_str!("../../../docs/set-up-ports.md")]
#[doc = include_str!("../../../docs/capture-packets.md")]
struct Guides;
