// SPDX-License-Identifier: BSD-3-Clause
//! Statistics that measuring threads record and others read: the order, delays and gaps of frames,
//! and the time stamp counter that they are measured with. No DPDK, no FFI.
//!
//! # Lifecycle
//! Everything is allocated when it is made. After that nothing allocates, locks or makes system
//! calls, except what readers call (`histogram::encode`, [`text::pieces`]).
//!
//! # Threads
//! The state that one thread needs to judge the next frame is its own and changed by `&mut`
//! ([`Arrivals`], [`Delays`], [`Departures`]). Its results go into structs of [`Cell`]s
//! ([`SequenceBooks`], [`DelayBooks`], [`Distribution`], [`Counters`]): *one* thread writes, any
//! may read at any time by relaxed loads. Numbers that are read while frames arrive may be some
//! frames apart. If two threads write, nothing breaks, but counts are lost.
//!
//! # Units
//! Times are TSC cycles, raw; readers convert. Sequence numbers are 32 bits, modulo 2^32.
//!
//! # Features
//! `hdr` (on by default) writes and reads histograms as text in HDR's encoding: `histogram::encode`
//! and `decode`. Without it the crate has no dependencies.

mod cell;
pub mod clock;
pub mod delay;
mod distribution;
pub mod gaps;
pub mod histogram;
mod missing;
pub mod sequence;
pub mod text;

pub use cell::Cell;
pub use delay::{DelayBooks, Delays};
pub use distribution::Distribution;
pub use gaps::Departures;
pub use histogram::Counters;
pub use sequence::{Arrival, Arrivals, SequenceBooks};

/// The example of the crate's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
