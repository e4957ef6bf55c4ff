// SPDX-License-Identifier: BSD-3-Clause
//! Ports: taken from the [`Eal`] once, configured, started, split into queues, stopped.
//!
//! The state is part of the type. [`Port::queues`] borrows the started port, so a port cannot be
//! stopped, closed or detached while one of its queues is alive: that does not compile.
//! [`PortControl`] has the operations that are allowed at any time, from any thread.

mod agreement;
mod arguments;
mod bits;
mod callback;
mod config;
mod control;
mod device;
mod driver;
mod error;
mod events;
mod hotplug;
mod id;
mod info;
mod interrupts;
mod leftover;
mod lock;
mod offloads;
mod promiscuity;
mod rss;
mod rss_key;
mod rx;
mod shortfall;
mod state;
mod toeplitz;
mod tx;
mod tx_buffer;
mod tx_guard;
pub mod vdev;

pub use callback::{CallbackId, Packets};
pub use config::{PortConfig, RxConfig, TxConfig};
pub(crate) use control::configuration::{began_within, may_be_closed, may_be_counted};
pub use control::vlan::VlanModes;
pub use control::xstats::{XstatIds, XstatNames, XstatsError};
pub use control::{Link, PortControl, Stats};
pub(crate) use driver::{reserves_hash_table, reserves_ring};
pub use error::PortError;
pub use events::{PortEvents, PortWatch};
pub use id::PortId;
pub(crate) use id::valid_ports;
pub use info::{Descriptors, PortInfo};
pub(crate) use interrupts::apart;
pub(crate) use lock::{PutOff, free_unlocked, lock, lock_within};
pub use offloads::{Request, RxOffloads, TxOffloads};
pub use rss::{Reta, Rss, RssHashTypes};
pub use rx::RxQueue;
pub use shortfall::{Lack, Shortfall};
pub use state::{Configured, Port, Queues, Started, Unconfigured};
pub use toeplitz::{FlowTuple, toeplitz};
pub use tx::TxQueue;
pub use tx_buffer::TxBuffer;
