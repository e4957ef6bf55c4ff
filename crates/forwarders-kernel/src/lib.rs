// SPDX-License-Identifier: BSD-3-Clause
//! Forwarders on the kernel's network interfaces, by packet sockets, AF_XDP or XDP. They take l2fwd's place there: the
//! same command line, `prog [EAL options] -- [options]`, the same pairs of ports and rewriting of MAC
//! addresses, the same statistics, and DPDK's telemetry protocol. No DPDK.
//!
//! # Lifecycle
//! [`program`] reads the command line ([`eal`] and the options of its way), opens the interfaces, starts a thread for
//! each lcore that has lanes and the telemetry server, and forwards until SIGINT or SIGTERM. The kernel
//! forwards alone where all is an XDP program's ([`xdp`]). Everything
//! that is made belongs to the process: sockets, rings, memberships and XDP
//! programs end with it, SIGKILL or not; the
//! telemetry socket of a killed program is removed by the next one with its file prefix.
//!
//! [`ping`] is no forwarder, but a sender that times round trips.
//!
//! # Threads
//! A [`lane`] belongs to one thread. What it counts is read by others through
//! [`Cell`](measure::Cell)s.

pub mod af_packet;
pub mod af_xdp;
mod checksum;
mod commands;
pub mod eal;
mod frame;
pub mod interface;
pub mod lane;
mod lcores;
mod memory;
mod options;
pub mod ping;
pub mod program;
mod run;
mod spans;
mod stats;
mod way;
pub mod xdp;
