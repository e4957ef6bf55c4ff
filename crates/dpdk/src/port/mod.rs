// SPDX-License-Identifier: BSD-3-Clause
//! Ports: taken from the [`Eal`] once, configured, started, split into queues, stopped.
//!
//! The state is part of the type. [`Port::queues`] borrows the started port, so a port cannot be
//! stopped, closed or detached while one of its queues is alive: that does not compile. What may be
//! asked of a port at any time, from any thread, is in [`PortControl`].

mod callback;
mod config;
mod control;
mod device;
mod error;
mod hotplug;
mod id;
mod info;
mod rx;
mod state;
mod tx;
mod tx_buffer;

pub use callback::{CallbackId, Packets};
pub use config::{PortConfig, RxConfig, TxConfig};
pub(crate) use control::lock;
pub use control::{Link, PortControl, Stats};
pub use error::PortError;
pub use id::PortId;
pub(crate) use id::valid_ports;
pub use info::PortInfo;
pub use rx::RxQueue;
pub use state::{Configured, Port, Queues, Started, Unconfigured};
pub use tx::TxQueue;
pub use tx_buffer::TxBuffer;
