// SPDX-License-Identifier: BSD-3-Clause
//! Routing: DPDK's l3fwd-graph example, with its command line, as a graph of nodes in safe Rust.
//!
//! IPv4 and IPv6 packets are sent on the port of the longest matching prefix, with that port's MAC
//! addresses and a TTL or hop limit that is one less. With `--rule_ipv4` and `--rule_ipv6` an
//! access control list comes first, whose rules can be replaced while packets flow. `--executor`
//! selects what walks the graph: DPDK's librte_graph, or one function into which the compiler fuses
//! all nodes.
//!
//! Every lcore has its own graph; the main lcore prints the nodes' statistics.

mod commands;
mod desk;
mod error;
mod nodes;
mod options;
mod plan;
mod ports;
mod routes;
mod rules;
mod run;
mod screen;
mod topology;
mod warnings;

pub use error::{RunError, SetupError};
pub use options::{Executor, Options, Polled};
pub use plan::{Plan, PlanError};
pub use run::start;
