// SPDX-License-Identifier: BSD-3-Clause
//! The two file formats, as they are written.
//!
//! pcap: draft-ietf-opsawg-pcap, with the magic number of nanosecond stamps. pcapng (by `capture_file`): one section, one
//! interface, packets, and the interface's statistics at the end of a capture that was stopped. Both are little-endian,
//! of link type Ethernet, without FCS.

use capture_file::pcapng::{self, Interface, Packet, Statistics};
use capture_file::ring::Record;

use super::Figures;

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

/// The most bytes of a record besides the captured ones, in either format.
pub(super) const RECORD_OVERHEAD: usize = 32 + 3 + 16;

impl Format {
    /// Writes what precedes the first record.
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
                pcapng::section(out, Some(APPLICATION), None);
                let interface =
                    Interface { snap, name: Some(port), fcs_len: Some(0), ..Interface::default() };
                pcapng::interface(out, &interface);
            }
        }
    }

    /// A record; its bytes come in two parts.
    pub(super) fn record(
        self,
        out: &mut Vec<u8>,
        nanoseconds: u64,
        record: &Record,
        one: &[u8],
        two: &[u8],
    ) {
        match self {
            Format::Pcap => {
                let seconds = u32::try_from(nanoseconds / 1_000_000_000).unwrap_or(u32::MAX);
                out.extend(seconds.to_le_bytes());
                out.extend(((nanoseconds % 1_000_000_000) as u32).to_le_bytes());
                out.extend(record.captured.to_le_bytes());
                out.extend(record.len.to_le_bytes());
                out.extend_from_slice(one);
                out.extend_from_slice(two);
            }
            Format::PcapNg => {
                let packet = Packet {
                    nanoseconds,
                    len: record.len,
                    missed: record.missed,
                    ..Packet::default()
                };
                pcapng::packet(out, &packet, one, two);
            }
        }
    }

    /// Writes what follows the last record of a capture that ran from `started` to `ended`, in
    /// nanoseconds since the epoch.
    pub(super) fn tail(self, out: &mut Vec<u8>, started: u64, ended: u64, figures: &Figures) {
        if self == Format::Pcap {
            return;
        }
        let statistics = Statistics {
            interface: 0,
            started,
            ended,
            seen: figures.seen,
            dropped: figures.dropped,
            accepted: Some(figures.matched),
            captured: figures.stored,
        };
        pcapng::statistics(out, &statistics);
    }
}
