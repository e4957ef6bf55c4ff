// SPDX-License-Identifier: BSD-3-Clause
//! The blocks of a file, as draft-ietf-opsawg-pcapng has them: little-endian, link type Ethernet, times in nanoseconds.
//!
//! A file begins with a [`section`] and its [`interface`]s, which are numbered from 0 in their order.

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;
/// The length of an option has 16 bits; longer options are cut.
const LONGEST_OPTION: usize = u16::MAX as usize;

/// The beginning of a file: the program that writes it, and a comment.
pub fn section(out: &mut Vec<u8>, application: Option<&str>, comment: Option<&str>) {
    block(out, SECTION, |out| {
        out.extend(BYTE_ORDER.to_le_bytes());
        out.extend(1u16.to_le_bytes());
        out.extend(0u16.to_le_bytes());
        out.extend(u64::MAX.to_le_bytes()); // The section's length is not known.
        let mut options = Options::of(out);
        options.text(1, comment); // opt_comment
        options.text(4, application); // shb_userappl
    });
}

/// What a file says about an interface.
#[derive(Clone, Copy, Default, Debug)]
pub struct Interface<'a> {
    /// Most bytes that are captured of a packet; 0 if that is not said.
    pub snap: u32,
    /// As Wireshark shows it.
    pub name: Option<&'a str>,
    /// What it is.
    pub description: Option<&'a str>,
    /// Its address.
    pub mac: Option<[u8; 6]>,
    /// Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Bytes of the FCS at the end of each packet.
    pub fcs_len: Option<u8>,
}

/// An interface, the next one by number.
pub fn interface(out: &mut Vec<u8>, interface: &Interface<'_>) {
    block(out, INTERFACE, |out| {
        out.extend(LINKTYPE_ETHERNET.to_le_bytes());
        out.extend([0; 2]);
        out.extend(interface.snap.to_le_bytes());
        let mut options = Options::of(out);
        options.text(2, interface.name); // if_name
        options.text(3, interface.description); // if_description
        if let Some(mac) = interface.mac {
            options.bytes(6, &mac); // if_MACaddr
        }
        if let Some(mbps) = interface.speed_mbps {
            options.number(8, u64::from(mbps) * 1_000_000); // if_speed
        }
        options.bytes(9, &[9]); // if_tsresol: 10^-9 s
        if let Some(len) = interface.fcs_len {
            options.bytes(13, &[len]); // if_fcslen
        }
    });
}

/// Which way a packet went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It came in.
    Received,
    /// It was offered to the driver, which may have refused it.
    Sent,
}

/// A captured packet, without its bytes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Packet<'a> {
    /// The interface's number.
    pub interface: u32,
    /// Since the epoch.
    pub nanoseconds: u64,
    /// Bytes that the packet had; fewer may be captured.
    pub len: u32,
    /// Packets that were lost between the one before and this one.
    pub missed: u32,
    /// Which way it went.
    pub direction: Option<Direction>,
    /// The interface's queue.
    pub queue: Option<u16>,
    /// What else there is to say.
    pub comment: Option<&'a str>,
}

/// A packet, whose captured bytes come in parts.
pub fn packet(out: &mut Vec<u8>, packet: &Packet<'_>, parts: &[&[u8]]) {
    block(out, PACKET, |out| {
        let captured = parts.iter().map(|part| part.len()).sum::<usize>();
        out.extend(packet.interface.to_le_bytes());
        out.extend(stamp(packet.nanoseconds));
        out.extend((captured as u32).to_le_bytes());
        out.extend(packet.len.to_le_bytes());
        parts.iter().for_each(|part| out.extend_from_slice(part));
        pad(out, captured);
        let mut options = Options::of(out);
        options.text(1, packet.comment); // opt_comment
        if let Some(direction) = packet.direction {
            let flags: u32 = match direction {
                Direction::Received => 1,
                Direction::Sent => 2,
            };
            options.bytes(2, &flags.to_le_bytes()); // epb_flags
        }
        if packet.missed > 0 {
            options.number(4, packet.missed.into()); // epb_dropcount
        }
        if let Some(queue) = packet.queue {
            options.bytes(6, &u32::from(queue).to_le_bytes()); // epb_queue
        }
    });
}

/// What became of an interface's packets.
#[derive(Clone, Copy, Default, Debug)]
pub struct Statistics {
    /// The interface's number.
    pub interface: u32,
    /// When the capture started, in nanoseconds since the epoch.
    pub started: u64,
    /// When it ended.
    pub ended: u64,
    /// Packets that the capture has seen.
    pub seen: u64,
    /// Those that were lost.
    pub dropped: u64,
    /// Those that a filter accepted, if there was one.
    pub accepted: Option<u64>,
    /// Those in the file.
    pub captured: u64,
}

/// The statistics of an interface, at the end of a file.
pub fn statistics(out: &mut Vec<u8>, statistics: &Statistics) {
    block(out, STATISTICS, |out| {
        out.extend(statistics.interface.to_le_bytes());
        out.extend(stamp(statistics.ended));
        let mut options = Options::of(out);
        options.bytes(2, &stamp(statistics.started)); // isb_starttime
        options.bytes(3, &stamp(statistics.ended)); // isb_endtime
        options.number(4, statistics.seen); // isb_ifrecv
        options.number(5, statistics.dropped); // isb_ifdrop
        if let Some(accepted) = statistics.accepted {
            options.number(6, accepted); // isb_filteraccept
        }
        options.number(8, statistics.captured); // isb_usrdeliv
    });
}

/// The options at the end of a block, and behind them the mark of their end.
struct Options<'a> {
    out: &'a mut Vec<u8>,
    any: bool,
}

impl<'a> Options<'a> {
    fn of(out: &'a mut Vec<u8>) -> Self {
        Self { out, any: false }
    }

    fn bytes(&mut self, code: u16, value: &[u8]) {
        self.any = true;
        self.out.extend(code.to_le_bytes());
        self.out.extend((value.len() as u16).to_le_bytes());
        self.out.extend_from_slice(value);
        pad(self.out, value.len());
    }

    fn number(&mut self, code: u16, value: u64) {
        self.bytes(code, &value.to_le_bytes());
    }

    /// A text, cut between two characters where it is too long.
    fn text(&mut self, code: u16, value: Option<&str>) {
        let Some(value) = value else { return };
        let mut len = value.len().min(LONGEST_OPTION);
        while !value.is_char_boundary(len) {
            len -= 1;
        }
        self.bytes(code, &value.as_bytes()[..len]);
    }
}

impl Drop for Options<'_> {
    fn drop(&mut self) {
        if self.any {
            self.bytes(0, &[]);
        }
    }
}

/// A block, whose length is written once it is known.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let len = ((out.len() - start + 4) as u32).to_le_bytes();
    if let Some(place) = out.get_mut(start + 4..start + 8) {
        place.copy_from_slice(&len);
    }
    out.extend(len);
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend(std::iter::repeat_n(0, len.wrapping_neg() % 4));
}

/// Time stamps are two words, the high one first.
fn stamp(nanoseconds: u64) -> [u8; 8] {
    nanoseconds.rotate_left(32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test may.

    use super::*;

    #[test]
    fn blocks_are_whole_words_and_say_their_length_twice() {
        for len in 0..9 {
            let name = "n".repeat(len);
            let mut out = Vec::new();
            interface(
                &mut out,
                &Interface { name: Some(&name), speed_mbps: Some(10), ..Interface::default() },
            );
            assert_eq!(out.len() % 4, 0);
            let said = |at: usize| u32::from_le_bytes(out[at..at + 4].try_into().unwrap());
            assert_eq!((said(4) as usize, said(out.len() - 4) as usize), (out.len(), out.len()));
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        let mut out = Vec::new();
        Options::of(&mut out).text(1, Some(&"ä".repeat(40_000)));
        assert_eq!(u16::from_le_bytes([out[2], out[3]]), 65_534);
        assert!(std::str::from_utf8(&out[4..4 + 65_534]).is_ok());
    }
}
