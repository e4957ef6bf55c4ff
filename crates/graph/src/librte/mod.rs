// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's own executor, librte_graph, with C nodes and Rust nodes.

mod builder;
mod builder_c;
mod c_nodes;
mod cluster;
mod created;
mod error;
mod ip4;
mod library;
mod outlet;
mod plan;
mod raw;
mod register;
mod run;
mod trace;
mod typed;

pub use builder::{Graph, GraphBuilder};
pub use cluster::{ClusterError, ClusterNode, cluster_stats};
pub use error::GraphError;
pub use ip4::{Ip4NextHop, Ip4Route};
pub use typed::Librte;
