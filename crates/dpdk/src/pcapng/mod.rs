// SPDX-License-Identifier: BSD-3-Clause
//! Packets written to a pcapng file while they pass.
//!
//! # Parts and threads
//! A [`Tap`] belongs to the thread that polls: it copies packets into a ring of bytes, without
//! waiting, without a lock, and without an mbuf of its own. A [`Pcapng`] belongs to another thread,
//! which calls [`collect`](Pcapng::collect) often enough that rings do not fill; it may sleep,
//! write, and wait for a disk. Packets that find their ring full are counted as dropped, in the
//! file too. Threads that an lcore spawns share its CPU: let workers poll
//! ([`Eal::scope`](crate::Eal::scope)), and the main lcore collect.
//!
//! # Lifecycle
//! Open a file, add the interfaces, make a tap for each queue and direction, move the taps into
//! callbacks, collect, [`finish`](Pcapng::finish). A file that is dropped is finished as well, but
//! errors are not reported.
//!
//! # Units
//! Lengths are bytes without the FCS, which is never captured. Times on the packet path are TSC
//! cycles, read once a burst; in the file they are nanoseconds since the epoch. The system's clock
//! is read only when the file is opened: times in a file do not jump when that clock is set, and
//! drift from it by the error of the TSC's rate.
//!
//! # Why not `rte_pcapng`
//! The format is the same (draft-ietf-opsawg-pcapng). DPDK's library builds a block in a copy of
//! the mbuf. For a packet of several segments it writes the length of the first; a packet that
//! fills its buffer has no room for the block's end and is lost; and it trusts the lengths that
//! drivers report, even beyond the buffer. Cores share the variables of its clock. A short write
//! leaves half a block in the file. Its functions take different arguments in 22.11, 24.11 and
//! 25.11.
//!
//! ```standalone_crate
//! use std::time::Duration;
//! use dpdk::pcapng::{Direction, Interface, Pcapng, PcapngConfig, TapConfig};
//!
//! # fn run(mut port: dpdk::Port<'_, dpdk::Started>) -> Result<(), Box<dyn std::error::Error>> {
//! let mut file = Pcapng::create("wan.pcapng", &PcapngConfig::named("my-forwarder 1.0"))?;
//! let wan = file.add_interface(&Interface::of(&port.control())?)?;
//! let mut tap = file.tap(wan, 0, Direction::Received, &TapConfig::default())?;
//! let mut queues = port.queues();
//! queues.rx[0].add_callback(move |packets| tap.capture(packets.iter()))?;
//! std::thread::scope(|scope| {
//!     let mut rx = queues.rx.remove(0);
//!     let polling = scope.spawn(move || {
//!         let mut burst = dpdk::Burst::<32>::new();
//!         for _ in 0..1000 {
//!             rx.receive(&mut burst);
//!             burst.clear();
//!         }
//!     });
//!     while !polling.is_finished() {
//!         file.collect()?;
//!         std::thread::sleep(Duration::from_millis(1));
//!     }
//!     Ok::<(), dpdk::pcapng::PcapngError>(())
//! })?;
//! let figures = file.finish()?;
//! println!("{} captured, {} lost", figures.captured, figures.dropped);
//! # assert_eq!(figures.captured + figures.dropped, 32_000);
//! # Ok(())
//! # }
//! # let directory = std::env::temp_dir().join(format!("doc-pcapng-{}", std::process::id()));
//! # std::fs::create_dir(&directory)?;
//! # std::env::set_current_dir(&directory)?;
//! # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 256 --vdev net_null0".split(' '))?;
//! # let pool = dpdk::Mempool::packet_pool(&eal, &dpdk::PoolConfig { count: 2047, ..dpdk::PoolConfig::named("packets") })?;
//! # let config = dpdk::PortConfig { rx: vec![dpdk::RxConfig::new(&pool)], ..Default::default() };
//! # run(eal.take_port(eal.ports()[0])?.configure(&config)?.start()?)?;
//! # assert!(std::fs::metadata("wan.pcapng")?.len() > 1000);
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod tap;
mod vlan;
mod writer;

#[doc(inline)]
pub use capture_file::pcapng::Direction;
pub use tap::{Tap, TapConfig};
pub use writer::{Interface, InterfaceId, Pcapng, PcapngConfig, PcapngError};

/// Counts of the packets that taps have seen.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Figures {
    /// Packets in the file.
    pub captured: u64,
    /// Packets that found a ring full.
    pub dropped: u64,
}
