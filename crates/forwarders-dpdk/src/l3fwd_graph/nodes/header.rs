// SPDX-License-Identifier: BSD-3-Clause
//! Offsets, from the frame's first byte, of the fields that the nodes read and write.

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Bytes up to the end of a header of IPv4 without options.
pub const IPV4: usize = ETHERNET + 20;
/// Bytes up to the end of a header of IPv6.
pub const IPV6: usize = ETHERNET + 40;

/// The EtherTypes.
pub const TYPE_IPV4: u16 = 0x0800;
pub const TYPE_IPV6: u16 = 0x86dd;

/// The EtherType of a frame.
#[inline(always)]
pub fn ether_type<const N: usize>(frame: &[u8; N]) -> u16 {
    u16::from_be_bytes(field(frame, 12))
}

/// `K` bytes at `at`; the compiler checks that they are inside.
#[inline(always)]
pub fn field<const N: usize, const K: usize>(frame: &[u8; N], at: usize) -> [u8; K] {
    std::array::from_fn(|byte| frame[at + byte])
}
