// SPDX-License-Identifier: BSD-3-Clause
//! The two file formats, as they are written.
//!
//! pcap: draft-ietf-opsawg-pcap, with the magic number of nanosecond stamps. pcapng (by `capture_file`): one section, one
//! interface, packets, and the interface's statistics at the end of a capture that was stopped. Both are little-endian,
//! of link type Ethernet. pcapng says whether frames have their FCS. pcap's header could, but usual readers take such a
//! link type for an unknown one.

use capture_file::FCS_LEN;
use capture_file::pcapng::{self, Interface, Packet, Statistics};

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

/// The most bytes of a record besides those in the ring, in either format.
pub(super) const RECORD_OVERHEAD: usize = 32 + 3 + 16 + FCS_LEN;

/// A frame in a file, except for its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    /// Since the epoch.
    pub nanoseconds: u64,
    /// Bytes of the whole frame, including its FCS if the file has it.
    pub len: u32,
    /// Frames that were lost before it.
    pub missed: u32,
}

impl Format {
    /// Writes what precedes the first record. `fcs`: whether frames have their FCS.
    pub(super) fn head(self, out: &mut Vec<u8>, port: &str, snap: usize, fcs: bool) {
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
                let interface = Interface {
                    snap,
                    name: Some(port),
                    fcs_len: Some(if fcs { FCS_LEN as u8 } else { 0 }),
                    ..Interface::default()
                };
                pcapng::interface(out, &interface);
            }
        }
    }

    /// A record; its bytes come in parts.
    pub(super) fn record(self, out: &mut Vec<u8>, about: &About, parts: &[&[u8]]) {
        let About { nanoseconds, len, missed } = *about;
        match self {
            Format::Pcap => {
                let seconds = u32::try_from(nanoseconds / 1_000_000_000).unwrap_or(u32::MAX);
                let captured: usize = parts.iter().map(|part| part.len()).sum();
                out.extend(seconds.to_le_bytes());
                out.extend(((nanoseconds % 1_000_000_000) as u32).to_le_bytes());
                out.extend((captured as u32).to_le_bytes());
                out.extend(len.to_le_bytes());
                parts.iter().for_each(|part| out.extend_from_slice(part));
            }
            Format::PcapNg => {
                let packet = Packet { nanoseconds, len, missed, ..Packet::default() };
                pcapng::packet(out, &packet, parts);
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
