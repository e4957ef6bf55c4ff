// SPDX-License-Identifier: BSD-3-Clause
//! The executor that is DPDK's own: librte_graph, with its nodes in C beside ours.

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
