// SPDX-License-Identifier: BSD-3-Clause
//! A traffic generator on DPDK that speaks the Open Traffic Generator (OTG) REST API.
//!
//! # Threads
//! The *engine* ([`engine`]) polls on one or several lcores: each drains its receive queues, then
//! sends what is due on its transmit queues, and neither allocates nor makes system calls while
//! packets flow. The *control plane* ([`control`]) and the HTTP server ([`otg`]) share one ordinary
//! thread bound to the main lcore's CPU; it owns the configuration and gives the lcores orders,
//! through one [`mailbox`] each. DPDK's telemetry threads ask the control plane. Any thread may
//! read the lcores' counters ([`books`]) at any time.
//!
//! # Units
//! Sizes in a configuration include the 4-byte FCS, as OTG says; lengths inside do not. Times are
//! TSC cycles unless a name says otherwise.
#![forbid(unsafe_code)]

pub mod books;
pub mod capture;
pub mod cli;
pub mod command;
pub mod control;
pub mod engine;
pub mod entrance;
pub mod location;
pub mod mailbox;
pub mod neighbors;
pub mod obstacle;
pub mod otg;
pub mod pacing;
pub mod plan;
pub mod ranges;
pub mod replay;
pub mod sandbox;
pub mod stale;
pub mod start;
pub mod tags;
pub mod telemetry;
pub mod tls;
