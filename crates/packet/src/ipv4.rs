// SPDX-License-Identifier: BSD-3-Clause
//! The IPv4 header (RFC 791; `rte_ipv4_hdr`), 20 bytes and up to 40 bytes of options.

mod fields;

use std::net::Ipv4Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::{self, Change};
use crate::options::Options;
use crate::pseudo::PseudoHeader;
use crate::view::{Layer, Malformed, with_options, with_options_mut};

pub use fields::Ipv4Fields;

/// Length of a header without options, in bytes.
pub const LEN: usize = 20;
/// Protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// IPv4 in IPv4 (RFC 2003).
pub const PROTOCOL_IPIP: u8 = 4;
/// IPv6 in IPv4 (RFC 4213).
pub const PROTOCOL_IPV6: u8 = 41;
/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// Protocol number of GRE.
pub const PROTOCOL_GRE: u8 = 47;
/// Protocol number of SCTP.
pub const PROTOCOL_SCTP: u8 = 132;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// A view of an IPv4 header with its options.
///
/// ```
/// use packet::ipv4::Ipv4;
/// // RFC 1624's field in a header: a router takes one off the TTL, and the checksum follows.
/// let mut packet = [0u8; 20];
/// packet[0] = 0x45;
/// packet[8] = 64;
/// let (ip, _) = Ipv4::split_mut(&mut packet)?;
/// ip.fill_checksum();
/// assert_eq!(ip.decrement_ttl(), Some(63));
/// assert!(ip.checksum_is_right());
/// # Ok::<(), packet::Malformed>(())
/// ```
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4 {
    version_and_words: u8,
    tos: u8,
    total_len: U16,
    identification: U16,
    flags_and_offset: U16,
    ttl: u8,
    protocol: u8,
    checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
    options: [u8],
}

/// How many bytes of options the header at the start of a packet has.
#[inline(always)]
fn options_len(packet: &[u8]) -> Result<usize, Malformed> {
    match packet.first() {
        // By far the most.
        Some(0x45) => Ok(0),
        Some(first) if first >> 4 != 4 => Err(Malformed::Kind(Layer::Ipv4)),
        Some(first) => {
            (usize::from(first & 0xf) * 4).checked_sub(LEN).ok_or(Malformed::HeaderLen(Layer::Ipv4))
        }
        None => Err(Malformed::Short(Layer::Ipv4)),
    }
}

impl Ipv4 {
    /// Splits a packet into its header, read-only, and all that follows its options.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Kind`] (the version is not 4) or [`Malformed::HeaderLen`].
    #[inline]
    pub fn split(packet: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        with_options(packet, options_len(packet)?, Layer::Ipv4)
    }

    /// Splits a packet into its header, to be written, and all that follows its options.
    ///
    /// # Errors
    /// As [`Ipv4::split`].
    #[inline]
    pub fn split_mut(packet: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Malformed> {
        let options = options_len(packet)?;
        with_options_mut(packet, options, Layer::Ipv4)
    }

    /// Of all that follows the header, what belongs to the packet: Ethernet's padding does not.
    ///
    /// # Errors
    /// [`Malformed::Len`] when the total length is less than the header's, or more than there is.
    #[inline]
    pub fn payload<'a>(&self, rest: &'a [u8]) -> Result<&'a [u8], Malformed> {
        self.payload_len().and_then(|len| rest.get(..len)).ok_or(Malformed::Len(Layer::Ipv4))
    }

    /// As [`Ipv4::payload`], to be written.
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn payload_mut<'a>(&self, rest: &'a mut [u8]) -> Result<&'a mut [u8], Malformed> {
        self.payload_len().and_then(|len| rest.get_mut(..len)).ok_or(Malformed::Len(Layer::Ipv4))
    }

    /// Length of what follows the header, by the total length; `None` when that is less than the header's.
    #[inline]
    pub fn payload_len(&self) -> Option<usize> {
        usize::from(self.total_len()).checked_sub(self.header_len())
    }

    /// Length of the header with options, in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        LEN + self.options.len()
    }

    /// Type of service: DSCP in the upper six bits, ECN in the lower two.
    #[inline]
    pub fn tos(&self) -> u8 {
        self.tos
    }

    /// Length of header and payload, in bytes, as the header says.
    #[inline]
    pub fn total_len(&self) -> u16 {
        self.total_len.get()
    }

    /// Identification, the same in all fragments of a packet.
    #[inline]
    pub fn identification(&self) -> u16 {
        self.identification.get()
    }

    /// Whether routers must not take the packet apart.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.flags_and_offset.get() & DONT_FRAGMENT != 0
    }

    /// Whether further fragments follow this one.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.flags_and_offset.get() & MORE_FRAGMENTS != 0
    }

    /// Where the payload stands in that of the whole packet, in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.flags_and_offset.get() & OFFSET) * 8
    }

    /// Whether the packet is a part of another; then all but the first have no header of the next layer.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.flags_and_offset.get() & (MORE_FRAGMENTS | OFFSET) != 0
    }

    /// Time to live.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.ttl
    }

    /// Protocol of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// The checksum as it stands in the header.
    #[inline]
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        self.source.into()
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        self.destination.into()
    }

    /// The options, one by one.
    #[inline]
    pub fn options(&self) -> Options<'_> {
        Options::new(&self.options, Layer::Ipv4)
    }

    /// The bytes of the options, to be written; the checksum does not follow.
    #[inline]
    pub fn options_mut(&mut self) -> &mut [u8] {
        &mut self.options
    }

    /// Whether the checksum of header and options is right: where `rte_ipv4_cksum` gives 0.
    #[inline]
    pub fn checksum_is_right(&self) -> bool {
        checksum::checksum(self.as_bytes()) == 0
    }

    /// What UDP and TCP checksums cover of this header, for a message of `len` bytes, header and payload (`rte_ipv4_phdr_cksum`).
    #[inline]
    pub fn pseudo_header(&self, len: usize) -> PseudoHeader {
        let addresses = checksum::sum(&self.source) + checksum::sum(&self.destination);
        PseudoHeader(addresses + u64::from(self.protocol) + len as u64)
    }

    /// Makes the checksum of header and options anew (`rte_ipv4_cksum`).
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.checksum.set(0);
        self.checksum.set(checksum::checksum(self.as_bytes()));
    }

    /// Sets the type of service.
    #[inline]
    pub fn set_tos(&mut self, tos: u8) {
        self.tos = tos;
    }

    /// Sets the length of header and payload, in bytes.
    #[inline]
    pub fn set_total_len(&mut self, len: u16) {
        self.total_len.set(len);
    }

    /// Sets the identification.
    #[inline]
    pub fn set_identification(&mut self, identification: u16) {
        self.identification.set(identification);
    }

    /// Sets whether the packet must not be taken apart.
    #[inline]
    pub fn set_dont_fragment(&mut self, must_not: bool) {
        let rest = self.flags_and_offset.get() & !DONT_FRAGMENT;
        self.flags_and_offset.set(rest | u16::from(must_not) << 14);
    }

    /// Makes the packet a fragment whose payload stands `offset` bytes behind the whole one's start; false, and
    /// nothing done, when that is no multiple of 8 or above 65,528.
    #[inline]
    #[must_use = "nothing is done where it returns false"]
    pub fn set_fragment(&mut self, offset: usize, more_follow: bool) -> bool {
        if offset % 8 != 0 || offset / 8 > usize::from(OFFSET) {
            return false;
        }
        let kept = self.flags_and_offset.get() & !(MORE_FRAGMENTS | OFFSET);
        self.flags_and_offset.set(kept | u16::from(more_follow) << 13 | (offset / 8) as u16);
        true
    }

    /// Sets the time to live.
    #[inline]
    pub fn set_ttl(&mut self, ttl: u8) {
        self.ttl = ttl;
    }

    /// Sets the protocol of the payload.
    #[inline]
    pub fn set_protocol(&mut self, protocol: u8) {
        self.protocol = protocol;
    }

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }

    /// Sets the source address.
    #[inline]
    pub fn set_source(&mut self, address: Ipv4Addr) {
        self.source = address.octets();
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        self.destination = address.octets();
    }

    /// Sets the source address; the checksum follows. The checksums of UDP and TCP cover it, too.
    #[inline]
    pub fn update_source(&mut self, address: Ipv4Addr) -> Change {
        let change = Change::of(self.source, address.octets());
        self.source = address.octets();
        self.follow(change);
        change
    }

    /// Sets the destination address; the checksum follows. The checksums of UDP and TCP cover it, too.
    #[inline]
    pub fn update_destination(&mut self, address: Ipv4Addr) -> Change {
        let change = Change::of(self.destination, address.octets());
        self.destination = address.octets();
        self.follow(change);
        change
    }

    /// Sets the type of service; the checksum follows.
    #[inline]
    pub fn update_tos(&mut self, tos: u8) {
        let first = self.version_and_words;
        self.follow(Change::of([first, self.tos], [first, tos]));
        self.tos = tos;
    }

    /// Sets the length of header and payload, in bytes; the checksum follows. Those of UDP and TCP cover the length
    /// of their message, and not this one: make them anew.
    #[inline]
    pub fn update_total_len(&mut self, len: u16) {
        self.follow(Change::of_word(self.total_len(), len));
        self.set_total_len(len);
    }

    /// Sets the identification; the checksum follows.
    #[inline]
    pub fn update_identification(&mut self, identification: u16) {
        self.follow(Change::of_word(self.identification(), identification));
        self.set_identification(identification);
    }

    /// Sets the time to live; the checksum follows.
    #[inline]
    pub fn update_ttl(&mut self, ttl: u8) {
        self.follow(Change::of([self.ttl, self.protocol], [ttl, self.protocol]));
        self.ttl = ttl;
    }

    /// Takes one off the time to live, as a router does; the checksum follows. Returns what is left, or `None`, and
    /// does nothing, when the packet's time is over: it was 1 or 0.
    #[inline]
    #[must_use = "a packet whose time is over is not passed on"]
    pub fn decrement_ttl(&mut self) -> Option<u8> {
        let left = self.ttl.checked_sub(1).filter(|left| *left > 0)?;
        self.update_ttl(left);
        Some(left)
    }

    #[inline]
    fn follow(&mut self, change: Change) {
        self.checksum.set(change.applied_to(self.checksum.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lies_are_named() {
        let error = |packet: &[u8]| Ipv4::split(packet).unwrap_err();
        assert_eq!(error(&[]), Malformed::Short(Layer::Ipv4));
        assert_eq!(error(&[0x60; 20]), Malformed::Kind(Layer::Ipv4));
        assert_eq!(error(&[0x45; 19]), Malformed::Short(Layer::Ipv4));
        assert_eq!(error(&[0x44; 20]), Malformed::HeaderLen(Layer::Ipv4));
        assert_eq!(error(&[0x4f; 59]), Malformed::Short(Layer::Ipv4));
        assert_eq!(
            Ipv4::split_mut(&mut [0x44; 20]).unwrap_err(),
            Malformed::HeaderLen(Layer::Ipv4)
        );
        let bytes = [0x4f; 60];
        let (ip, rest) = Ipv4::split(&bytes).unwrap();
        assert_eq!((ip.header_len(), rest.len()), (60, 0));
        assert_eq!(ip.payload(rest).unwrap_err(), Malformed::Len(Layer::Ipv4));
        let mut bytes = [0x45u8; 30];
        bytes[2..4].copy_from_slice(&[0, 24]);
        let (ip, rest) = Ipv4::split_mut(&mut bytes).unwrap();
        assert_eq!(ip.payload(rest).unwrap().len(), 4);
        assert_eq!(ip.payload_mut(rest).unwrap().len(), 4);
        for lie in [0, 19, 31, 0xffff] {
            ip.set_total_len(lie);
            assert_eq!(ip.payload(rest), Err(Malformed::Len(Layer::Ipv4)), "{lie}");
        }
    }

    #[test]
    fn a_header_of_old() {
        // The ping's header of many a lecture: checksum b861.
        let mut bytes = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8,
            0, 0xc7,
        ];
        let (ip, _) = Ipv4::split_mut(&mut bytes).unwrap();
        assert!(ip.checksum_is_right() && ip.dont_fragment() && !ip.is_fragment());
        ip.set_checksum(0);
        ip.fill_checksum();
        assert_eq!(ip.checksum(), 0xb861);
        assert_eq!((ip.tos(), ip.identification(), ip.ttl()), (0, 0, 64));
        assert_eq!(
            (ip.source(), ip.destination()),
            ([192, 168, 0, 1].into(), [192, 168, 0, 199].into())
        );
    }

    #[test]
    fn fragments_are_told() {
        let mut bytes = [0u8; 20];
        bytes[0] = 0x45;
        let (ip, _) = Ipv4::split_mut(&mut bytes).unwrap();
        ip.set_dont_fragment(true);
        assert!(!ip.is_fragment());
        assert!(ip.set_fragment(0, true));
        assert!(ip.is_fragment() && ip.more_fragments() && ip.dont_fragment());
        assert!(ip.set_fragment(65_528, false));
        assert!(ip.is_fragment() && !ip.more_fragments());
        assert_eq!(ip.fragment_offset(), 65_528);
        assert!(!ip.set_fragment(65_536, false) && !ip.set_fragment(4, true));
        assert_eq!(ip.fragment_offset(), 65_528);
        ip.set_dont_fragment(false);
        assert!(!ip.dont_fragment());
    }

    #[test]
    fn time_runs_out_before_zero() {
        let mut bytes = [0u8; 20];
        (bytes[0], bytes[8]) = (0x45, 2);
        let (ip, _) = Ipv4::split_mut(&mut bytes).unwrap();
        ip.fill_checksum();
        assert_eq!(ip.decrement_ttl(), Some(1));
        assert_eq!((ip.decrement_ttl(), ip.ttl()), (None, 1));
        assert!(ip.checksum_is_right());
        ip.update_ttl(0);
        assert_eq!((ip.decrement_ttl(), ip.ttl()), (None, 0));
    }

    proptest! {
        #[test]
        fn updates_are_whole_checksums(mut bytes: [u8; 60], words in 5u8..16, long: u32, word: u16, byte: u8, field in 0..7) {
            bytes[0] = 0x40 | words;
            let (ip, _) = Ipv4::split_mut(&mut bytes).unwrap();
            ip.fill_checksum();
            let before = ip.checksum();
            match field {
                0 => { let _ = ip.update_source(long.into()); }
                1 => { let _ = ip.update_destination(long.into()); }
                2 => ip.update_tos(byte),
                3 => ip.update_total_len(word),
                4 => ip.update_identification(word),
                5 => ip.update_ttl(byte),
                _ => { let _ = ip.decrement_ttl(); }
            }
            let found = (ip.checksum(), ip.source(), ip.destination(), ip.tos(), ip.total_len(), ip.identification(), ip.ttl());
            match field {
                0 => prop_assert_eq!(found.1, Ipv4Addr::from(long)),
                1 => prop_assert_eq!(found.2, Ipv4Addr::from(long)),
                2 => prop_assert_eq!(found.3, byte),
                3 => prop_assert_eq!(found.4, word),
                4 => prop_assert_eq!(found.5, word),
                5 => prop_assert_eq!(found.6, byte),
                _ => {}
            }
            ip.fill_checksum();
            prop_assert_eq!(found.0, ip.checksum(), "before {}", before);
        }
    }
}
