// SPDX-License-Identifier: BSD-3-Clause
//! The frame that is sent, and how it is recognised when it returns.

use std::ops::Range;

use packet::checksum::checksum;

pub(super) const ETHERNET: usize = 14;
pub(super) const FCS: usize = 4;
/// After the headers of UDP; in the padding of ARP.
const SESSION: Range<usize> = 42..50;
const NUMBER: Range<usize> = 50..58;
const ETHER_TYPE: Range<usize> = 12..14;
/// From the range for tests of network devices (RFC 2544, RFC 6815).
const SOURCE: [u8; 4] = [198, 18, 0, 1];
const DESTINATION: [u8; 4] = [198, 19, 0, 1];
const PORTS: [u8; 4] = [0xc0, 0x00, 0x00, 0x09];

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Arp,
    Udp,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Arp => "arp",
            Self::Udp => "udp",
        }
    }
}

/// A frame without its FCS, whose number changes.
pub(super) struct Request(Vec<u8>);

impl Request {
    /// `size`: with the FCS, 64 or more.
    pub(super) fn new(kind: Kind, source: [u8; 6], to: [u8; 6], size: usize) -> Self {
        let mut frame = Vec::with_capacity(size);
        frame.extend(to);
        frame.extend(source);
        match kind {
            Kind::Arp => {
                // Ethernet, IPv4, request.
                frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
                frame.extend(source);
                frame.extend(SOURCE);
                frame.extend([0; 6]);
                frame.extend(DESTINATION);
            }
            Kind::Udp => {
                let length = (size - FCS - ETHERNET) as u16;
                frame.extend([0x08, 0x00, 0x45, 0]);
                frame.extend(length.to_be_bytes());
                // Not to be fragmented, 64 hops, UDP.
                frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
                frame.extend(SOURCE);
                frame.extend(DESTINATION);
                let sum = checksum(&frame[ETHERNET..]);
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
                frame.extend(PORTS);
                frame.extend((length - 20).to_be_bytes());
                // No checksum, as IPv4 allows.
                frame.extend([0, 0]);
            }
        }
        frame.resize(size - FCS, 0);
        // Another sender on the wire has another token.
        let session = measure::clock::now() ^ u64::from(std::process::id()) << 32;
        frame[SESSION].copy_from_slice(&session.to_be_bytes());
        Self(frame)
    }

    /// The frame of that number.
    pub(super) fn numbered(&mut self, number: u64) -> &[u8] {
        self.0[NUMBER].copy_from_slice(&number.to_be_bytes());
        &self.0
    }

    /// The number of a returned frame; none if it is not from this program.
    pub(super) fn number_of(&self, frame: &[u8]) -> Option<u64> {
        let same = |part: Range<usize>| frame.get(part.clone()) == self.0.get(part);
        if frame.len() < self.0.len() || !same(ETHER_TYPE) || !same(SESSION) {
            return None;
        }
        Some(u64::from_be_bytes(frame.get(NUMBER)?.try_into().ok()?))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

    #[test]
    fn a_frame_is_known_by_its_token_whatever_its_addresses() {
        for kind in [Kind::Arp, Kind::Udp] {
            for size in [64, 1518] {
                let mut request = Request::new(kind, OWN, [0xff; 6], size);
                let mut back = request.numbered(77).to_vec();
                assert_eq!(back.len(), size - FCS);
                back[..12].fill(9);
                assert_eq!(request.number_of(&back), Some(77));
                assert_eq!(request.number_of(&back[..size - FCS - 1]), None);
                assert_eq!(request.number_of(&[]), None);
                back[SESSION.start] ^= 1;
                assert_eq!(request.number_of(&back), None);
                back[SESSION.start] ^= 1;
                back[13] ^= 1;
                assert_eq!(request.number_of(&back), None);
            }
        }
    }

    #[test]
    fn headers_are_whole() {
        let mut udp = Request::new(Kind::Udp, OWN, [0xff; 6], 64);
        let frame = udp.numbered(0);
        // The sum over a header with a correct checksum is 0.
        assert_eq!(checksum(&frame[14..34]), 0);
        assert_eq!((frame[16..18].to_vec(), frame[38..40].to_vec()), (vec![0, 46], vec![0, 26]));
        let mut arp = Request::new(Kind::Arp, OWN, [0xff; 6], 64);
        let frame = arp.numbered(0);
        assert_eq!(frame[12..22], [8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!((&frame[22..28], &frame[38..42]), (&OWN[..], &DESTINATION[..]));
    }
}
