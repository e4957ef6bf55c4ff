// SPDX-License-Identifier: BSD-3-Clause
//! The changes that a router makes to a packet: its MAC addresses, TTL and checksum.

use std::collections::BTreeMap;

use dpdk::Mbuf;
use graph::EachNode;

use super::header::{ETHERNET, IPV4, IPV6, field};
use crate::ethernet::{Addresses, halves, write_halves};

graph::edges! {
    /// Where a packet goes.
    pub enum Rewritten {
        /// To its port.
        Send,
        /// It has no such port, or its bytes cannot be changed.
        Drop,
    }
}

/// What is written into packets that leave by each port; `None` for those that are not enabled.
type ByPort = [Option<(u64, u32)>; 32];

/// A table of [`Addresses`] by the port's number.
pub fn addresses_by_port(addresses: &BTreeMap<u16, Addresses>) -> ByPort {
    std::array::from_fn(|port| addresses.get(&(port as u16)).map(halves))
}

/// Rewrites packets of IPv4.
pub struct Ip4Rewrite(pub ByPort);

impl<'m> EachNode<Mbuf<'m>> for Ip4Rewrite {
    type Next = Rewritten;

    #[inline]
    fn each(&mut self, packet: &mut Mbuf<'m>) -> Rewritten {
        let Some((front, back)) = written(&self.0, packet) else { return Rewritten::Drop };
        let Some(header) = packet.header_mut::<IPV4>() else { return Rewritten::Drop };
        write(header, front, back);
        header[ETHERNET + 8] = header[ETHERNET + 8].wrapping_sub(1);
        let checksum = checksum_of_one_less(field(header, ETHERNET + 10));
        header[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum);
        Rewritten::Send
    }
}

/// The checksum of a header whose TTL was decreased by one, from the old one, bit for bit as in the
/// C node: one more in ones' complement, with zero as 0xffff if the result is that (RFC 1141).
#[inline(always)]
fn checksum_of_one_less(checksum: [u8; 2]) -> [u8; 2] {
    // The TTL is the first byte of its word. With the bytes swapped, one is added to the lower
    // byte, and the carry goes to the right place (RFC 1071, 2 B).
    let sum = u32::from(u16::from_le_bytes(checksum)) + 1;
    ((sum + (sum >> 16)) as u16).to_le_bytes()
}

/// Rewrites packets of IPv6.
pub struct Ip6Rewrite(pub ByPort);

impl<'m> EachNode<Mbuf<'m>> for Ip6Rewrite {
    type Next = Rewritten;

    #[inline]
    fn each(&mut self, packet: &mut Mbuf<'m>) -> Rewritten {
        let Some((front, back)) = written(&self.0, packet) else { return Rewritten::Drop };
        let Some(header) = packet.header_mut::<IPV6>() else { return Rewritten::Drop };
        write(header, front, back);
        header[ETHERNET + 7] = header[ETHERNET + 7].wrapping_sub(1);
        Rewritten::Send
    }
}

#[inline(always)]
fn written(ports: &ByPort, packet: &Mbuf<'_>) -> Option<(u64, u32)> {
    *ports.get(usize::from(packet.port()?))?
}

#[inline(always)]
fn write<const N: usize>(header: &mut [u8; N], front: u64, back: u32) {
    if let Some(both) = header.first_chunk_mut() {
        write_halves(both, front, back);
    }
}

#[cfg(test)]
mod tests {
    use super::checksum_of_one_less;

    #[test]
    fn a_header_that_was_right_is_right() {
        // Every checksum that a header can have, and every sum of the rest with it.
        for old in 0..=0xffff_u16 {
            for ttl in [2_u8, 64, 255] {
                let word = |ttl: u8| u64::from(u16::from_be_bytes([ttl, 17]));
                let rest = u64::from(!packet::checksum::fold(u64::from(old) + word(ttl)));
                let new = u16::from_be_bytes(checksum_of_one_less(old.to_be_bytes()));
                let sum = packet::checksum::fold(u64::from(new) + word(ttl - 1) + rest);
                assert_eq!(sum, 0xffff, "{old:#x}");
            }
        }
    }
}
