// SPDX-License-Identifier: BSD-3-Clause
//! Packets as bytes: header views, checksums, signatures, and writers of any stack of headers.
//!
//! Nothing here allocates after construction, calls into C or keeps state between frames except
//! where a type says so, so everything runs unchanged on a DPDK mbuf, an AF_XDP frame or a `Vec`.
//! Multi-byte fields are in network byte order on the wire and in host order in the API. Frame
//! lengths are without the 4-byte FCS unless a name ends in `_with_fcs`.
#![forbid(unsafe_code)]

pub mod checksum;
pub mod ethernet;
pub mod field;
pub mod frame;
pub mod headers;
pub mod ipv4;
pub mod mac;
pub mod payload;
pub mod random;
pub mod signature;
pub mod size;
pub mod udp;
pub mod writer;

pub use mac::MacAddr;

/// Bytes that the frame check sequence adds to a frame on the wire.
pub const FCS_LEN: usize = 4;
/// Bytes that the wire adds to a frame beside its FCS: preamble 7, start delimiter 1, gap 12.
pub const L1_OVERHEAD: usize = 20;
