// SPDX-License-Identifier: BSD-3-Clause
//! The IPv6 header (RFC 8200; `rte_ipv6_hdr`): 40 bytes; extension headers follow it ([`crate::extension`]).

use std::net::Ipv6Addr;

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::{self, Change};
use crate::pseudo::PseudoHeader;
use crate::view::{Layer, Malformed, fixed, fixed_mut};

/// Length of the header in bytes.
pub const LEN: usize = 40;

/// A view of an IPv6 header.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv6 {
    version_class_label: U32,
    payload_len: U16,
    next_header: u8,
    hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

impl Ipv6 {
    /// Splits a packet into its header, read-only, and all that follows it.
    ///
    /// # Errors
    /// [`Malformed::Short`]; [`Malformed::Kind`] when the version is not 6.
    #[inline]
    pub fn split(packet: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        let (ip, rest) = fixed::<Self>(packet, Layer::Ipv6)?;
        if ip.is_version_6() { Ok((ip, rest)) } else { Err(Malformed::Kind(Layer::Ipv6)) }
    }

    /// Splits a packet into its header, to be written, and all that follows it.
    ///
    /// # Errors
    /// As [`Ipv6::split`].
    #[inline]
    pub fn split_mut(packet: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Malformed> {
        let (ip, rest) = fixed_mut::<Self>(packet, Layer::Ipv6)?;
        if ip.is_version_6() { Ok((ip, rest)) } else { Err(Malformed::Kind(Layer::Ipv6)) }
    }

    #[inline]
    fn is_version_6(&self) -> bool {
        self.version_class_label.get() >> 28 == 6
    }

    /// Of all that follows the header, what belongs to the packet: Ethernet's padding does not. Jumbograms
    /// (RFC 2675), whose length is 0, are packets without payload here.
    ///
    /// # Errors
    /// [`Malformed::Len`] when the payload length is more than there is.
    #[inline]
    pub fn payload<'a>(&self, rest: &'a [u8]) -> Result<&'a [u8], Malformed> {
        rest.get(..usize::from(self.payload_len())).ok_or(Malformed::Len(Layer::Ipv6))
    }

    /// As [`Ipv6::payload`], to be written.
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn payload_mut<'a>(&self, rest: &'a mut [u8]) -> Result<&'a mut [u8], Malformed> {
        rest.get_mut(..usize::from(self.payload_len())).ok_or(Malformed::Len(Layer::Ipv6))
    }

    /// Traffic class: DSCP in the upper six bits, ECN in the lower two.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_label.get() >> 20) as u8
    }

    /// Flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        self.version_class_label.get() & 0xf_ffff
    }

    /// Length of all that follows this header, in bytes, as it says.
    #[inline]
    pub fn payload_len(&self) -> u16 {
        self.payload_len.get()
    }

    /// What follows this header: an extension header's number or a protocol's.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.next_header
    }

    /// Hop limit.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv6Addr {
        self.source.into()
    }

    /// Destination address; the next stop of packets with a routing header.
    #[inline]
    pub fn destination(&self) -> Ipv6Addr {
        self.destination.into()
    }

    /// What checksums of UDP, TCP and ICMPv6 cover of this header, for a message of `len` bytes, header and payload (`rte_ipv6_phdr_cksum`).
    /// `protocol` is the message's, which is not the next header's where there are extension headers. With a
    /// routing header that has stops left, the checksum is that of the last one, not of the destination here.
    #[inline]
    pub fn pseudo_header(&self, protocol: u8, len: usize) -> PseudoHeader {
        let addresses = checksum::sum(&self.source) + checksum::sum(&self.destination);
        PseudoHeader(addresses + u64::from(protocol) + len as u64)
    }

    /// Sets the traffic class.
    #[inline]
    pub fn set_traffic_class(&mut self, class: u8) {
        let rest = self.version_class_label.get() & !0x0ff0_0000;
        self.version_class_label.set(rest | u32::from(class) << 20);
    }

    /// Sets the flow label; bits above 20 are ignored.
    #[inline]
    pub fn set_flow_label(&mut self, label: u32) {
        let rest = self.version_class_label.get() & !0xf_ffff;
        self.version_class_label.set(rest | label & 0xf_ffff);
    }

    /// Sets the length of all that follows this header, in bytes.
    #[inline]
    pub fn set_payload_len(&mut self, len: u16) {
        self.payload_len.set(len);
    }

    /// Sets what follows this header.
    #[inline]
    pub fn set_next_header(&mut self, number: u8) {
        self.next_header = number;
    }

    /// Sets the hop limit.
    #[inline]
    pub fn set_hop_limit(&mut self, limit: u8) {
        self.hop_limit = limit;
    }

    /// Takes one off the hop limit, as a router does, and returns what is left; `None`, and nothing is done, when
    /// the packet's hops are over: it was 1 or 0. No checksum covers it.
    #[inline]
    #[must_use = "a packet whose hops are over is not passed on"]
    pub fn decrement_hop_limit(&mut self) -> Option<u8> {
        self.hop_limit = self.hop_limit.checked_sub(1).filter(|left| *left > 0)?;
        Some(self.hop_limit)
    }

    /// Sets the source address.
    #[inline]
    pub fn set_source(&mut self, address: Ipv6Addr) {
        self.source = address.octets();
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        self.destination = address.octets();
    }

    /// Sets the source address. This header has no checksum; those of UDP, TCP and ICMPv6 cover it.
    #[inline]
    pub fn update_source(&mut self, address: Ipv6Addr) -> Change {
        let change = Change::of(self.source, address.octets());
        self.set_source(address);
        change
    }

    /// Sets the destination address. This header has no checksum; those of UDP, TCP and ICMPv6 cover it.
    #[inline]
    pub fn update_destination(&mut self, address: Ipv6Addr) -> Change {
        let change = Change::of(self.destination, address.octets());
        self.set_destination(address);
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Tcp;
    use crate::udp::Udp;
    use proptest::prelude::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut bytes = [0xffu8; 44];
        bytes[0] = 0x6f;
        let (ip, rest) = Ipv6::split_mut(&mut bytes).unwrap();
        assert_eq!((ip.traffic_class(), ip.flow_label()), (0xff, 0xf_ffff));
        ip.set_flow_label(0xfff1_2345);
        assert_eq!((ip.traffic_class(), ip.flow_label()), (0xff, 0x1_2345));
        ip.set_traffic_class(0xb8);
        assert_eq!((ip.traffic_class(), ip.flow_label()), (0xb8, 0x1_2345));
        assert_eq!(ip.payload(rest), Err(Malformed::Len(Layer::Ipv6)));
        ip.set_payload_len(3);
        assert_eq!((ip.payload(rest).unwrap().len(), ip.payload_mut(rest).unwrap().len()), (3, 3));
        ip.set_next_header(59);
        ip.set_hop_limit(2);
        assert_eq!((ip.decrement_hop_limit(), ip.decrement_hop_limit()), (Some(1), None));
        assert_eq!(bytes[..8], [0x6b, 0x81, 0x23, 0x45, 0, 3, 59, 1]);
    }

    #[test]
    fn only_version_six_is_a_header() {
        assert_eq!(Ipv6::split(&[0x45; 40]).unwrap_err(), Malformed::Kind(Layer::Ipv6));
        assert_eq!(Ipv6::split_mut(&mut [0x45; 40]).unwrap_err(), Malformed::Kind(Layer::Ipv6));
        assert_eq!(Ipv6::split(&[0x60; 39]).unwrap_err(), Malformed::Short(Layer::Ipv6));
    }

    proptest! {
        #[test]
        fn transport_checksums_follow(mut ip: [u8; 40], mut bytes: [u8; 41], source: u128, destination: u128, udp: bool) {
            (ip[0], bytes[12]) = (0x60, 0x50);
            let (ip, _) = Ipv6::split_mut(&mut ip).unwrap();
            let pseudo = ip.pseudo_header(if udp { 17 } else { 6 }, 41);
            if udp {
                let (header, payload) = Udp::split_mut(&mut bytes).unwrap();
                header.fill_checksum(pseudo, payload);
            } else {
                let (header, payload) = Tcp::split_mut(&mut bytes).unwrap();
                header.fill_checksum(pseudo, payload);
            }
            let change = ip.update_source(source.into()).and(ip.update_destination(destination.into()));
            prop_assert_eq!((ip.source(), ip.destination()), (source.into(), destination.into()));
            let pseudo = ip.pseudo_header(if udp { 17 } else { 6 }, 41);
            if udp {
                let (header, payload) = Udp::split_mut(&mut bytes).unwrap();
                header.update_checksum(change);
                let updated = header.checksum();
                header.fill_checksum(pseudo, payload);
                prop_assert_eq!(updated, header.checksum());
            } else {
                let (header, payload) = Tcp::split_mut(&mut bytes).unwrap();
                header.update_checksum(change);
                let updated = header.checksum();
                header.fill_checksum(pseudo, payload);
                prop_assert_eq!(updated, header.checksum());
            }
        }
    }
}
