// SPDX-License-Identifier: BSD-3-Clause
//! Checksums of whole messages: what UDP, TCP and ICMPv6 add of the IP header, and the one sum over all of it.

use crate::checksum::{fold, sum};

/// What checksums of UDP, TCP and ICMPv6 cover beside the message: addresses, protocol and length. Made by
/// [`Ipv4::pseudo_header`](crate::ipv4::Ipv4::pseudo_header) and [`Ipv6::pseudo_header`](crate::ipv6::Ipv6::pseudo_header).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PseudoHeader(pub(crate) u64);

impl PseudoHeader {
    /// Of ICMP for IPv4, which covers nothing but its message.
    pub(crate) const NONE: Self = PseudoHeader(0);

    /// Its sum alone, for devices that are to add the rest.
    #[inline]
    pub const fn sum(self) -> u64 {
        self.0
    }

    /// The checksum of a message with this header, in which the field says `stands`.
    #[inline]
    pub(crate) fn checksum(self, header: &[u8], payload: &[u8], stands: u16) -> u16 {
        // The sum of the header has the field in it, as one of its words.
        !fold(self.0 + (sum(header) - u64::from(stands)) + sum(payload))
    }

    /// Whether the sum over message and header, with what stands in the field, is right.
    #[inline]
    pub(crate) fn is_right(self, header: &[u8], payload: &[u8]) -> bool {
        fold(self.0 + sum(header) + sum(payload)) == 0xffff
    }
}
