// SPDX-License-Identifier: BSD-3-Clause
//! The nodes. Between lookup and transmission, the port that a packet is to be sent on is stored in
//! the mbuf's port field, where drivers store the receiving port.

mod classify;
mod discard;
mod filter;
mod header;
mod lookup;
mod receive;
mod rewrite;
#[cfg(test)]
mod tests;
mod transmit;

pub use classify::Classify;
pub use discard::Discard;
pub use filter::Filter;
pub use lookup::{Ip4Lookup, Ip6Lookup};
pub use receive::Receive;
pub use rewrite::{Ip4Rewrite, Ip6Rewrite, addresses_by_port};
pub use transmit::Transmit;

/// Packets that a poll asks for and that a node gets at once, as in librte_graph.
pub const BURST: usize = 256;
