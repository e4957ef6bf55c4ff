// SPDX-License-Identifier: BSD-3-Clause
//! The TCP header (RFC 9293; `rte_tcp_hdr`): 20 bytes and up to 40 bytes of options.

use std::ops::{BitOr, Not};

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Change;
use crate::options::Options;
use crate::ports::ports;
use crate::pseudo::PseudoHeader;
use crate::view::{Layer, Malformed, with_options, with_options_mut};

/// Length of a header without options, in bytes.
pub const LEN: usize = 20;
/// Kind of the option with the largest segment, in bytes: two bytes.
pub const OPTION_MSS: u8 = 2;
/// Kind of the option with the binary logarithm of the window's unit: one byte.
pub const OPTION_WINDOW_SCALE: u8 = 3;
/// Kind of the option that permits selective acknowledgements (RFC 2018): no data.
pub const OPTION_SACK_PERMITTED: u8 = 4;
/// Kind of the option with two time stamps of four bytes (RFC 7323).
pub const OPTION_TIMESTAMPS: u8 = 8;

/// Flags of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender is done.
    pub const FIN: Flags = Flags(0x01);
    /// Sequence numbers begin.
    pub const SYN: Flags = Flags(0x02);
    /// Reset: the connection is aborted.
    pub const RST: Flags = Flags(0x04);
    /// Push: the receiver hands the data on at once.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(0x20);
    /// Congestion was seen (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// The sender has slowed down (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn contains(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for Flags {
    type Output = Flags;

    #[inline]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl Not for Flags {
    type Output = Flags;

    #[inline]
    fn not(self) -> Flags {
        Flags(!self.0)
    }
}

/// A view of a TCP header with its options.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Tcp {
    source: U16,
    destination: U16,
    sequence: U32,
    acknowledgement: U32,
    words: u8,
    flags: u8,
    window: U16,
    checksum: U16,
    urgent: U16,
    options: [u8],
}

/// How many bytes of options the header at the start of a segment has.
#[inline(always)]
fn options_len(segment: &[u8]) -> Result<usize, Malformed> {
    let words = segment.get(12).ok_or(Malformed::Short(Layer::Tcp))?;
    (usize::from(words >> 4) * 4).checked_sub(LEN).ok_or(Malformed::HeaderLen(Layer::Tcp))
}

ports!(Tcp);

impl Tcp {
    /// Splits a segment into its header, read-only, and all that follows its options.
    ///
    /// # Errors
    /// [`Malformed::Short`] or [`Malformed::HeaderLen`] (the data offset is less than 5 words).
    #[inline]
    pub fn split(segment: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        with_options(segment, options_len(segment)?, Layer::Tcp)
    }

    /// Splits a segment into its header, to be written, and all that follows its options.
    ///
    /// # Errors
    /// As [`Tcp::split`].
    #[inline]
    pub fn split_mut(segment: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Malformed> {
        let options = options_len(segment)?;
        with_options_mut(segment, options, Layer::Tcp)
    }

    /// Length of the header with options, in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        LEN + self.options.len()
    }

    /// Sequence number.
    #[inline]
    pub fn sequence(&self) -> u32 {
        self.sequence.get()
    }

    /// Acknowledgement number.
    #[inline]
    pub fn acknowledgement(&self) -> u32 {
        self.acknowledgement.get()
    }

    /// Flags.
    #[inline]
    pub fn flags(&self) -> Flags {
        Flags(self.flags)
    }

    /// Window, in the unit that the connection began with.
    #[inline]
    pub fn window(&self) -> u16 {
        self.window.get()
    }

    /// The checksum as it stands in the header.
    #[inline]
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Where the urgent data end, counted from the sequence number.
    #[inline]
    pub fn urgent(&self) -> u16 {
        self.urgent.get()
    }

    /// The options, one by one.
    #[inline]
    pub fn options(&self) -> Options<'_> {
        Options::new(&self.options, Layer::Tcp)
    }

    /// The bytes of the options, to be written; the checksum does not follow.
    #[inline]
    pub fn options_mut(&mut self) -> &mut [u8] {
        &mut self.options
    }

    /// Whether the checksum is right (`rte_ipv4_udptcp_cksum_verify`). `payload` is what is behind the options, without padding.
    #[inline]
    pub fn checksum_is_right(&self, pseudo: PseudoHeader, payload: &[u8]) -> bool {
        pseudo.is_right(self.as_bytes(), payload)
    }

    /// Makes the checksum anew (`rte_ipv4_udptcp_cksum`). `payload` is what is behind the options, without padding.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo: PseudoHeader, payload: &[u8]) {
        let checksum = pseudo.checksum(self.as_bytes(), payload, self.checksum());
        self.set_checksum(checksum);
    }

    /// Tells the checksum of a change in what it covers, the IP addresses or the payload.
    #[inline]
    pub fn update_checksum(&mut self, change: Change) {
        self.set_checksum(change.applied_to(self.checksum()));
    }

    /// Sets the sequence number; the checksum follows.
    #[inline]
    pub fn update_sequence(&mut self, number: u32) {
        self.update_checksum(Change::of(self.sequence.to_bytes(), number.to_be_bytes()));
        self.sequence.set(number);
    }

    /// Sets the acknowledgement number; the checksum follows.
    #[inline]
    pub fn update_acknowledgement(&mut self, number: u32) {
        self.update_checksum(Change::of(self.acknowledgement.to_bytes(), number.to_be_bytes()));
        self.acknowledgement.set(number);
    }

    /// Sets the flags; the checksum follows.
    #[inline]
    pub fn update_flags(&mut self, flags: Flags) {
        self.update_checksum(Change::of([self.words, self.flags], [self.words, flags.0]));
        self.flags = flags.0;
    }

    /// Sets the window; the checksum follows.
    #[inline]
    pub fn update_window(&mut self, window: u16) {
        self.update_checksum(Change::of_word(self.window(), window));
        self.window.set(window);
    }

    /// Sets the sequence number.
    #[inline]
    pub fn set_sequence(&mut self, number: u32) {
        self.sequence.set(number);
    }

    /// Sets the acknowledgement number.
    #[inline]
    pub fn set_acknowledgement(&mut self, number: u32) {
        self.acknowledgement.set(number);
    }

    /// Sets the flags.
    #[inline]
    pub fn set_flags(&mut self, flags: Flags) {
        self.flags = flags.0;
    }

    /// Sets the window.
    #[inline]
    pub fn set_window(&mut self, window: u16) {
        self.window.set(window);
    }

    /// Sets where the urgent data end.
    #[inline]
    pub fn set_urgent(&mut self, end: u16) {
        self.urgent.set(end);
    }

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::Ipv4;
    use proptest::prelude::*;

    const IP: [u8; 20] = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn a_known_syn() {
        // The writer's: 6 + 50 + 5002 = 503a, complement afc5.
        let (ip, _) = Ipv4::split(&IP).unwrap();
        let mut bytes = [0u8; 50];
        (bytes[12], bytes[13]) = (0x50, 2);
        let (tcp, payload) = Tcp::split_mut(&mut bytes).unwrap();
        tcp.fill_checksum(ip.pseudo_header(50), payload);
        assert_eq!((tcp.checksum(), tcp.flags(), payload.len()), (0xafc5, Flags::SYN, 30));
        assert!(tcp.checksum_is_right(ip.pseudo_header(50), payload));
        assert!(!tcp.checksum_is_right(ip.pseudo_header(51), payload));
        tcp.set_flags(Flags::SYN | Flags::ACK);
        assert!(tcp.flags().contains(Flags::ACK) && !tcp.flags().contains(Flags::ACK | Flags::FIN));
        assert_eq!((!Flags::SYN).0, 0xfd);
    }

    #[test]
    fn lies_are_named() {
        let mut bytes = [0u8; 24];
        for (offset, wanted) in [
            (0x00, Err(Malformed::HeaderLen(Layer::Tcp))),
            (0x4f, Err(Malformed::HeaderLen(Layer::Tcp))),
            (0x50, Ok((20, 4))),
            (0x60, Ok((24, 0))),
            (0x70, Err(Malformed::Short(Layer::Tcp))),
            (0xf0, Err(Malformed::Short(Layer::Tcp))),
        ] {
            bytes[12] = offset;
            let split = Tcp::split(&bytes).map(|(tcp, rest)| (tcp.header_len(), rest.len()));
            assert_eq!(split, wanted, "{offset:x}");
            let split =
                Tcp::split_mut(&mut bytes).map(|(tcp, rest)| (tcp.header_len(), rest.len()));
            assert_eq!(split, wanted, "{offset:x}");
        }
        assert_eq!(Tcp::split(&bytes[..12]).unwrap_err(), Malformed::Short(Layer::Tcp));
        assert_eq!(Tcp::split(&[0x50; 19]).unwrap_err(), Malformed::Short(Layer::Tcp));
    }

    proptest! {
        #[test]
        fn updates_are_whole_checksums(mut bytes: [u8; 71], words in 5u8..16, long: u32, word: u16, field in 0..7) {
            bytes[12] = bytes[12] & 0xf | words << 4;
            let mut ip = IP;
            let (ip, _) = Ipv4::split_mut(&mut ip).unwrap();
            let (tcp, payload) = Tcp::split_mut(&mut bytes).unwrap();
            tcp.fill_checksum(ip.pseudo_header(71), payload);
            match field {
                0 => tcp.update_source(word),
                1 => tcp.update_destination(word),
                2 => tcp.update_sequence(long),
                3 => tcp.update_acknowledgement(long),
                4 => tcp.update_flags(Flags(word as u8)),
                5 => tcp.update_window(word),
                _ => tcp.update_checksum(ip.update_source(long.into())),
            }
            let updated = tcp.checksum();
            tcp.fill_checksum(ip.pseudo_header(71), payload);
            prop_assert_eq!(updated, tcp.checksum());
            match field {
                0 => prop_assert_eq!(tcp.source(), word),
                1 => prop_assert_eq!(tcp.destination(), word),
                2 => prop_assert_eq!(tcp.sequence(), long),
                3 => prop_assert_eq!(tcp.acknowledgement(), long),
                4 => prop_assert_eq!(tcp.flags(), Flags(word as u8)),
                5 => prop_assert_eq!(tcp.window(), word),
                _ => {}
            }
        }
    }
}
