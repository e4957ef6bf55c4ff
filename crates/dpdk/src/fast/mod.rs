// SPDX-License-Identifier: BSD-3-Clause
//! DPDK's header-only inline functions, rewritten in Rust.
//!
//! Each does what the C inline function of the same name does in a release build, at offsets that
//! the C compiler emitted. Calling C for each of them would cost 13 to 40 % of a forwarder's rate.
//! `tests/equivalence` compares them with the C functions.

pub(crate) mod ethdev;
pub(crate) mod headers;
pub(crate) mod lpm;
pub(crate) mod lpm_bulk;
#[cfg(target_arch = "x86_64")]
mod lpm_x86;
pub(crate) mod mbuf;
pub(crate) mod mempool;
pub(crate) mod prefetch;
pub(crate) mod qsbr;
pub(crate) mod ring;
pub(crate) mod shape;
pub(crate) mod share;

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test may.
mod tests;
