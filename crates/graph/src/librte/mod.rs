// SPDX-License-Identifier: BSD-3-Clause
//! The executor that is DPDK's own: librte_graph, with its nodes in C beside ours.

mod builder;
mod created;
mod error;
mod outlet;
mod plan;
mod raw;
mod register;
mod run;
mod typed;

pub use builder::{Graph, GraphBuilder};
pub use error::GraphError;
pub use typed::Librte;
