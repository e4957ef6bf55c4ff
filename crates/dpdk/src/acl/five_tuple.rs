// SPDX-License-Identifier: BSD-3-Clause
//! Finds the ports of a packet: behind options, behind extension headers, or in another fragment.

/// Bytes for everything that [`IPV6_5TUPLE_FLAGS`](super::IPV6_5TUPLE_FLAGS) reads, which is more
/// than the other layouts read.
pub(super) const LEN: usize = ipv6::LEN + FLAGS_END;

/// The header that a layout begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

/// The part of an IP packet that a layout reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ip {
    pub(super) version: Version,
    /// True if it reads the TCP header's word with the flags.
    pub(super) flags: bool,
}

/// Where the protocol, addresses and ports of a packet are.
///
/// The bytes in here are a header as [`IPV4_5TUPLE`](super::IPV4_5TUPLE) or
/// [`IPV6_5TUPLE`](super::IPV6_5TUPLE) reads it, directly followed by the ports: classify them
/// instead of the packet ([`Acl::classify_slices`](super::Acl::classify_slices)). Other fields may
/// differ from the packet's.
///
/// For protocols without ports, the first four bytes after the header are used as ports, as in
/// DPDK's `l3fwd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiveTuple {
    /// At the places of the layout.
    InPlace,
    /// Further back: there are options or extension headers.
    Moved([u8; LEN]),
    /// There are no ports: it is a fragment other than the first. The ports in the bytes are 0, so
    /// rules about ports do not apply.
    Fragment([u8; LEN]),
}

impl FiveTuple {
    /// Examines a packet, from its IPv4 header on. `None` if it ends before the ports, if its
    /// header has less than five words, or if it is a fragment that would overwrite the flags of a
    /// TCP header (RFC 1858, section 3.2).
    #[inline]
    #[must_use]
    pub fn of_ipv4(packet: &[u8]) -> Option<Self> {
        let header: &[u8; ipv4::LEN] = packet.first_chunk()?;
        if ipv4::is_in_place(header) {
            return (packet.len() >= ipv4::LEN + PORTS).then_some(Self::InPlace);
        }
        ipv4::elsewhere(header)?.with_ports(packet)
    }

    /// Examines a packet, from its IPv6 header on. `None` if it ends before the ports. The protocol
    /// of a fragment is the one in its fragment header.
    #[inline]
    #[must_use]
    pub fn of_ipv6(packet: &[u8]) -> Option<Self> {
        let header: &[u8; ipv6::LEN] = packet.first_chunk()?;
        if !ipv6::is_extension(header[ipv6::NEXT]) {
            return (packet.len() >= ipv6::LEN + PORTS).then_some(Self::InPlace);
        }
        ipv6::elsewhere(header, packet)?.with_ports(packet)
    }
}

impl Ip {
    /// Returns true if the fields of this packet, of the layout's length at least, are at the layout's places.
    #[inline(always)]
    pub(super) fn is_in_place(self, packet: &[u8]) -> bool {
        let end = match self.version {
            Version::V4 => match packet.first_chunk() {
                Some(header) if ipv4::is_in_place(header) => ipv4::LEN,
                _ => return false,
            },
            Version::V6 => match packet.first_chunk::<{ ipv6::LEN }>() {
                Some(header) if !ipv6::is_extension(header[ipv6::NEXT]) => ipv6::LEN,
                _ => return false,
            },
        };
        packet.len() >= end + if self.flags { FLAGS_END } else { PORTS }
    }

    /// Does the same as [`FiveTuple::of_ipv4`] and [`FiveTuple::of_ipv6`]. For a layout with flags,
    /// a packet that ends before the word with the flags gets zeros there; if it is TCP, it is
    /// truncated: `None`.
    #[inline]
    pub(super) fn five_tuple(self, packet: &[u8]) -> Option<FiveTuple> {
        match self {
            Self { version: Version::V4, flags: false } => FiveTuple::of_ipv4(packet),
            Self { version: Version::V6, flags: false } => FiveTuple::of_ipv6(packet),
            Self { version: Version::V4, flags: true } => {
                let header: &[u8; ipv4::LEN] = packet.first_chunk()?;
                if !ipv4::is_in_place(header) {
                    return ipv4::elsewhere(header)?.with_flags(packet);
                }
                in_place_or_short(header, packet, ipv4::PROTOCOL)
            }
            Self { version: Version::V6, flags: true } => {
                let header: &[u8; ipv6::LEN] = packet.first_chunk()?;
                if ipv6::is_extension(header[ipv6::NEXT]) {
                    return ipv6::elsewhere(header, packet)?.with_flags(packet);
                }
                in_place_or_short(header, packet, ipv6::NEXT)
            }
        }
    }
}

/// Bytes of both ports.
const PORTS: usize = 4;
/// From the start of TCP's header to the end of the word with the flags.
const FLAGS_END: usize = 16;
const TCP: u8 = 6;

/// A header of `N` bytes without options or extensions, and where the following bytes are in the
/// packet.
enum Plain<const N: usize> {
    At {
        header: [u8; N],
        protocol: u8,
        at: usize,
    },
    /// Nowhere: it is a fragment other than the first.
    Fragment([u8; N]),
}

impl<const N: usize> Plain<N> {
    /// Adds the ports. `None` if the packet ends before them.
    fn with_ports(self, packet: &[u8]) -> Option<FiveTuple> {
        match self {
            Self::Fragment(header) => Some(FiveTuple::Fragment(followed_by(&header, &[]))),
            Self::At { header, at, .. } => {
                let ports: &[u8; PORTS] = packet.get(at..)?.first_chunk()?;
                Some(FiveTuple::Moved(followed_by(&header, ports)))
            }
        }
    }

    /// Adds the ports and everything up to TCP's flags. `None` if the packet ends before the ports,
    /// or if it is TCP and ends before the flags.
    fn with_flags(self, packet: &[u8]) -> Option<FiveTuple> {
        let Self::At { header, protocol, at } = self else { return self.with_ports(packet) };
        let rest = packet.get(at..)?;
        let rest = rest.get(..FLAGS_END).unwrap_or(rest);
        let enough = if protocol == TCP { FLAGS_END } else { PORTS };
        (rest.len() >= enough).then(|| FiveTuple::Moved(followed_by(&header, rest)))
    }
}

/// A packet whose ports are right after its header of `N` bytes, for a layout with flags.
#[inline]
fn in_place_or_short<const N: usize>(
    header: &[u8; N],
    packet: &[u8],
    protocol: usize,
) -> Option<FiveTuple> {
    if packet.len() >= N + FLAGS_END {
        return Some(FiveTuple::InPlace);
    }
    Plain::At { header: *header, protocol: header[protocol], at: N }.with_flags(packet)
}

/// Returns a header and the bytes after it, `FLAGS_END` bytes at most, filled with zeros.
fn followed_by<const N: usize>(header: &[u8; N], rest: &[u8]) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[..N].copy_from_slice(header);
    bytes[N..N + rest.len()].copy_from_slice(rest);
    bytes
}

mod ipv4 {
    use super::{Plain, TCP};

    pub const LEN: usize = 20;
    pub const PROTOCOL: usize = 9;

    /// Returns true if it has no options and is not a later fragment.
    #[inline(always)]
    pub fn is_in_place(header: &[u8; LEN]) -> bool {
        header[0] & 0x0f == 5 && offset(header) == 0
    }

    /// The offset of a fragment in the whole packet, in units of eight bytes.
    #[inline(always)]
    pub fn offset(header: &[u8; LEN]) -> u16 {
        u16::from_be_bytes([header[6], header[7]]) & 0x1fff
    }

    #[cold]
    pub(super) fn elsewhere(header: &[u8; LEN]) -> Option<Plain<LEN>> {
        let len = usize::from(header[0] & 0x0f) * 4;
        let protocol = header[PROTOCOL];
        // The same header without options, whole as far as its fields say.
        let mut plain = *header;
        plain[0] = header[0] & 0xf0 | 5;
        plain[6..8].fill(0);
        match offset(header) {
            _ if len < LEN => None,
            0 => Some(Plain::At { header: plain, protocol, at: len }),
            1 if protocol == TCP => None,
            _ => Some(Plain::Fragment(plain)),
        }
    }
}

mod ipv6 {
    use super::Plain;

    pub const LEN: usize = 40;
    pub const NEXT: usize = 6;
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;

    /// Returns true if another header follows this one (RFC 8200, section 4; RFC 4302).
    #[inline(always)]
    pub fn is_extension(protocol: u8) -> bool {
        matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION)
    }

    #[cold]
    pub(super) fn elsewhere(header: &[u8; LEN], packet: &[u8]) -> Option<Plain<LEN>> {
        let mut plain = *header;
        let mut at = LEN;
        while is_extension(plain[NEXT]) {
            let [next, len, high, low] = *packet.get(at..)?.first_chunk()?;
            at += match plain[NEXT] {
                FRAGMENT => {
                    if u16::from_be_bytes([high, low]) >> 3 != 0 {
                        plain[NEXT] = next;
                        return Some(Plain::Fragment(plain));
                    }
                    8
                }
                AUTHENTICATION => (usize::from(len) + 2) * 4,
                _ => (usize::from(len) + 1) * 8,
            };
            plain[NEXT] = next;
        }
        Some(Plain::At { header: plain, protocol: plain[NEXT], at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PORTS: [u8; 4] = [0x30, 0x39, 0, 53];
    const UDP: u8 = 17;

    fn ipv4(words: u8, fragment: u16, protocol: u8) -> Vec<u8> {
        let mut header: Vec<u8> = (0..words * 4).collect();
        header.resize(header.len().max(20), 0xee);
        header[0] = 0x40 | words;
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
        header[9] = protocol;
        [&header[..], &PORTS].concat()
    }

    fn with_ports(header: &[u8], ports: [u8; 4]) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..header.len()].copy_from_slice(header);
        bytes[header.len()..header.len() + 4].copy_from_slice(&ports);
        bytes
    }

    proptest! {
        /// The short question has the answer of the long one.
        #[test]
        fn what_is_in_place_is_known_at_once(
            mut packet in prop::collection::vec(any::<u8>(), 0..80),
            first in prop_oneof![Just(0x45), Just(0x46), Just(0x60), any::<u8>()],
            fragment in prop_oneof![Just(0), Just(0x4000), any::<u16>()],
            next in prop_oneof![Just(6), Just(17), Just(44), any::<u8>()],
        ) {
            for (at, value) in [(0, first), (9, next)] {
                if let Some(byte) = packet.get_mut(at) {
                    *byte = value;
                }
            }
            if let Some(bytes) = packet.get_mut(6..8) {
                // Of IPv6 the first of these is the next header.
                bytes.copy_from_slice(&if first >> 4 == 6 { [next, 64] } else { fragment.to_be_bytes() });
            }
            for version in [Version::V4, Version::V6] {
                for flags in [false, true] {
                    let ip = Ip { version, flags };
                    let long = matches!(ip.five_tuple(&packet), Some(FiveTuple::InPlace));
                    prop_assert_eq!(ip.is_in_place(&packet), long);
                }
            }
        }
    }

    #[test]
    fn ports_are_found_behind_options() {
        for words in 6..=15 {
            let packet = ipv4(words, 0x4000, 6);
            let mut header: [u8; 20] = *packet.first_chunk().unwrap();
            header[0] = 0x45;
            header[6] = 0;
            let found = FiveTuple::of_ipv4(&packet);
            assert_eq!(found, Some(FiveTuple::Moved(with_ports(&header, PORTS))), "{words} words");
            assert_eq!(FiveTuple::of_ipv4(&packet[..packet.len() - 1]), None, "a byte is missing");
        }
    }

    #[test]
    fn a_first_fragment_has_ports_and_a_later_one_none() {
        assert_eq!(FiveTuple::of_ipv4(&ipv4(5, 0x2000, 6)), Some(FiveTuple::InPlace));
        for (words, fragment) in [(5, 0x2001), (5, 0x1fff), (5, 2), (7, 185)] {
            let packet = ipv4(words, fragment, UDP);
            let Some(FiveTuple::Fragment(bytes)) = FiveTuple::of_ipv4(&packet) else {
                panic!("{words} words, {fragment:#x}");
            };
            assert_eq!(bytes[9..20], packet[9..20], "protocol and addresses");
            assert_eq!(bytes[20..24], [0; 4]);
            assert_eq!(FiveTuple::of_ipv4(&bytes), Some(FiveTuple::InPlace), "can be handed in");
        }
    }

    #[test]
    fn what_has_no_ports_to_be_trusted_is_none() {
        assert_eq!(FiveTuple::of_ipv4(&ipv4(5, 1, 6)), None, "it would overwrite TCP's flags");
        for words in 0..5 {
            assert_eq!(FiveTuple::of_ipv4(&ipv4(words, 0, UDP)), None, "{words} words");
            assert_eq!(FiveTuple::of_ipv4(&ipv4(words, 3, UDP)), None, "{words} words, a fragment");
        }
        let whole = ipv4(5, 0, UDP);
        assert_eq!(FiveTuple::of_ipv4(&whole), Some(FiveTuple::InPlace));
        (0..24).for_each(|len| assert_eq!(FiveTuple::of_ipv4(&whole[..len]), None, "{len} bytes"));
    }

    /// Examines a packet for a layout with flags.
    fn with_flags(version: Version, packet: &[u8]) -> Option<FiveTuple> {
        Ip { version, flags: true }.five_tuple(packet)
    }

    #[test]
    fn flags_are_found_where_the_ports_are() {
        let rest: Vec<u8> = PORTS.into_iter().chain(1..=16).collect();
        let plain = ipv4(5, 0, 6);
        let header: [u8; 20] = *plain.first_chunk().unwrap();
        let in_place = [&header[..], &rest].concat();
        assert_eq!(with_flags(Version::V4, &in_place), Some(FiveTuple::InPlace));
        assert_eq!(with_flags(Version::V4, &in_place[..36]), Some(FiveTuple::InPlace));
        for len in 0..36 {
            assert_eq!(with_flags(Version::V4, &in_place[..len]), None, "TCP of {len} bytes");
        }
        let options = [&[0x46][..], &header[1..], &[1; 4], &rest].concat();
        let mut expected = [0; LEN];
        expected[..20].copy_from_slice(&header);
        expected[6] = 0;
        expected[20..36].copy_from_slice(&rest[..16]);
        assert_eq!(with_flags(Version::V4, &options), Some(FiveTuple::Moved(expected)));
        assert_eq!(with_flags(Version::V4, &options[..39]), None, "a byte is missing");
        let packet = ipv6(&[(0, 0)], 6, 0);
        let packet = [&packet[..packet.len() - 4], &rest].concat();
        let Some(FiveTuple::Moved(bytes)) = with_flags(Version::V6, &packet) else { panic!() };
        assert_eq!((bytes[6], &bytes[40..56]), (6, &rest[..16]));
        assert_eq!(with_flags(Version::V6, &packet[..63]), None, "a byte is missing");
    }

    #[test]
    fn only_tcp_needs_flags() {
        for (version, mut packet, at) in
            [(Version::V4, ipv4(5, 0, UDP), 20), (Version::V6, ipv6(&[], UDP, 0), 40)]
        {
            let header = packet[..at].to_vec();
            for extra in 0..12 {
                let Some(FiveTuple::Moved(bytes)) = with_flags(version, &packet) else {
                    panic!("{extra} bytes after the ports");
                };
                assert_eq!(bytes[..at], header);
                assert_eq!(bytes[at..at + 4], PORTS);
                let rest: Vec<u8> = (0..12).map(|n| if n < extra { 9 } else { 0 }).collect();
                assert_eq!(bytes[at + 4..at + 16], rest);
                packet.push(9);
            }
            assert_eq!(with_flags(version, &packet), Some(FiveTuple::InPlace));
            assert_eq!(with_flags(version, &packet[..at + 3]), None, "without ports");
        }
        let Some(FiveTuple::Fragment(bytes)) = with_flags(Version::V4, &ipv4(5, 3, UDP)) else {
            panic!("a later fragment")
        };
        assert_eq!(bytes[20..], [0; LEN - 20]);
    }

    /// An extension header of IPv6: its number, and its length in units of its own.
    fn extension() -> impl Strategy<Value = (u8, u8)> {
        (prop::sample::select(vec![0u8, 43, 44, 51, 60]), 0u8..6)
    }

    /// A packet with these extension headers, and the bytes after them; the first byte of each is
    /// the next one's number.
    fn ipv6(extensions: &[(u8, u8)], protocol: u8, offset: u16) -> Vec<u8> {
        let mut packet = vec![0xab; 40];
        let mut numbers = extensions.iter().map(|it| it.0).chain([protocol]);
        packet[6] = numbers.next().unwrap();
        for ((number, len), next) in extensions.iter().zip(numbers) {
            let bytes = match number {
                44 => 8,
                51 => (usize::from(*len) + 2) * 4,
                _ => (usize::from(*len) + 1) * 8,
            };
            let mut header = vec![0xcd; bytes];
            header[..2].copy_from_slice(&[next, *len]);
            if *number == 44 {
                header[2..4].copy_from_slice(&(offset << 3 | 1).to_be_bytes());
            }
            packet.extend(header);
        }
        packet.extend(PORTS);
        packet
    }

    proptest! {
        #[test]
        fn ports_are_found_behind_extension_headers(
            extensions in prop::collection::vec(extension(), 0..6), cut in 1usize..60,
        ) {
            let packet = ipv6(&extensions, UDP, 0);
            let mut header: [u8; 40] = *packet.first_chunk().unwrap();
            header[6] = UDP;
            let expected = match extensions.is_empty() {
                true => FiveTuple::InPlace,
                false => FiveTuple::Moved(with_ports(&header, PORTS)),
            };
            prop_assert_eq!(FiveTuple::of_ipv6(&packet), Some(expected));
            let rest = &packet[..packet.len().saturating_sub(cut)];
            prop_assert_eq!(FiveTuple::of_ipv6(rest), None);
        }

        #[test]
        fn a_later_fragment_of_ipv6_has_the_protocol_of_its_fragment_header(
            before in prop::collection::vec((prop::sample::select(vec![0u8, 43, 60]), 0u8..6), 0..3),
            protocol: u8, offset in 1u16..1 << 13,
        ) {
            let extensions = [before, vec![(44, 0)]].concat();
            let packet = ipv6(&extensions, protocol, offset);
            let mut header: [u8; 40] = *packet.first_chunk().unwrap();
            header[6] = protocol;
            let expected = FiveTuple::Fragment(with_ports(&header, [0; 4]));
            prop_assert_eq!(FiveTuple::of_ipv6(&packet), Some(expected));
        }

        #[test]
        fn any_bytes_end_in_bytes_that_can_be_handed_in(
            packet in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            for (found, again) in [
                (FiveTuple::of_ipv4(&packet), FiveTuple::of_ipv4 as fn(&[u8]) -> _),
                (FiveTuple::of_ipv6(&packet), FiveTuple::of_ipv6),
            ] {
                if let Some(FiveTuple::Moved(bytes)) = found {
                    prop_assert_eq!(again(&bytes), Some(FiveTuple::InPlace));
                }
            }
        }
    }
}
