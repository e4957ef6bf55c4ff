// SPDX-License-Identifier: BSD-3-Clause
//! Forwarders on the kernel's network interfaces, through packet sockets, AF_XDP or XDP. They are
//! counterparts of l2fwd: the same command line, `prog [EAL options] -- [options]`, the same pairs
//! of ports and rewriting of MAC addresses, the same statistics, and DPDK's telemetry protocol. No
//! DPDK.
//!
//! # Lifecycle
//! [`program`] reads the command line ([`eal`] and the program's own options), opens the
//! interfaces, starts a thread for each lcore that has lanes and the telemetry server, and forwards
//! until SIGINT or SIGTERM. With XDP programs ([`xdp`]) the kernel forwards alone. Sockets, rings,
//! memberships and XDP programs end with the process, even by SIGKILL. The telemetry socket of a
//! killed program is removed by the next one with its file prefix.
//!
//! [`ping`] is not a forwarder, but a sender that measures round trips.
//!
//! # Threads
//! A [`lane`] belongs to one thread. Other threads read its counts through
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
