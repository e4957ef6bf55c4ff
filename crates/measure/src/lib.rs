// SPDX-License-Identifier: BSD-3-Clause
//! What measuring threads write down and others read: the order, delays and gaps of frames, and the time
//! stamp counter that they are measured with. No DPDK, no FFI.
//!
//! # Lifecycle
//! Everything is allocated when it is made; nothing allocates, locks or asks the kernel afterwards, but
//! for what readers ask (`histogram::encode`, [`text::pieces`]).
//!
//! # Threads
//! What one thread must remember to judge the next frame is its own and changed by `&mut`
//! ([`Arrivals`], [`Delays`], [`Departures`]). What it finds out goes into books of [`Cell`]s
//! ([`SequenceBooks`], [`DelayBooks`], [`Distribution`], [`Counters`]): *one* thread writes, any may read
//! at any time by relaxed loads. Numbers of one book that are read while frames arrive may be some
//! frames apart. Nothing breaks if two threads write, but counts are lost.
//!
//! # Units
//! Times are TSC cycles, raw; readers convert. Sequence numbers are 32 bits, modulo 2^32.
//!
//! # Features
//! `hdr` (on by default) has histograms written as text in HDR's encoding, and read: `histogram::encode` and `decode`.
//! Without it the crate has no dependencies.

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
