// SPDX-License-Identifier: BSD-3-Clause
//! Whole headers, written from values.

use std::net::Ipv4Addr;

use super::LEN;
use crate::checksum;

/// The fields of a header without options, to be written: over whatever bytes there were, checksum included.
///
/// ```
/// use std::net::Ipv4Addr;
/// use packet::ipv4::{Ipv4, Ipv4Fields, LEN, PROTOCOL_UDP};
///
/// let mut packet = [0xff; LEN + 8]; // such as `Mbuf::prepend` gives
/// let header = packet.first_chunk_mut().unwrap();
/// Ipv4Fields {
///     total_len: 28,
///     protocol: PROTOCOL_UDP,
///     source: Ipv4Addr::new(192, 0, 2, 1),
///     destination: Ipv4Addr::new(198, 51, 100, 1),
///     ..Ipv4Fields::default()
/// }
/// .write(header);
/// let (ip, _) = Ipv4::split(&packet)?;
/// assert!(ip.checksum_is_right() && ip.ttl() == 64);
/// # Ok::<(), packet::Malformed>(())
/// ```
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

impl Default for Ipv4Fields {
    /// A header without payload, with a time to live of 64 and "don't fragment", under which the identification means
    /// nothing (RFC 6864); everything else is 0.
    fn default() -> Self {
        Self {
            tos: 0,
            total_len: LEN as u16,
            identification: 0,
            dont_fragment: true,
            ttl: 64,
            protocol: 0,
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
        }
    }
}

impl Ipv4Fields {
    /// Writes the header with its checksum.
    // Most fields are constants where it is called.
    #[inline(always)]
    pub fn write(&self, header: &mut [u8; LEN]) {
        let mut words: [u32; LEN / 4] = [
            0x4500_0000 | u32::from(self.tos) << 16 | u32::from(self.total_len),
            u32::from(self.identification) << 16 | u32::from(self.dont_fragment) << 14,
            u32::from(self.ttl) << 24 | u32::from(self.protocol) << 16,
            self.source.to_bits(),
            self.destination.to_bits(),
        ];
        // Summed before they are stored: a load of four bytes would wait for stores of one or two. Halves of words add up
        // (`checksum::fold`).
        let sum: u64 = words.iter().copied().map(u64::from).sum();
        words[2] |= u32::from(!checksum::fold(sum));
        for (bytes, word) in header.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ipv4, PROTOCOL_UDP};
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
