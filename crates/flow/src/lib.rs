// SPDX-License-Identifier: BSD-3-Clause
//! Tables of flows, and what a data plane keeps beside them.
//!
//! | module | |
//! |---|---|
//! | [`table`] | flows by key, found in bulk, aged a bounded part at a time |
//! | [`maglev`] | consistent hashing: which backend a new flow goes to |
//! | [`counters`] | counters with one writer, that share no cache line with another's |
//! | [`meter`] | token buckets: RFC 2697, 2698 and 4115 |
//!
//! Nothing here calls C or needs DPDK, and nothing allocates after construction.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

pub mod counters;
mod hash;
pub mod maglev;
pub mod meter;
pub mod table;

pub use hash::Seed;
pub use table::{CapacityError, FlowTable, Found, Full, Slot};
