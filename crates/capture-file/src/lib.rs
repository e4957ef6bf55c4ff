// SPDX-License-Identifier: BSD-3-Clause
//! What every capture needs between a packet path and a pcapng file. No FFI.
//!
//! # Parts and threads
//! A [`ring::Writer`] belongs to the thread that polls: it copies packets into a ring of bytes, without waiting and without
//! a lock. The [`ring::Reader`] belongs to another thread, which converts time stamps by a [`Clock`] and writes the file's
//! blocks ([`pcapng`]). What finds the ring full is counted, and the next packet in the file says how many were lost.
//!
//! Which packets are captured, where VLAN tags come from, how rings of several queues are merged and what a full disk means
//! is the caller's: the captures of `dpdk::pcapng` and of the traffic generator, and the traces of graphs.
//!
//! # Units
//! Lengths are bytes without the FCS, unless an interface says that its packets have one ([`fcs`] computes it). Times in rings are TSC cycles; in files they are nanoseconds since the epoch.

#![forbid(unsafe_code)]

mod clock;
mod fcs;
pub mod pcapng;
pub mod ring;

pub use clock::Clock;
pub use fcs::{FCS_LEN, fcs};

/// The example of the crate's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
