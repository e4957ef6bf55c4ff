// SPDX-License-Identifier: BSD-3-Clause
//! Routing: DPDK's l3fwd-graph example, with its command line, as a graph of nodes in safe Rust.
//!
//! Packets of IPv4 and IPv6 leave by the port that the longest prefix of their destination leads to, with
//! that port's addresses and one hop less to live. With `--rule_ipv4` and `--rule_ipv6` an access control
//! list comes first, whose rules can be replaced while packets flow. `--executor` says what walks the graph:
//! DPDK's librte_graph, or one function that the compiler makes of all nodes.
//!
//! Every lcore has a graph of its own; the main lcore prints what happens in their nodes.

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
