// SPDX-License-Identifier: BSD-3-Clause
//! The time stamp counter: raw cycles, their rate, and the cost of reading it.

pub use measure::clock::{cost, now};

/// Cycles per second, as DPDK determined it (`rte_get_tsc_hz`). 0 before
/// [`Eal::init`](crate::Eal::init).
#[must_use]
pub fn hz() -> u64 {
    // SAFETY: reads a global that is written once, by rte_eal_init.
    unsafe { dpdk_sys::rte_get_tsc_hz() }
}
