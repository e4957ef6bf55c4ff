// SPDX-License-Identifier: BSD-3-Clause
//! What every forwarder is, whatever carries its packets: its command line as DPDK's C examples have it,
//! the plan of l2fwd, files of rules and routes, statistics on the screen and in a file, figures of its polls, and its end.
//!
//! No DPDK and no `unsafe`: the forwarders on DPDK (`linerate-forwarders`) and those on the kernel's
//! sockets (`linerate-kernel-io`) are made of this.
#![forbid(unsafe_code)]

mod console;
pub mod document;
pub mod ethernet;
pub mod getopt;
pub mod l2fwd;
pub mod options;
pub mod polling;
pub mod queues;
pub mod rules;
pub mod stats_file;
pub mod stop;
