// SPDX-License-Identifier: BSD-3-Clause
//! Packet-processing graphs: nodes written once, run by DPDK's librte_graph or fused at compile time.
mod batch;
mod dot;
mod executor;
mod fused;
mod librte;
mod next;
mod node;
mod object;
mod stats;
mod topology;

pub use batch::{Batch, Drain, Room};
pub use executor::Executor;
pub use fused::Fused;
pub use librte::{Graph, GraphBuilder, GraphError, Librte};
pub use next::{Next, Nowhere};
pub use node::{EachNode, Node, Outlet, Source};
pub use object::Object;
pub use stats::NodeStats;
pub use topology::{NodeInfo, Topology, Visitor, target};
