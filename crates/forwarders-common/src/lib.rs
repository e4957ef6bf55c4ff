// SPDX-License-Identifier: BSD-3-Clause
//! What all forwarders share, on DPDK or on the kernel: the command line of DPDK's C examples,
//! l2fwd's assignment of ports and queues, files of rules and routes, statistics on the screen and
//! in a file, statistics of polls, and a clean end.
//!
//! No DPDK and no `unsafe`. The forwarders are in `linerate-forwarders-dpdk` and, on the kernel's sockets and XDP, in
//! `linerate-forwarders-kernel`.
#![forbid(unsafe_code)]

pub mod console;
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
