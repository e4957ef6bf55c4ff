// SPDX-License-Identifier: BSD-3-Clause
//! The two file formats, as they are written.
//!
//! pcap: draft-ietf-opsawg-pcap, with the magic number of nanosecond stamps. pcapng:
//! draft-ietf-opsawg-pcapng, with one section, one interface, enhanced packets, and the interface's
//! statistics at the end of a capture that was stopped. Both are little-endian, of link type Ethernet,
//! without FCS.

use super::Figures;
use super::tap::Header;

const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;
const APPLICATION: &str = concat!("linerate generator ", env!("CARGO_PKG_VERSION"));

/// Format of a capture file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// pcap with nanoseconds.
    #[default]
    Pcap,
    /// pcapng with nanoseconds.
    PcapNg,
}

/// Most bytes that a record takes besides those captured, in either format.
pub(super) const RECORD_OVERHEAD: usize = 32 + 3 + 16;

impl Format {
    /// What stands before the first record.
    pub(super) fn head(self, out: &mut Vec<u8>, port: &str, snap: usize) {
        let snap = snap as u32;
        match self {
            Format::Pcap => {
                out.extend(NANOSECOND_MAGIC.to_le_bytes());
                out.extend(2u16.to_le_bytes());
                out.extend(4u16.to_le_bytes());
                out.extend([0; 8]);
                out.extend(snap.to_le_bytes());
                out.extend(u32::from(LINKTYPE_ETHERNET).to_le_bytes());
            }
            Format::PcapNg => {
                block(out, 0x0a0d_0d0a, |out| {
                    out.extend(0x1a2b_3c4du32.to_le_bytes());
                    out.extend(1u16.to_le_bytes());
                    out.extend(0u16.to_le_bytes());
                    out.extend(u64::MAX.to_le_bytes()); // The section's length is not known.
                    option(out, 4, APPLICATION.as_bytes());
                    option(out, 0, &[]);
                });
                block(out, 1, |out| {
                    out.extend(LINKTYPE_ETHERNET.to_le_bytes());
                    out.extend([0; 2]);
                    out.extend(snap.to_le_bytes());
                    option(out, 2, port.as_bytes());
                    option(out, 9, &[9]); // if_tsresol: 10^-9 s
                    option(out, 13, &[0]); // if_fcslen: there is none
                    option(out, 0, &[]);
                });
            }
        }
    }

    /// A record; its bytes come in two parts.
    pub(super) fn record(
        self,
        out: &mut Vec<u8>,
        nanoseconds: u64,
        header: &Header,
        one: &[u8],
        two: &[u8],
    ) {
        match self {
            Format::Pcap => {
                let seconds = u32::try_from(nanoseconds / 1_000_000_000).unwrap_or(u32::MAX);
                out.extend(seconds.to_le_bytes());
                out.extend(((nanoseconds % 1_000_000_000) as u32).to_le_bytes());
                out.extend(header.captured.to_le_bytes());
                out.extend(header.len.to_le_bytes());
                out.extend_from_slice(one);
                out.extend_from_slice(two);
            }
            Format::PcapNg => block(out, 6, |out| {
                out.extend(0u32.to_le_bytes());
                stamp(out, nanoseconds);
                out.extend(header.captured.to_le_bytes());
                out.extend(header.len.to_le_bytes());
                out.extend_from_slice(one);
                out.extend_from_slice(two);
                pad(out, one.len() + two.len());
                if header.missed > 0 {
                    option(out, 4, &u64::from(header.missed).to_le_bytes()); // epb_dropcount
                    option(out, 0, &[]);
                }
            }),
        }
    }

    /// What stands behind the last record of a capture that ran from `started` to `ended`, in
    /// nanoseconds since the epoch.
    pub(super) fn tail(self, out: &mut Vec<u8>, started: u64, ended: u64, figures: &Figures) {
        if self == Format::Pcap {
            return;
        }
        block(out, 5, |out| {
            out.extend(0u32.to_le_bytes());
            stamp(out, ended);
            for (code, nanoseconds) in [(2, started), (3, ended)] {
                let mut bytes = Vec::with_capacity(8);
                stamp(&mut bytes, nanoseconds);
                option(out, code, &bytes);
            }
            // isb_ifrecv, isb_ifdrop, isb_filteraccept, isb_usrdeliv
            for (code, count) in
                [(4, figures.seen), (5, figures.dropped), (6, figures.matched), (8, figures.stored)]
            {
                option(out, code, &count.to_le_bytes());
            }
            option(out, 0, &[]);
        });
    }
}

/// A block of pcapng, whose length is written once it is known.
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

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Names are bounded far below what 16 bits hold.
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend(std::iter::repeat_n(0, len.wrapping_neg() % 4));
}

/// Time stamps are two words, the high one first.
fn stamp(out: &mut Vec<u8>, nanoseconds: u64) {
    out.extend(((nanoseconds >> 32) as u32).to_le_bytes());
    out.extend((nanoseconds as u32).to_le_bytes());
}
