// SPDX-License-Identifier: BSD-3-Clause
//! Parses capture files. Their contents are not trusted: every length is checked against the
//! available bytes before anything is allocated for it.

use std::fmt::Display;
use std::path::Path;

use pcap_parser::nom::IResult;
use pcap_parser::pcapng::{
    EPB_MAGIC, EnhancedPacketBlock, IDB_MAGIC, InterfaceDescriptionBlock, SHB_MAGIC, SPB_MAGIC,
    SimplePacketBlock, parse_enhancedpacketblock_be, parse_enhancedpacketblock_le,
    parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_sectionheaderblock, parse_simplepacketblock_be, parse_simplepacketblock_le,
};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    Linktype, OptionCode, PcapError, PcapNGOption, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_header,
};

use super::{Entry, Inner, Limits, MAX_FRAME, MIN_FRAME, ReplayError, Truncated};

/// Longest pcapng block that is parsed: the longest frame with more options than programs write.
/// The parser makes a list of the options, which is larger than they are.
const MAX_BLOCK: usize = 1 << 20;
/// The packet block that was replaced by enhanced packet blocks.
const OBSOLETE_PACKET: u32 = 2;
const SECOND: i128 = 1_000_000_000;

type Parsed<'a, T> = IResult<&'a [u8], T, PcapError<&'a [u8]>>;

pub(super) fn read(path: &Path, data: &[u8], limits: Limits) -> Result<Inner, ReplayError> {
    let mut reader = Reader { path, limits, inner: Inner::default(), first: None, latest: 0 };
    match data {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => reader.pcapng(data)?,
        [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0x3c, 0x4d, ..] => reader.pcap(data)?,
        _ => {
            let reason = match data {
                [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x04, 0x22, 0x4d, 0x18, ..] => {
                    "is compressed; decompress it first"
                }
                [0x34, 0xcd, 0xb2, 0xa1, ..] => {
                    "is of the modified pcap format; rewrite it as pcapng first"
                }
                _ => "is neither pcap nor pcapng",
            };
            return Err(ReplayError::Kind { path: path.to_owned(), reason });
        }
    }
    if reader.inner.entries.is_empty() {
        return Err(ReplayError::Empty { path: path.to_owned() });
    }
    Ok(reader.inner)
}

/// A packet as it is found.
struct Packet<'a> {
    /// Offset of its record in the file.
    at: usize,
    bytes: &'a [u8],
    /// Its original length in bytes, before the capture truncated it.
    len: usize,
    /// Nanoseconds since the epoch.
    time: Option<i128>,
    /// Bytes of the FCS at its end.
    fcs: usize,
}

/// An interface of a pcapng section.
struct Interface {
    link: Linktype,
    snap: usize,
    /// The units of a time stamp in a second.
    parts: u128,
    /// Nanoseconds to be added.
    offset: i128,
    fcs: usize,
}

struct Reader<'p> {
    path: &'p Path,
    limits: Limits,
    inner: Inner,
    /// Time of the first frame that has one.
    first: Option<i128>,
    /// When the latest frame so far is due.
    latest: u64,
}

impl Reader<'_> {
    fn malformed(&self, offset: usize, reason: impl Display) -> ReplayError {
        ReplayError::Malformed { path: self.path.to_owned(), offset, reason: reason.to_string() }
    }

    fn limit(&self, limit: usize, what: &'static str) -> ReplayError {
        ReplayError::Limit { path: self.path.to_owned(), limit, what }
    }

    /// Converts a parser's result for the bytes at an offset.
    fn parsed<'a, T>(
        &self,
        at: usize,
        what: &str,
        result: Parsed<'a, T>,
    ) -> Result<T, ReplayError> {
        match result {
            Ok((_, value)) => Ok(value),
            Err(pcap_parser::nom::Err::Incomplete(_)) => {
                Err(self.malformed(at, format!("{what} is cut off")))
            }
            Err(_) => Err(self.malformed(at, format!("{what} is damaged"))),
        }
    }

    fn pcap(&mut self, data: &[u8]) -> Result<(), ReplayError> {
        let header = self.parsed(0, "the file's header", parse_pcap_header(data))?;
        if header.version_major != 2 {
            let reason = format!("pcap of version {}; 2 is known", header.version_major);
            return Err(self.malformed(4, reason));
        }
        // If bit 26 is set, the upper bits give the length of the FCS in 16-bit words.
        let network = header.network.0 as u32;
        let link = Linktype((network & 0xffff) as i32);
        let fcs = if network & 1 << 26 != 0 { (network >> 28) as usize * 2 } else { 0 };
        let parse = if header.is_bigendian() { parse_pcap_frame_be } else { parse_pcap_frame };
        let scale = if header.is_nanosecond_precision() { 1 } else { 1000 };
        let mut at = header.size();
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            self.ethernet(at, link)?;
            let frame = self.parsed(at, "the record", parse(rest))?;
            let time = i128::from(frame.ts_sec) * SECOND + i128::from(frame.ts_usec) * scale;
            let (bytes, len) = (frame.data, frame.origlen as usize);
            self.add(&Packet { at, bytes, len, time: Some(time), fcs })?;
            at += 16 + bytes.len();
        }
        Ok(())
    }

    fn pcapng(&mut self, data: &[u8]) -> Result<(), ReplayError> {
        let mut big = false;
        let mut interfaces: Vec<Interface> = Vec::new();
        let mut at = 0;
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            let word = |offset: usize| {
                let bytes = *rest.get(offset..)?.first_chunk()?;
                Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
            };
            let Some(kind) = word(0) else {
                return Err(self.malformed(at, "the block is cut off"));
            };
            if kind == SHB_MAGIC {
                // Each section has its own byte order.
                big = rest.get(8) == Some(&0x1a);
                interfaces.clear();
            }
            let word = |offset: usize| {
                let bytes = *rest.get(offset..)?.first_chunk()?;
                Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
            };
            let Some(block) = word(4).and_then(|len| rest.get(..len as usize)) else {
                return Err(self.malformed(at, "the block is cut off"));
            };
            let known = matches!(kind, SHB_MAGIC | IDB_MAGIC | EPB_MAGIC | SPB_MAGIC);
            if block.len() < 12 || block.len() % 4 != 0 || known && block.len() > MAX_BLOCK {
                return Err(self.malformed(at, format!("a block of {} bytes", block.len())));
            }
            match kind {
                SHB_MAGIC => {
                    let what = "the section header";
                    let header = self.parsed(at, what, parse_sectionheaderblock(block))?;
                    if header.major_version != 1 {
                        let reason =
                            format!("pcapng of version {}; 1 is known", header.major_version);
                        return Err(self.malformed(at, reason));
                    }
                }
                IDB_MAGIC => {
                    let parse = if big {
                        parse_interfacedescriptionblock_be
                    } else {
                        parse_interfacedescriptionblock_le
                    };
                    let interface = self.parsed(at, "the interface's description", parse(block))?;
                    interfaces.push(self.interface(at, &interface, big)?);
                }
                EPB_MAGIC => {
                    let parse = if big {
                        parse_enhancedpacketblock_be
                    } else {
                        parse_enhancedpacketblock_le
                    };
                    let packet = self.parsed(at, "the packet", parse(block))?;
                    self.enhanced(at, &packet, interfaces.get(packet.if_id as usize), big)?;
                }
                SPB_MAGIC => {
                    let parse =
                        if big { parse_simplepacketblock_be } else { parse_simplepacketblock_le };
                    let packet = self.parsed(at, "the packet", parse(block))?;
                    self.simple(at, &packet, interfaces.first())?;
                }
                OBSOLETE_PACKET => {
                    let reason = "an obsolete packet block; rewrite the file with a newer program";
                    return Err(self.malformed(at, reason));
                }
                // Names, statistics, secrets and other blocks.
                _ => {}
            }
            at += block.len();
        }
        Ok(())
    }

    fn interface(
        &self,
        at: usize,
        block: &InterfaceDescriptionBlock<'_>,
        big: bool,
    ) -> Result<Interface, ReplayError> {
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let parts = match block.if_tsresol & 0x80 {
            0 => 10u128.checked_pow(exponent),
            _ => 1u128.checked_shl(exponent),
        };
        let Some(parts) = parts else {
            let reason = format!("a time resolution of 10^-{exponent} seconds");
            return Err(self.malformed(at, reason));
        };
        let seconds = match value::<8>(&block.options, OptionCode::IfTsoffset) {
            Some(bytes) if big => i64::from_be_bytes(bytes),
            Some(bytes) => i64::from_le_bytes(bytes),
            None => 0,
        };
        // The specification says bits, but programs write bytes.
        let fcs = match value::<1>(&block.options, OptionCode(13)) {
            Some([4 | 32]) => 4,
            Some([2 | 16]) => 2,
            _ => 0,
        };
        let snap = match block.snaplen {
            0 => usize::MAX,
            snap => snap as usize,
        };
        Ok(Interface {
            link: block.linktype,
            snap,
            parts,
            offset: i128::from(seconds) * SECOND,
            fcs,
        })
    }

    fn enhanced(
        &mut self,
        at: usize,
        block: &EnhancedPacketBlock<'_>,
        interface: Option<&Interface>,
        big: bool,
    ) -> Result<(), ReplayError> {
        let Some(interface) = interface else {
            let reason = format!("a packet of interface {}, which is not described", block.if_id);
            return Err(self.malformed(at, reason));
        };
        self.ethernet(at, interface.link)?;
        let stamp = u128::from(block.ts_high) << 32 | u128::from(block.ts_low);
        // Below 2^94 for any stamp.
        let time = (stamp * SECOND as u128 / interface.parts) as i128;
        let flags = value::<4>(&block.options, OptionCode(2));
        let flags = flags.map_or(0, if big { u32::from_be_bytes } else { u32::from_le_bytes });
        let fcs = match flags >> 5 & 0xf {
            0 => interface.fcs,
            said => said as usize,
        };
        let (bytes, len) = (block.packet_data(), block.origlen as usize);
        self.add(&Packet { at, bytes, len, time: Some(time + interface.offset), fcs })
    }

    fn simple(
        &mut self,
        at: usize,
        block: &SimplePacketBlock<'_>,
        interface: Option<&Interface>,
    ) -> Result<(), ReplayError> {
        let Some(interface) = interface else {
            return Err(self.malformed(at, "a packet of an interface that is not described"));
        };
        self.ethernet(at, interface.link)?;
        let len = block.origlen as usize;
        // The block has no captured length: it is the original length, limited by the snap length.
        let Some(bytes) = block.data.get(..len.min(interface.snap)) else {
            return Err(self.malformed(at, "the packet is longer than its block"));
        };
        self.add(&Packet { at, bytes, len, time: None, fcs: interface.fcs })
    }

    fn ethernet(&self, offset: usize, link: Linktype) -> Result<(), ReplayError> {
        if link == Linktype::ETHERNET {
            return Ok(());
        }
        let link = match link.0 {
            0 => "BSD loopback (0)".to_owned(),
            101 => "raw IP (101)".to_owned(),
            105 => "802.11 (105)".to_owned(),
            113 => "Linux cooked (113)".to_owned(),
            127 => "802.11 with radiotap (127)".to_owned(),
            276 => "Linux cooked v2 (276)".to_owned(),
            number => number.to_string(),
        };
        Err(ReplayError::LinkType { path: self.path.to_owned(), offset, link })
    }

    fn add(&mut self, packet: &Packet<'_>) -> Result<(), ReplayError> {
        let (path, offset) = (self.path, packet.at);
        let frame = self.inner.entries.len() + 1;
        if frame > self.limits.frames {
            return Err(self.limit(self.limits.frames, "frames"));
        }
        if packet.bytes.len() > packet.len {
            return Err(self.malformed(offset, "more bytes captured than the packet had"));
        }
        let len = packet.len.saturating_sub(packet.fcs);
        let bytes = packet.bytes.get(..len).unwrap_or(packet.bytes);
        if !(MIN_FRAME..=MAX_FRAME).contains(&len) {
            return Err(ReplayError::Length { path: path.to_owned(), offset, frame, len });
        }
        if bytes.len() < len {
            if self.limits.truncated == Truncated::Refuse {
                let (path, captured) = (path.to_owned(), bytes.len());
                return Err(ReplayError::Truncated { path, offset, frame, captured, len });
            }
            self.inner.padded += 1;
        }
        let start = self.inner.bytes.len();
        if start + len > self.limits.bytes {
            return Err(self.limit(self.limits.bytes, "bytes"));
        }
        self.inner.bytes.extend_from_slice(bytes);
        self.inner.bytes.resize(start + len, 0);
        self.inner.longest = self.inner.longest.max(len);
        let offset = self.due(packet.time).ok_or_else(|| {
            self.malformed(offset, "a time stamp more than 500 years after the first")
        })?;
        self.inner.entries.push(Entry { start, len, offset });
        Ok(())
    }

    /// When a frame is due, in nanoseconds after the first: never before its predecessor. `None` if
    /// that exceeds the range.
    fn due(&mut self, time: Option<i128>) -> Option<u64> {
        let Some(time) = time else {
            self.inner.untimed += 1;
            return Some(self.latest);
        };
        let since = time - *self.first.get_or_insert(time);
        match u64::try_from(since.max(0)).ok()? {
            due if since >= 0 && due >= self.latest => self.latest = due,
            _ => self.inner.out_of_order += 1,
        }
        Some(self.latest)
    }
}

/// The value of an option that has exactly `N` bytes.
fn value<const N: usize>(options: &[PcapNGOption<'_>], code: OptionCode) -> Option<[u8; N]> {
    let option = options.iter().find(|option| option.code == code)?;
    option.as_bytes().ok()?.try_into().ok()
}
