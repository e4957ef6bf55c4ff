// SPDX-License-Identifier: BSD-3-Clause
//! The IPv4 header (RFC 791), its fixed 20 bytes.

use std::net::Ipv4Addr;

use crate::checksum;

/// Length of a header without options, in bytes.
pub const LEN: usize = 20;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// A read-only view of an IPv4 header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a>(&'a [u8; LEN]);

impl<'a> Ipv4<'a> {
    /// Splits a packet into its fixed header and what follows (options first, if there are any).
    /// `None` when it is shorter than a header or its version is not 4.
    #[inline]
    pub fn split(packet: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = packet.split_first_chunk()?;
        let view = Ipv4(head);
        (view.version() == 4).then_some((view, rest))
    }

    /// Version, 4.
    #[inline]
    pub fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// Length of the header with options, in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.0[0] & 0xf) * 4
    }

    /// Length of header and payload, in bytes.
    #[inline]
    pub fn total_len(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Time to live.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.0[8]
    }

    /// Protocol of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.0[9]
    }

    /// The checksum as it stands in the header.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.0[10], self.0[11]])
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[12], self.0[13], self.0[14], self.0[15])
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[16], self.0[17], self.0[18], self.0[19])
    }

    /// Whether the checksum of a header without options is right.
    #[inline]
    pub fn checksum_is_right(&self) -> bool {
        checksum::checksum(self.0) == 0
    }

    /// The sum that a UDP or TCP checksum starts with: addresses, protocol and payload length.
    #[inline]
    pub fn pseudo_header_sum(&self, payload_len: u16) -> u64 {
        checksum::sum(&self.0[12..20]) + u64::from(self.protocol()) + u64::from(payload_len)
    }
}

/// The fields of a header without options, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Fields {
    /// Type of service: DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    /// Length of header and payload, in bytes.
    pub total_len: u16,
    /// Identification.
    pub identification: u16,
    /// The "don't fragment" flag.
    pub dont_fragment: bool,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Ipv4Fields {
    /// Writes the header with its checksum.
    pub fn write(&self, header: &mut [u8; LEN]) {
        header[0] = 0x45;
        header[1] = self.tos;
        header[2..4].copy_from_slice(&self.total_len.to_be_bytes());
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        header[6..8].copy_from_slice(&(u16::from(self.dont_fragment) << 14).to_be_bytes());
        header[8] = self.ttl;
        header[9] = self.protocol;
        header[10..12].fill(0);
        header[12..16].copy_from_slice(&self.source.octets());
        header[16..20].copy_from_slice(&self.destination.octets());
        let sum = checksum::checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(source: u32, destination: u32, ttl: u8, identification: u16) -> Ipv4Fields {
        Ipv4Fields {
            tos: 0xb8,
            total_len: 46,
            identification,
            dont_fragment: true,
            ttl,
            protocol: PROTOCOL_UDP,
            source: source.into(),
            destination: destination.into(),
        }
    }

    #[test]
    fn only_version_four_is_a_header() {
        assert!(Ipv4::split(&[0x60; 20]).is_none());
        assert!(Ipv4::split(&[0x45; 19]).is_none());
    }

    proptest! {
        #[test]
        fn written_headers_read_back(source: u32, destination: u32, ttl: u8, id: u16) {
            let mut bytes = [0u8; LEN];
            let wanted = fields(source, destination, ttl, id);
            wanted.write(&mut bytes);
            let (view, _) = Ipv4::split(&bytes).unwrap();
            prop_assert!(view.checksum_is_right());
            prop_assert_eq!(view.source(), wanted.source);
            prop_assert_eq!(view.destination(), wanted.destination);
            prop_assert_eq!(view.ttl(), ttl);
            prop_assert_eq!((view.header_len(), view.total_len(), view.protocol()), (20, 46, 17));
        }
    }
}
