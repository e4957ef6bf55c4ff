// SPDX-License-Identifier: BSD-3-Clause
//! The headers of ICMP (RFC 792; `rte_icmp_hdr`) and ICMPv6 (RFC 4443): 8 bytes each, of which the last four depend on the type.
//!
//! Their checksums cover the whole message; ICMPv6's the pseudo-header of IPv6 as well.

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Change;
use crate::pseudo::PseudoHeader;
use crate::view::fixed_header;

/// Length of either header in bytes.
pub const LEN: usize = 8;
/// Type of ICMP: the reply to an echo request.
pub const ECHO_REPLY: u8 = 0;
/// Type of ICMP: the destination cannot be reached.
pub const UNREACHABLE: u8 = 3;
/// Type of ICMP: an echo request, as ping sends them.
pub const ECHO_REQUEST: u8 = 8;
/// Type of ICMP: the time to live was over.
pub const TIME_EXCEEDED: u8 = 11;
/// Next header number of ICMPv6.
pub const NEXT_HEADER_ICMPV6: u8 = 58;
/// Type of ICMPv6: an echo request.
pub const V6_ECHO_REQUEST: u8 = 128;
/// Type of ICMPv6: the reply to an echo request.
pub const V6_ECHO_REPLY: u8 = 129;
/// Type of ICMPv6: who has this address?
pub const V6_NEIGHBOR_SOLICITATION: u8 = 135;
/// Type of ICMPv6: I have.
pub const V6_NEIGHBOR_ADVERTISEMENT: u8 = 136;

/// A view of an ICMP header.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp {
    kind: u8,
    code: u8,
    checksum: U16,
    data: [u8; 4],
}

fixed_header!(Icmp);

/// A view of an ICMPv6 header.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmpv6 {
    kind: u8,
    code: u8,
    checksum: U16,
    data: [u8; 4],
}

fixed_header!(Icmpv6);

/// What both have.
macro_rules! fields {
    ($header:ident) => {
        impl $header {
            /// Type of the message.
            #[inline]
            pub fn kind(&self) -> u8 {
                self.kind
            }

            /// Code, which says more about the type.
            #[inline]
            pub fn code(&self) -> u8 {
                self.code
            }

            /// The checksum as it stands in the header.
            #[inline]
            pub fn checksum(&self) -> u16 {
                self.checksum.get()
            }

            /// The last four bytes, whose meaning depends on the type.
            #[inline]
            pub fn data(&self) -> [u8; 4] {
                self.data
            }

            /// Identifier of an echo request or reply; of other types it means something else.
            #[inline]
            pub fn identifier(&self) -> u16 {
                u16::from_be_bytes([self.data[0], self.data[1]])
            }

            /// Sequence number of an echo request or reply; of other types it means something else.
            #[inline]
            pub fn sequence(&self) -> u16 {
                u16::from_be_bytes([self.data[2], self.data[3]])
            }

            /// Sets type and code.
            #[inline]
            pub fn set_kind(&mut self, kind: u8, code: u8) {
                (self.kind, self.code) = (kind, code);
            }

            /// Sets the last four bytes.
            #[inline]
            pub fn set_data(&mut self, data: [u8; 4]) {
                self.data = data;
            }

            /// Sets the checksum.
            #[inline]
            pub fn set_checksum(&mut self, checksum: u16) {
                self.checksum.set(checksum);
            }

            /// Sets type and code; the checksum follows.
            #[inline]
            pub fn update_kind(&mut self, kind: u8, code: u8) {
                let change = Change::of([self.kind, self.code], [kind, code]);
                self.set_kind(kind, code);
                self.update_checksum(change);
            }

            /// Sets the identifier of an echo request or reply; the checksum follows.
            #[inline]
            pub fn update_identifier(&mut self, identifier: u16) {
                let change = Change::of_word(self.identifier(), identifier);
                self.data[..2].copy_from_slice(&identifier.to_be_bytes());
                self.update_checksum(change);
            }
        }
    };
}

fields!(Icmp);
fields!(Icmpv6);

impl Icmp {
    /// Whether the checksum is right. `payload` is all of the packet's payload behind the header.
    #[inline]
    pub fn checksum_is_right(&self, payload: &[u8]) -> bool {
        PseudoHeader::NONE.is_right(self.as_bytes(), payload)
    }

    /// Makes the checksum anew.
    #[inline]
    pub fn fill_checksum(&mut self, payload: &[u8]) {
        let checksum = PseudoHeader::NONE.checksum(self.as_bytes(), payload, self.checksum());
        self.set_checksum(checksum);
    }

    /// Tells the checksum of a change in the message. For one that becomes nothing but zeros, which an echo reply
    /// may be, the checksum is the one that receivers take, 0xffff.
    #[inline]
    pub fn update_checksum(&mut self, change: Change) {
        let checksum = change.applied_to(self.checksum());
        // Arithmetic cannot tell such a message from one whose sum is ones, for which either zero is right.
        let zeros = self.kind == 0 && self.code == 0 && self.data == [0; 4];
        self.set_checksum(if checksum == 0 && zeros { 0xffff } else { checksum });
    }
}

impl Icmpv6 {
    /// Whether the checksum is right. `payload` is all of the packet's payload behind the header, and the protocol
    /// of `pseudo` is [`NEXT_HEADER_ICMPV6`].
    #[inline]
    pub fn checksum_is_right(&self, pseudo: PseudoHeader, payload: &[u8]) -> bool {
        pseudo.is_right(self.as_bytes(), payload)
    }

    /// Makes the checksum anew.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo: PseudoHeader, payload: &[u8]) {
        let checksum = pseudo.checksum(self.as_bytes(), payload, self.checksum());
        self.set_checksum(checksum);
    }

    /// Tells the checksum of a change in what it covers, the IP addresses or the message.
    #[inline]
    pub fn update_checksum(&mut self, change: Change) {
        self.set_checksum(change.applied_to(self.checksum()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6::Ipv6;
    use crate::{Layer, Malformed};
    use proptest::prelude::*;

    #[test]
    fn known_messages() {
        // The writer's echo request: 0800, complement f7ff; and 0800+1+2+6869 = 706c, complement 8f93.
        let mut bytes = [8, 0, 0, 0, 0, 0, 0, 0, b'h', b'i'];
        let (icmp, payload) = Icmp::split_mut(&mut bytes).unwrap();
        icmp.fill_checksum(&[]);
        assert_eq!(icmp.checksum(), 0xf7ff);
        icmp.set_data([0, 1, 0, 2]);
        icmp.fill_checksum(payload);
        assert_eq!((icmp.checksum(), icmp.identifier(), icmp.sequence()), (0x8f93, 1, 2));
        icmp.update_kind(ECHO_REPLY, 0);
        assert!(icmp.checksum_is_right(payload));
        assert_eq!((icmp.kind(), icmp.code(), icmp.checksum()), (0, 0, 0x9793));
        // The writer's over IPv6: 1 + 2 + 58 + 26 + 8000 = 8057, complement 7fa8.
        let mut ip = [0u8; 40];
        (ip[0], ip[23], ip[39]) = (0x60, 1, 2);
        let (ip, _) = Ipv6::split(&ip).unwrap();
        let mut bytes = [0u8; 26];
        bytes[0] = V6_ECHO_REQUEST;
        let (icmp, payload) = Icmpv6::split_mut(&mut bytes).unwrap();
        let pseudo = ip.pseudo_header(NEXT_HEADER_ICMPV6, 26);
        icmp.fill_checksum(pseudo, payload);
        assert_eq!(icmp.checksum(), 0x7fa8);
        assert!(icmp.checksum_is_right(pseudo, payload));
        assert_eq!(Icmpv6::split(&[0; 7]).unwrap_err(), Malformed::Short(Layer::Icmpv6));
    }

    #[test]
    fn nothing_but_zeros_has_a_checksum_of_ones() {
        let mut bytes = [0u8; 12];
        let (icmp, payload) = Icmp::split_mut(&mut bytes).unwrap();
        icmp.fill_checksum(payload);
        assert_eq!(icmp.checksum(), 0xffff);
        icmp.update_identifier(7);
        assert!(icmp.checksum_is_right(payload));
        icmp.update_identifier(0);
        assert_eq!(icmp.checksum(), 0xffff);
        assert!(icmp.checksum_is_right(payload));
    }

    proptest! {
        #[test]
        fn updates_are_right(mut bytes in prop::collection::vec(any::<u8>(), 8..40), kind: u8, code: u8, id: u16) {
            let (icmp, payload) = Icmp::split_mut(&mut bytes).unwrap();
            icmp.fill_checksum(payload);
            icmp.update_kind(kind, code);
            prop_assert!(icmp.checksum_is_right(payload));
            icmp.update_identifier(id);
            prop_assert!(icmp.checksum_is_right(payload));
            prop_assert_eq!((icmp.kind(), icmp.code(), icmp.identifier()), (kind, code, id));
        }

        #[test]
        fn updates_over_ipv6_are_whole_checksums(mut bytes in prop::collection::vec(any::<u8>(), 8..40), mut ip: [u8; 40], to: u128, kind: u8, id: u16) {
            ip[0] = 0x60;
            let (ip, _) = Ipv6::split_mut(&mut ip).unwrap();
            let len = bytes.len();
            let (icmp, payload) = Icmpv6::split_mut(&mut bytes).unwrap();
            icmp.fill_checksum(ip.pseudo_header(58, len), payload);
            icmp.update_checksum(ip.update_destination(to.into()));
            icmp.update_kind(kind, 1);
            icmp.update_identifier(id);
            let updated = icmp.checksum();
            icmp.fill_checksum(ip.pseudo_header(58, len), payload);
            prop_assert_eq!(updated, icmp.checksum());
        }
    }
}
