// SPDX-License-Identifier: BSD-3-Clause
//! The UDP header (RFC 768).

use crate::checksum;
use crate::ipv4::Ipv4;

/// Length of the header in bytes.
pub const LEN: usize = 8;

/// A read-only view of a UDP header.
#[derive(Clone, Copy, Debug)]
pub struct Udp<'a>(&'a [u8; LEN]);

impl<'a> Udp<'a> {
    /// Splits a datagram into header and payload; `None` when it is shorter than a header.
    #[inline]
    pub fn split(datagram: &'a [u8]) -> Option<(Self, &'a [u8])> {
        datagram.split_first_chunk().map(|(head, rest)| (Udp(head), rest))
    }

    /// Source port.
    #[inline]
    pub fn source(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// Destination port.
    #[inline]
    pub fn destination(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Length of header and payload, in bytes.
    #[inline]
    pub fn length(&self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// The checksum as it stands in the header; 0 means that the sender made none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }
}

/// Whether the checksum of `datagram` (header and payload, nothing after them) is right under `ip`.
/// A datagram without a checksum counts as right, one shorter than a header does not.
pub fn checksum_is_right(ip: &Ipv4<'_>, datagram: &[u8]) -> bool {
    let (Some((udp, _)), Ok(len)) = (Udp::split(datagram), u16::try_from(datagram.len())) else {
        return false;
    };
    udp.checksum() == 0
        || checksum::fold(ip.pseudo_header_sum(len) + checksum::sum(datagram)) == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_datagram() {
        // 10.0.0.1:1 -> 10.0.0.2:2, payload "hi": checksum worked out by hand.
        let ip = [0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let (ip, _) = Ipv4::split(&ip).unwrap();
        let mut datagram = [0, 1, 0, 2, 0, 10, 0, 0, b'h', b'i'];
        assert!(checksum_is_right(&ip, &datagram), "no checksum is right");
        // 0a00+0001+0a00+0002+0011+000a + 0001+0002+000a+6869 = 7c94; complement 836b.
        datagram[6..8].copy_from_slice(&[0x83, 0x6b]);
        assert!(checksum_is_right(&ip, &datagram));
        datagram[9] ^= 1;
        assert!(!checksum_is_right(&ip, &datagram));
        let (udp, payload) = Udp::split(&datagram).unwrap();
        assert_eq!((udp.source(), udp.destination(), udp.length(), payload.len()), (1, 2, 10, 2));
    }
}
