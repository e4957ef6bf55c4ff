// SPDX-License-Identifier: BSD-3-Clause
//! Blocks as they lie in a file: draft-ietf-opsawg-pcapng, in the machine's byte order.

use super::Direction;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;
/// Options hold 16 bits of length, and every one that is longer is cut.
const LONGEST_OPTION: usize = u16::MAX as usize;

/// The beginning of a file.
pub(super) fn section(out: &mut Vec<u8>, application: &str, comment: Option<&str>) {
    block(out, SECTION, |out| {
        out.extend(BYTE_ORDER.to_ne_bytes());
        out.extend(1u16.to_ne_bytes());
        out.extend(0u16.to_ne_bytes());
        out.extend(u64::MAX.to_ne_bytes()); // The section's length is not known.
        if let Some(comment) = comment {
            text(out, 1, comment); // opt_comment
        }
        text(out, 4, application); // shb_userappl
        end(out);
    });
}

/// What is said of an interface, in its block.
pub(super) struct Description<'a> {
    pub(super) name: &'a str,
    pub(super) description: Option<&'a str>,
    pub(super) mac: Option<[u8; 6]>,
    pub(super) speed_mbps: Option<u32>,
}

/// An interface, the next one by number. Packets may be cut, by a length that differs from tap to tap.
pub(super) fn interface(out: &mut Vec<u8>, interface: &Description<'_>) {
    block(out, INTERFACE, |out| {
        out.extend(LINKTYPE_ETHERNET.to_ne_bytes());
        out.extend([0; 2]);
        out.extend(0u32.to_ne_bytes());
        text(out, 2, interface.name); // if_name
        if let Some(description) = interface.description {
            text(out, 3, description); // if_description
        }
        if let Some(mac) = interface.mac {
            option(out, 6, &mac); // if_MACaddr
        }
        if let Some(mbps) = interface.speed_mbps {
            option(out, 8, &(u64::from(mbps) * 1_000_000).to_ne_bytes()); // if_speed
        }
        option(out, 9, &[9]); // if_tsresol: 10^-9 s
        option(out, 13, &[0]); // if_fcslen: there is none
        end(out);
    });
}

/// A captured packet, but for its bytes.
pub(super) struct Packet {
    pub(super) interface: u32,
    pub(super) queue: u16,
    pub(super) direction: Direction,
    pub(super) nanoseconds: u64,
    /// Bytes of the packet, and how many of them are here.
    pub(super) len: u32,
    pub(super) captured: u32,
    /// Packets that were lost between the one before and this one.
    pub(super) missed: u32,
}

/// A packet, whose bytes come in two parts.
pub(super) fn packet(out: &mut Vec<u8>, packet: &Packet, one: &[u8], two: &[u8]) {
    block(out, PACKET, |out| {
        out.extend(packet.interface.to_ne_bytes());
        stamp(out, packet.nanoseconds);
        out.extend(packet.captured.to_ne_bytes());
        out.extend(packet.len.to_ne_bytes());
        out.extend_from_slice(one);
        out.extend_from_slice(two);
        pad(out, one.len() + two.len());
        let way: u32 = match packet.direction {
            Direction::Received => 1,
            Direction::Sent => 2,
        };
        option(out, 2, &way.to_ne_bytes()); // epb_flags
        if packet.missed > 0 {
            option(out, 4, &u64::from(packet.missed).to_ne_bytes()); // epb_dropcount
        }
        option(out, 6, &u32::from(packet.queue).to_ne_bytes()); // epb_queue
        end(out);
    });
}

/// What became of an interface's packets from `started` to `ended`, in nanoseconds since the epoch.
pub(super) fn statistics(
    out: &mut Vec<u8>,
    interface: u32,
    (started, ended): (u64, u64),
    figures: super::Figures,
) {
    block(out, STATISTICS, |out| {
        out.extend(interface.to_ne_bytes());
        stamp(out, ended);
        for (code, nanoseconds) in [(2, started), (3, ended)] {
            let mut bytes = Vec::with_capacity(8);
            stamp(&mut bytes, nanoseconds);
            option(out, code, &bytes); // isb_starttime, isb_endtime
        }
        let seen = figures.captured + figures.dropped;
        // isb_ifrecv, isb_ifdrop, isb_usrdeliv
        for (code, count) in [(4, seen), (5, figures.dropped), (8, figures.captured)] {
            option(out, code, &count.to_ne_bytes());
        }
        end(out);
    });
}

/// A block, whose length is written once it is known.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_ne_bytes());
    out.extend([0; 4]);
    body(out);
    let len = ((out.len() - start + 4) as u32).to_ne_bytes();
    if let Some(place) = out.get_mut(start + 4..start + 8) {
        place.copy_from_slice(&len);
    }
    out.extend(len);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_ne_bytes());
    out.extend((value.len() as u16).to_ne_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

/// An option that is a text, cut between two characters where it is too long.
fn text(out: &mut Vec<u8>, code: u16, value: &str) {
    let mut len = value.len().min(LONGEST_OPTION);
    while !value.is_char_boundary(len) {
        len -= 1;
    }
    option(out, code, &value.as_bytes()[..len]);
}

fn end(out: &mut Vec<u8>) {
    option(out, 0, &[]);
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend(std::iter::repeat_n(0, len.wrapping_neg() % 4));
}

/// Time stamps are two words, the high one first.
fn stamp(out: &mut Vec<u8>, nanoseconds: u64) {
    out.extend(((nanoseconds >> 32) as u32).to_ne_bytes());
    out.extend((nanoseconds as u32).to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_words_and_say_their_length_twice() {
        for len in 0..9 {
            let name = "n".repeat(len);
            let mut out = Vec::new();
            interface(
                &mut out,
                &Description { name: &name, description: None, mac: None, speed_mbps: Some(10) },
            );
            assert_eq!(out.len() % 4, 0);
            let said = |at: usize| u32::from_ne_bytes(out[at..at + 4].try_into().unwrap());
            assert_eq!((said(4) as usize, said(out.len() - 4) as usize), (out.len(), out.len()));
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        let mut out = Vec::new();
        text(&mut out, 1, &"ä".repeat(40_000));
        assert_eq!(u16::from_ne_bytes([out[2], out[3]]), 65_534);
        assert!(std::str::from_utf8(&out[4..4 + 65_534]).is_ok());
    }
}
