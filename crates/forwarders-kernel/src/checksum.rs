// SPDX-License-Identifier: BSD-3-Clause
//! Completes checksums of TCP and UDP that the sender left to its interface, as the kernel does on
//! virtual ones. A frame that leaves through a socket or XDP loses the kernel's mark that the
//! checksum is incomplete, so it is completed here. `bpf/l2fwd.bpf.c` does the same for `xdp-fwd`.

use packet::checksum::{fold, sum};

use crate::frame;

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const TAGS: [[u8; 2]; 2] = [frame::VLAN, [0x88, 0xa8]];
/// Both MAC addresses.
const ADDRESSES: usize = 12;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Completes the checksum of a frame, whose VLAN tag may be outside of it, if it was left to the
/// interface; returns whether it was. The field then contains only the sum of addresses, protocol
/// and length. A correct checksum that happens to have that value is not changed.
pub(crate) fn complete(frame: &mut [u8]) -> bool {
    let Some(segment) = Segment::of(frame) else { return false };
    let Some(bytes) = frame.get_mut(segment.start..segment.start + segment.length) else {
        return false;
    };
    let Some(field) = bytes.get(segment.field..segment.field + 2) else { return false };
    if field != fold(segment.pseudo).to_be_bytes() {
        return false;
    }
    let made = match !fold(sum(bytes)) {
        // For UDP, 0 means no checksum.
        0 if segment.field == 6 => 0xffff,
        made => made,
    };
    bytes[segment.field..segment.field + 2].copy_from_slice(&made.to_be_bytes());
    true
}

/// The position of TCP or UDP in a frame.
struct Segment {
    start: usize,
    length: usize,
    /// The offset of the checksum in it.
    field: usize,
    /// The sum of addresses, protocol and length.
    pseudo: u64,
}

impl Segment {
    fn of(frame: &[u8]) -> Option<Self> {
        let mut at = ADDRESSES;
        let mut kind: [u8; 2] = *frame.get(at..)?.first_chunk()?;
        while TAGS.contains(&kind) {
            at += frame::TAG;
            kind = *frame.get(at..)?.first_chunk()?;
        }
        at += kind.len();
        let packet = &frame[at..];
        let (header, length, protocol, addresses) = match kind {
            IPV4 => {
                let header: &[u8; 20] = packet.first_chunk()?;
                let words = usize::from(header[0] & 0x0f) * 4;
                let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
                if header[0] >> 4 != 4 || words < 20 || fragment != 0 {
                    return None;
                }
                let whole = usize::from(u16::from_be_bytes([header[2], header[3]]));
                (words, whole.checked_sub(words)?, header[9], &header[12..20])
            }
            IPV6 => {
                let header: &[u8; 40] = packet.first_chunk()?;
                let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
                (header[0] >> 4 == 6).then_some((40, length, header[6], &header[8..40]))?
            }
            _ => return None,
        };
        let field = match protocol {
            TCP => 16,
            UDP => 6,
            _ => return None,
        };
        let pseudo = sum(addresses) + u64::from(protocol) + length as u64;
        Some(Self { start: at + header, length, field, pseudo })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet of IP with a message of TCP or UDP, all checksums of which are 0.
    fn packet(version: u8, tags: usize, protocol: u8, payload: &[u8]) -> (Vec<u8>, usize) {
        let head = if protocol == TCP { 20 } else { 8 };
        let length = head + payload.len();
        let mut frame = vec![2; ADDRESSES];
        for number in 0..tags {
            frame.extend(TAGS[number % 2]);
            frame.extend([0, 7]);
        }
        if version == 4 {
            frame.extend(IPV4);
            frame.extend([0x45, 0]);
            frame.extend((20 + length as u16).to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend(IPV6);
            frame.extend([0x60, 0, 0, 0]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([0x20; 32]);
        }
        let start = frame.len();
        frame.resize(start + head, 0x11);
        let field = if protocol == TCP { 16 } else { 6 };
        frame[start + field..start + field + 2].fill(0);
        frame.extend(payload);
        (frame, start)
    }

    /// The sum of the pseudo header, as RFC 9293 and RFC 8200 have it.
    fn pseudo(frame: &[u8], start: usize, version: u8, protocol: u8) -> u64 {
        let addresses = if version == 4 { 8 } else { 32 };
        sum(&frame[start - addresses..start]) + u64::from(protocol) + (frame.len() - start) as u64
    }

    proptest! {
        #[test]
        fn what_was_left_becomes_right(
            version in prop::sample::select(vec![4u8, 6]),
            protocol in prop::sample::select(vec![TCP, UDP]),
            tags in 0usize..3,
            payload in prop::collection::vec(any::<u8>(), 0..1500),
            padding in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let (mut frame, start) = packet(version, tags, protocol, &payload);
            let field = start + if protocol == TCP { 16 } else { 6 };
            let pseudo = pseudo(&frame, start, version, protocol);
            frame[field..field + 2].copy_from_slice(&fold(pseudo).to_be_bytes());
            let whole = frame.len();
            let before = frame.clone();
            frame.extend(&padding);
            prop_assert!(complete(&mut frame));
            prop_assert_eq!(fold(pseudo + sum(&frame[start..whole])), 0xffff);
            prop_assert_ne!(&frame[field..field + 2], &[0, 0]);
            // Nothing else is touched.
            prop_assert_eq!(&frame[..field], &before[..field]);
            prop_assert_eq!(&frame[field + 2..whole], &before[field + 2..]);
            prop_assert_eq!(&frame[whole..], &padding[..]);
            // What is right stays as it is.
            let right = frame.clone();
            complete(&mut frame);
            prop_assert_eq!(frame, right);
        }

        #[test]
        fn other_checksums_stay(
            version in prop::sample::select(vec![4u8, 6]),
            protocol in prop::sample::select(vec![TCP, UDP, 1, 132]),
            checksum: [u8; 2],
            cut in 0usize..40,
        ) {
            let (mut frame, start) = packet(version, 0, protocol, &[7; 11]);
            let field = start + if protocol == TCP { 16 } else { 6 };
            let left = fold(pseudo(&frame, start, version, protocol)).to_be_bytes();
            frame[field..field + 2].copy_from_slice(&checksum);
            frame.truncate(frame.len() - cut.min(frame.len()));
            let before = frame.clone();
            let completed = complete(&mut frame);
            prop_assert_eq!(completed, cut == 0 && checksum == left && [TCP, UDP].contains(&protocol));
            prop_assert!(completed || frame == before);
        }

        #[test]
        fn any_bytes_do(mut frame in prop::collection::vec(any::<u8>(), 0..100), version: bool) {
            if let Some(kind) = frame.get_mut(12..14) {
                kind.copy_from_slice(if version { &IPV4 } else { &IPV6 });
            }
            complete(&mut frame);
        }
    }

    #[test]
    fn fragments_stay() {
        let (mut frame, start) = packet(4, 0, UDP, &[7; 11]);
        let left = fold(pseudo(&frame, start, 4, UDP)).to_be_bytes();
        frame[start + 6..start + 8].copy_from_slice(&left);
        frame[20] = 0x20;
        assert!(!complete(&mut frame.clone()));
        frame[20] = 0x40;
        assert!(complete(&mut frame));
    }
}
