// SPDX-License-Identifier: BSD-3-Clause
//! Ethernet/IPv4/UDP frames with fields that change, written as fast as a line needs them.
//!
//! A [`Template`] is built once per flow. Per frame it writes the headers and the signature and
//! gets both checksums from sums that were made beforehand, so that its cost does not depend on
//! the frame's length. The bytes between headers and signature are zero and never change: write
//! them once per buffer with [`Template::write_blank`], or with every frame by
//! [`Template::write_whole`]. A template belongs to one thread.

use std::net::Ipv4Addr;

use crate::field::{Cycle, Pattern};
use crate::ipv4::{Ipv4Fields, PROTOCOL_UDP};
use crate::signature::{self, Signature};
use crate::{FCS_LEN, checksum, ethernet, ipv4, udp};

/// Length of the three headers in bytes.
pub const HEADERS_LEN: usize = ethernet::LEN + ipv4::LEN + udp::LEN;
/// Shortest frame in bytes, FCS included.
pub const MIN_LEN_WITH_FCS: usize = 64;
/// Longest frame in bytes, FCS included.
pub const MAX_LEN_WITH_FCS: usize = 1518;

const IP: usize = ethernet::LEN;
const UDP: usize = ethernet::LEN + ipv4::LEN;

/// The fields of a flow's frames. Lengths and checksums follow by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpFrame {
    /// Frame size in bytes, FCS included.
    pub len_with_fcs: usize,
    /// Ethernet destination, 48 bits.
    pub mac_destination: Pattern,
    /// Ethernet source, 48 bits.
    pub mac_source: Pattern,
    /// IPv4 type of service.
    pub tos: u8,
    /// IPv4 identification.
    pub identification: u16,
    /// IPv4 "don't fragment".
    pub dont_fragment: bool,
    /// IPv4 time to live.
    pub ttl: u8,
    /// IPv4 source, 32 bits.
    pub ip_source: Pattern,
    /// IPv4 destination, 32 bits.
    pub ip_destination: Pattern,
    /// UDP source port.
    pub port_source: Pattern,
    /// UDP destination port.
    pub port_destination: Pattern,
}

impl Default for UdpFrame {
    /// A 64-byte frame whose addresses and ports are all zero and whose time to live is 64.
    fn default() -> Self {
        let zero = Pattern::Value(0);
        UdpFrame {
            len_with_fcs: MIN_LEN_WITH_FCS,
            mac_destination: zero.clone(),
            mac_source: zero.clone(),
            tos: 0,
            identification: 0,
            dont_fragment: false,
            ttl: 64,
            ip_source: zero.clone(),
            ip_destination: zero.clone(),
            port_source: zero.clone(),
            port_destination: zero,
        }
    }
}

/// Why a template cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The size is outside what the template writes.
    #[error("a frame of {0} bytes (FCS included): choose {MIN_LEN_WITH_FCS} to {MAX_LEN_WITH_FCS}")]
    Length(usize),
}

/// Writes the frames of one flow, each different from the last as its patterns say.
#[derive(Clone, Debug)]
pub struct Template {
    len: usize,
    tail: usize,
    head: [u8; HEADERS_LEN],
    macs: Option<Box<[Cycle; 2]>>,
    ip_source: Cycle,
    ip_destination: Cycle,
    port_source: Cycle,
    port_destination: Cycle,
    ip_sum: u64,
    udp_sum: u64,
    flow: u16,
    run: u8,
    sequence: u32,
}

impl Template {
    /// The template of flow number `flow`, at its first frame and in run 0.
    ///
    /// # Errors
    /// [`TemplateError::Length`] when the size is not 64 to 1518 bytes.
    ///
    /// ```
    /// use packet::{field::Pattern, signature::Signature, template::{Template, UdpFrame}};
    /// let ports = Pattern::Increment { start: 10_000, step: 1, count: 1000 };
    /// let mut template = Template::new(&UdpFrame { port_source: ports, ..UdpFrame::default() }, 7)?;
    /// let mut frame = vec![0u8; template.len()];
    /// template.write_whole(&mut frame);
    /// assert_eq!(frame.len(), 60);
    /// assert_eq!(Signature::read(&frame).map(|s| (s.flow, s.sequence)), Some((7, 0)));
    /// # Ok::<(), packet::template::TemplateError>(())
    /// ```
    pub fn new(frame: &UdpFrame, flow: u16) -> Result<Self, TemplateError> {
        if !(MIN_LEN_WITH_FCS..=MAX_LEN_WITH_FCS).contains(&frame.len_with_fcs) {
            return Err(TemplateError::Length(frame.len_with_fcs));
        }
        let len = frame.len_with_fcs - FCS_LEN;
        let tail = signature::offset(len).ok_or(TemplateError::Length(frame.len_with_fcs))?;
        let mut macs = [frame.mac_destination.cycle(48), frame.mac_source.cycle(48)];
        let constant = frame.mac_destination.is_constant() && frame.mac_source.is_constant();

        let mut head = [0u8; HEADERS_LEN];
        for (cycle, at) in macs.iter_mut().zip([0, 6]) {
            head[at..at + 6].copy_from_slice(&crate::MacAddr::from_u64(cycle.next_value()).0);
            cycle.restart();
        }
        head[12..14].copy_from_slice(&ethernet::ETHERTYPE_IPV4.to_be_bytes());
        // Both lengths fit: the frame is at most 1518 bytes.
        let (ip_len, udp_len) = ((len - IP) as u16, (len - UDP) as u16);
        let mut header = [0u8; ipv4::LEN];
        Ipv4Fields {
            tos: frame.tos,
            total_len: ip_len,
            identification: frame.identification,
            dont_fragment: frame.dont_fragment,
            ttl: frame.ttl,
            protocol: PROTOCOL_UDP,
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
        }
        .write(&mut header);
        header[10..12].fill(0);
        head[IP..UDP].copy_from_slice(&header);
        head[UDP + 4..UDP + 6].copy_from_slice(&udp_len.to_be_bytes());

        let mut template = Template {
            len,
            tail,
            head,
            macs: (!constant).then(|| Box::new(macs)),
            ip_source: frame.ip_source.cycle(32),
            ip_destination: frame.ip_destination.cycle(32),
            port_source: frame.port_source.cycle(16),
            port_destination: frame.port_destination.cycle(16),
            ip_sum: checksum::sum(&header),
            udp_sum: 0,
            flow,
            run: 0,
            sequence: 0,
        };
        template.restart(0);
        Ok(template)
    }

    /// Goes back to the first frame and marks the frames as of run `run`.
    pub fn restart(&mut self, run: u8) {
        self.run = run;
        self.sequence = 0;
        for cycle in [
            &mut self.ip_source,
            &mut self.ip_destination,
            &mut self.port_source,
            &mut self.port_destination,
        ] {
            cycle.restart();
        }
        for cycle in self.macs.iter_mut().flat_map(|macs| macs.iter_mut()) {
            cycle.restart();
        }
        let udp_len = (self.len - UDP) as u64;
        // The length counts twice: in the pseudo-header and in the header. A signature adds zero.
        self.udp_sum = u64::from(PROTOCOL_UDP) + 2 * udp_len;
    }

    /// Length of a frame in bytes, without the FCS.
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes what never changes between headers and signature: zeros to the whole of `buffer`.
    pub fn write_blank(buffer: &mut [u8]) {
        buffer.fill(0);
    }

    /// Writes the next frame whole. `frame` must be [`Template::len`] bytes; a buffer of another
    /// length is left alone and the frame is not used up.
    #[inline]
    pub fn write_whole(&mut self, frame: &mut [u8]) {
        if let Some(middle) = frame.get_mut(HEADERS_LEN..self.tail) {
            middle.fill(0);
        }
        if let Some(last) = frame.get_mut(self.tail + signature::LEN..) {
            last.fill(0);
        }
        self.write(frame);
    }

    /// Writes headers and signature of the next frame; what lies between must be zero already.
    /// `frame` must be [`Template::len`] bytes; a buffer of another length is left alone and the
    /// frame is not used up.
    #[inline]
    pub fn write(&mut self, frame: &mut [u8]) {
        if frame.len() != self.len {
            return;
        }
        let ip_source = self.ip_source.next_value() as u32;
        let ip_destination = self.ip_destination.next_value() as u32;
        let port_source = self.port_source.next_value() as u16;
        let port_destination = self.port_destination.next_value() as u16;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);

        let addresses = checksum::sum32(ip_source) + checksum::sum32(ip_destination);
        let ip_check = !checksum::fold(self.ip_sum + addresses);
        let ports = u64::from(port_source) + u64::from(port_destination);
        let udp_check = match !checksum::fold(self.udp_sum + addresses + ports) {
            0 => 0xffff, // RFC 768: zero would mean that there is no checksum
            check => check,
        };

        let Some(head) = frame.first_chunk_mut::<HEADERS_LEN>() else {
            return;
        };
        *head = self.head;
        if let Some(macs) = &mut self.macs {
            let [destination, source] = &mut **macs;
            head[0..6].copy_from_slice(&crate::MacAddr::from_u64(destination.next_value()).0);
            head[6..12].copy_from_slice(&crate::MacAddr::from_u64(source.next_value()).0);
        }
        head[IP + 10..IP + 12].copy_from_slice(&ip_check.to_be_bytes());
        head[IP + 12..IP + 16].copy_from_slice(&ip_source.to_be_bytes());
        head[IP + 16..IP + 20].copy_from_slice(&ip_destination.to_be_bytes());
        head[UDP..UDP + 2].copy_from_slice(&port_source.to_be_bytes());
        head[UDP + 2..UDP + 4].copy_from_slice(&port_destination.to_be_bytes());
        head[UDP + 6..UDP + 8].copy_from_slice(&udp_check.to_be_bytes());

        let signature = Signature { run: self.run, flow: self.flow, sequence, stamp: 0 };
        if let Some(tail) = frame.get_mut(self.tail..).and_then(|rest| rest.first_chunk_mut()) {
            *tail = signature.to_bytes();
        }
    }
}

#[cfg(test)]
mod tests;
