// SPDX-License-Identifier: BSD-3-Clause
//! Requests to the device that sends a packet: checksums, TCP segmentation, a VLAN tag.
//!
//! A device does only what its port was configured for;
//! [`TxQueue::prepare`](crate::TxQueue::prepare) finds packets that ask for more before they are
//! sent.
//!
//! Drivers of virtual devices do this in software, and trust the requested lengths when they read
//! and write. So a request is accepted only if the headers lie in the first segment, and methods
//! that move or may shorten the headers withdraw it: [`prepend`](Mbuf::prepend),
//! [`adj`](Mbuf::adj), [`trim`](Mbuf::trim) and [`resize`](Mbuf::resize). [`chain`](Mbuf::chain)
//! withdraws that of the appended packet, and [`insert_vlan`](Mbuf::insert_vlan) one that has no
//! room for the tag. So make the request last. Clones, copies and parts have none.

use std::num::NonZeroU16;

use dpdk_sys::layout;
#[cfg(feature = "packet")]
use packet::{ipv4, layers::Layers};

use super::Mbuf;
use crate::fast::mbuf::{REQUESTS, field, set_field};

/// The longest IPv4 header: drivers also use the length that is in the packet.
const LONGEST_IPV4: usize = 60;
/// The longest headers of TCP segments, all layers together. net_tap copies them into buffers of
/// this size.
const LONGEST_SEGMENT_HEADERS: usize = 128;

/// What a device is to compute in a packet, and where its headers are. The `packet` crate has views
/// that find these lengths.
///
/// ```
/// use dpdk::{IpOffload, L4Offload, Mbuf, OffloadError, TxOffload};
///
/// /// Has the device fill in both checksums of a UDP packet over IPv4 without options.
/// fn checksums(mbuf: &mut Mbuf<'_>) -> Result<(), OffloadError> {
///     mbuf.request(&TxOffload {
///         l2_len: 14,
///         ip: IpOffload::Ipv4 { len: 20, checksum: true },
///         l4: L4Offload::Udp,
///     })
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxOffload {
    /// Bytes before the IP header, at most 127, including a VLAN tag that the device will insert.
    /// In tunnels: all bytes before the inner IP header, which works with devices that do not know
    /// of the tunnel.
    pub l2_len: u8,
    /// The IP header.
    pub ip: IpOffload,
    /// The transport header.
    pub l4: L4Offload,
}

/// The IP header of a packet to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpOffload {
    /// IPv4.
    Ipv4 {
        /// Its length in bytes, options included: 20 to 60.
        len: u8,
        /// True if the device fills in its checksum. It always does with
        /// [`L4Offload::TcpSegments`].
        checksum: bool,
    },
    /// IPv6, which has no checksum.
    Ipv6 {
        /// Its length in bytes, extension headers included: 40 to 511.
        len: u16,
    },
}

/// What the device does to the transport header. Some devices need the pseudo-header's checksum in
/// the field: [`TxQueue::prepare`](crate::TxQueue::prepare) writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum L4Offload {
    /// Nothing.
    Nothing,
    /// Fills in UDP's checksum.
    Udp,
    /// Fills in SCTP's checksum.
    Sctp,
    /// Fills in TCP's checksum.
    Tcp {
        /// Bytes of the TCP header, options included: 20 to 60.
        len: u8,
    },
    /// Cuts the packet into TCP segments with headers of their own, and fills in their checksums (TSO).
    TcpSegments {
        /// Bytes of the TCP header, options included: 20 to 60.
        len: u8,
        /// Bytes of payload in each segment but the last. With the headers 65,535 at most.
        payload: NonZeroU16,
    },
}

/// Bytes of a VLAN tag.
const TAG: u8 = 4;

/// Why a request was refused. The packet then has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffloadError {
    /// A header has an impossible length.
    #[error(
        "invalid header length: IPv4 and TCP headers have 20 to 60 bytes in steps of 4, IPv6 headers 40 to 511, and at most 127 bytes come before the IP header"
    )]
    Length,
    /// The headers are not all in the first segment.
    #[error(
        "the headers end at byte {end} and the first segment has {len}: linearize the packet, or correct the lengths"
    )]
    Outside {
        /// Bytes of all headers together.
        end: usize,
        /// Bytes of the first segment.
        len: usize,
    },
    /// The first segment's bytes have other owners, so drivers must not write there.
    #[error(
        "the first segment is shared, and the driver would write into it: put headers of its own in front, or copy the packet"
    )]
    Shared,
    /// The buffer is too small: it ends less than 60 bytes after the start of the IPv4 header,
    /// which drivers may read; or a buffer of its size has no room for the headers after 128 bytes
    /// of headroom, where drivers may copy them.
    #[error("the mbuf's buffer is too small: use a mempool with a larger data_room")]
    Room,
    /// Headers or payload too large for TCP segmentation.
    #[error(
        "TCP segments have at most 128 bytes of headers, and 65,535 with their payload, not {headers} and {payload}"
    )]
    Segments {
        /// Bytes of all headers together.
        headers: usize,
        /// Bytes of payload.
        payload: u16,
    },
}

impl IpOffload {
    fn len(self) -> usize {
        match self {
            Self::Ipv4 { len, .. } => len.into(),
            Self::Ipv6 { len } => len.into(),
        }
    }

    fn is_valid(self) -> bool {
        match self {
            Self::Ipv4 { len, .. } => is_header_of_words(len),
            Self::Ipv6 { len } => (40..1 << layout::MBUF_L3_LEN_BITS).contains(&len),
        }
    }

    fn flags(self) -> u64 {
        match self {
            Self::Ipv4 { checksum: true, .. } => {
                layout::MBUF_F_TX_IPV4 | layout::MBUF_F_TX_IP_CKSUM
            }
            Self::Ipv4 { checksum: false, .. } => layout::MBUF_F_TX_IPV4,
            Self::Ipv6 { .. } => layout::MBUF_F_TX_IPV6,
        }
    }
}

impl L4Offload {
    fn len(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Udp => 8,
            Self::Sctp => 12,
            Self::Tcp { len } | Self::TcpSegments { len, .. } => len.into(),
        }
    }

    fn payload(self) -> u16 {
        match self {
            Self::TcpSegments { payload, .. } => payload.get(),
            _ => 0,
        }
    }

    fn is_valid(self) -> bool {
        match self {
            Self::Tcp { len } | Self::TcpSegments { len, .. } => is_header_of_words(len),
            _ => true,
        }
    }

    /// Returns the flags of a packet whose IP header has these.
    fn flags(self, ip: u64) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Udp => layout::MBUF_F_TX_UDP_CKSUM,
            Self::Sctp => layout::MBUF_F_TX_SCTP_CKSUM,
            Self::Tcp { .. } => layout::MBUF_F_TX_TCP_CKSUM,
            // Each segment of IPv4 has a checksum of its own.
            Self::TcpSegments { .. } if ip & layout::MBUF_F_TX_IPV4 != 0 => {
                layout::MBUF_F_TX_TCP_SEG | layout::MBUF_F_TX_TCP_CKSUM | layout::MBUF_F_TX_IP_CKSUM
            }
            Self::TcpSegments { .. } => layout::MBUF_F_TX_TCP_SEG | layout::MBUF_F_TX_TCP_CKSUM,
        }
    }
}

/// Returns true if IPv4 or TCP has headers of this length.
fn is_header_of_words(len: u8) -> bool {
    (20..=60).contains(&len) && len % 4 == 0
}

impl TxOffload {
    /// Requests the checksums of a packet's IPv4 header and its UDP or TCP header. For a fragment
    /// or another transport protocol (ICMPv6, SCTP) it requests only IPv4's, with
    /// [`L4Offload::Nothing`]. If [`Layers::inner`] found the layers inside a tunnel, the request
    /// is for the inner packet; the outer headers are left as they are. `None` without an IP
    /// header, or if headers are longer than a request can say.
    ///
    /// ```
    /// use dpdk::{Mbuf, TxOffload};
    /// use packet::layers::Layers;
    ///
    /// /// Has the device fill in what checksums it can; false where it was not asked for any.
    /// fn checksums(mbuf: &mut Mbuf<'_>) -> bool {
    ///     let layers = Layers::of_first(mbuf.data(), mbuf.packet_len());
    ///     let offload = layers.ok().and_then(|layers| TxOffload::of(&layers));
    ///     offload.is_some_and(|offload| mbuf.request(&offload).is_ok())
    /// }
    /// ```
    #[cfg(feature = "packet")]
    #[must_use]
    pub fn of(layers: &Layers) -> Option<Self> {
        let ip = if layers.is_ipv4() {
            IpOffload::Ipv4 { len: u8::try_from(layers.l3_len).ok()?, checksum: true }
        } else if layers.is_ipv6() {
            IpOffload::Ipv6 { len: u16::try_from(layers.l3_len).ok()? }
        } else {
            return None;
        };
        let l4 = match layers.protocol {
            _ if !layers.has_pseudo_header() => L4Offload::Nothing,
            Some(ipv4::PROTOCOL_UDP) => L4Offload::Udp,
            Some(ipv4::PROTOCOL_TCP) => L4Offload::Tcp { len: u8::try_from(layers.l4_len).ok()? },
            _ => L4Offload::Nothing,
        };
        let offload = Self { l2_len: u8::try_from(layers.l3()).ok()?, ip, l4 };
        (offload.check_limits().is_ok() && ip.is_valid() && l4.is_valid()).then_some(offload)
    }

    /// Bytes of all headers together.
    #[must_use]
    pub fn headers_len(&self) -> usize {
        usize::from(self.l2_len) + self.ip.len() + self.l4.len()
    }

    fn flags(&self) -> u64 {
        let ip = self.ip.flags();
        ip | self.l4.flags(ip)
    }

    /// `rte_mbuf_tx_offload`.
    fn lengths(&self) -> u64 {
        u64::from(self.l2_len) << layout::MBUF_L2_LEN_SHIFT
            | (self.ip.len() as u64) << layout::MBUF_L3_LEN_SHIFT
            | (self.l4.len() as u64) << layout::MBUF_L4_LEN_SHIFT
            | u64::from(self.l4.payload()) << layout::MBUF_TSO_SEGSZ_SHIFT
    }

    /// Checks that DPDK's fields and net_tap's buffers have room for the lengths.
    fn check_limits(&self) -> Result<(), OffloadError> {
        if u32::from(self.l2_len) >= 1 << layout::MBUF_L2_LEN_BITS {
            return Err(OffloadError::Length);
        }
        let (headers, payload) = (self.headers_len(), self.l4.payload());
        if payload > 0
            && (headers > LONGEST_SEGMENT_HEADERS
                || headers + usize::from(payload) > u16::MAX.into())
        {
            return Err(OffloadError::Segments { headers, payload });
        }
        Ok(())
    }

    /// Returns the request after a driver has put a VLAN tag into the packet itself
    /// (`rte_vlan_insert`).
    pub(crate) fn with_tag(self) -> Result<Self, OffloadError> {
        let l2_len = self.l2_len.checked_add(TAG).ok_or(OffloadError::Length)?;
        Ok(Self { l2_len, ..self })
    }

    /// Returns the request that these stand for.
    fn from_raw(flags: u64, lengths: u64) -> Option<Self> {
        let part = |shift: u32, bits: u32| (lengths >> shift & ((1 << bits) - 1)) as u16;
        let l3 = part(layout::MBUF_L3_LEN_SHIFT, layout::MBUF_L3_LEN_BITS);
        let len = part(layout::MBUF_L4_LEN_SHIFT, layout::MBUF_L4_LEN_BITS) as u8;
        let ip = if flags & layout::MBUF_F_TX_IPV4 != 0 {
            let checksum = flags & layout::MBUF_F_TX_IP_CKSUM != 0;
            IpOffload::Ipv4 { len: u8::try_from(l3).ok()?, checksum }
        } else if flags & layout::MBUF_F_TX_IPV6 != 0 {
            IpOffload::Ipv6 { len: l3 }
        } else {
            return None;
        };
        // The kinds of checksums are numbers in a field of two bits; UDP's has both bits set.
        let l4 = match flags & layout::MBUF_F_TX_UDP_CKSUM {
            _ if flags & layout::MBUF_F_TX_TCP_SEG != 0 => L4Offload::TcpSegments {
                len,
                payload: NonZeroU16::new(part(layout::MBUF_TSO_SEGSZ_SHIFT, 16))?,
            },
            layout::MBUF_F_TX_TCP_CKSUM => L4Offload::Tcp { len },
            layout::MBUF_F_TX_SCTP_CKSUM => L4Offload::Sctp,
            layout::MBUF_F_TX_UDP_CKSUM => L4Offload::Udp,
            _ => L4Offload::Nothing,
        };
        let l2_len = part(layout::MBUF_L2_LEN_SHIFT, layout::MBUF_L2_LEN_BITS) as u8;
        Some(Self { l2_len, ip, l4 })
    }
}

impl Mbuf<'_> {
    /// Asks the device that will send the packet for checksums or TCP segments (`RTE_MBUF_F_TX_...`
    /// and the lengths in `tx_offload`). Any earlier request is withdrawn first.
    ///
    /// # Errors
    /// See [`OffloadError`].
    pub fn request(&mut self, offload: &TxOffload) -> Result<(), OffloadError> {
        self.withdraw_request();
        self.check(offload)?;
        // SAFETY: the mbuf is this owner's alone, and the headers lie in its data (see `REQUESTS`).
        unsafe {
            let flags: u64 = field(self.as_ptr(), layout::MBUF_OL_FLAGS);
            // `tx_offload` holds the segment size of received packets (LRO) in the same bits as
            // that of packets to be sent.
            let flags = flags & !layout::MBUF_F_RX_LRO | offload.flags();
            set_field(self.as_ptr(), layout::MBUF_OL_FLAGS, flags);
            set_field(self.as_ptr(), layout::MBUF_TX_OFFLOAD, offload.lengths());
        }
        Ok(())
    }

    fn check(&self, offload: &TxOffload) -> Result<(), OffloadError> {
        if !offload.ip.is_valid() || !offload.l4.is_valid() {
            return Err(OffloadError::Length);
        }
        offload.check_limits()?;
        let (end, len) = (offload.headers_len(), self.data_len());
        if end > len {
            return Err(OffloadError::Outside { end, len });
        }
        if !self.is_unshared() {
            return Err(OffloadError::Shared);
        }
        // SAFETY: the mbuf is valid.
        let room: u16 = unsafe { field(self.as_ptr(), layout::MBUF_BUF_LEN) };
        let ipv4 = matches!(offload.ip, IpOffload::Ipv4 { .. });
        if ipv4 && self.headroom() + usize::from(offload.l2_len) + LONGEST_IPV4 > room.into() {
            return Err(OffloadError::Room);
        }
        let tag = if self.inserted_vlan().is_some() { usize::from(TAG) } else { 0 };
        if !self.has_copies_of(end + tag) {
            return Err(OffloadError::Room);
        }
        match self.inserted_vlan() {
            Some(_) => offload.with_tag()?.check_limits(),
            None => Ok(()),
        }
    }

    /// The request made by [`request`](Self::request) and not withdrawn. Devices that pass mbufs on
    /// unchanged (net_ring) leave it in the packet.
    #[must_use]
    pub fn requested(&self) -> Option<TxOffload> {
        // SAFETY: the mbuf is valid.
        let (flags, lengths) = unsafe {
            (
                field::<u64>(self.as_ptr(), layout::MBUF_OL_FLAGS),
                field::<u64>(self.as_ptr(), layout::MBUF_TX_OFFLOAD),
            )
        };
        TxOffload::from_raw(flags & REQUESTS, lengths)
    }

    /// Withdraws the request.
    #[inline]
    pub fn withdraw_request(&mut self) {
        // SAFETY: the first mbuf is this owner's.
        unsafe { crate::fast::mbuf::withdraw_requests(self.as_ptr()) }
    }

    /// Asks the device to insert a VLAN tag after the MAC addresses when it sends the packet
    /// (`RTE_MBUF_F_TX_VLAN`). The tag is in CPU byte order, as [`vlan`](Self::vlan) returns it;
    /// `None` withdraws the request. Drivers that do this in software do not send packets whose
    /// first segment is shared or has no headroom: net_tap refuses them, net_af_packet and
    /// net_vhost free them.
    ///
    /// The tag counts as one of the headers of a [request](Self::request) and its limits: a request
    /// that has no room for 4 more bytes is withdrawn.
    #[inline]
    pub fn insert_vlan(&mut self, tag: Option<u16>) {
        if tag.is_some() {
            self.withdraw_request_without_room();
        }
        // SAFETY: the first mbuf is this owner's.
        unsafe {
            let flags: u64 = field(self.as_ptr(), layout::MBUF_OL_FLAGS);
            let flags = match tag {
                Some(tag) => {
                    set_field(self.as_ptr(), layout::MBUF_VLAN_TCI, tag);
                    flags | layout::MBUF_F_TX_VLAN
                }
                None => flags & !layout::MBUF_F_TX_VLAN,
            };
            set_field(self.as_ptr(), layout::MBUF_OL_FLAGS, flags);
        }
    }

    /// Returns true if another mbuf of the pool has room for headers of this length: net_tap in
    /// DPDK releases newer than 22.11 copies them into one, and checks only the first.
    fn has_copies_of(&self, headers: usize) -> bool {
        // SAFETY: the mbuf is valid.
        let room: u16 = unsafe { field(self.as_ptr(), layout::MBUF_BUF_LEN) };
        usize::from(layout::PKTMBUF_HEADROOM) + headers <= room.into()
    }

    /// Drivers that insert a tag lengthen the bytes before the IP header, in a field of 7 bits,
    /// without a check.
    #[inline]
    fn withdraw_request_without_room(&mut self) {
        let fits = |offload: TxOffload| {
            offload
                .with_tag()
                .is_ok_and(|it| it.check_limits().is_ok() && self.has_copies_of(it.headers_len()))
        };
        if self.requested().is_some_and(|offload| !fits(offload)) {
            self.withdraw_request();
        }
    }

    /// The VLAN tag that a device is to insert into the packet.
    #[inline]
    #[must_use]
    pub fn inserted_vlan(&self) -> Option<u16> {
        // SAFETY: the mbuf is valid.
        unsafe {
            let flags: u64 = field(self.as_ptr(), layout::MBUF_OL_FLAGS);
            (flags & layout::MBUF_F_TX_VLAN != 0)
                .then(|| field(self.as_ptr(), layout::MBUF_VLAN_TCI))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        let payload = NonZeroU16::new(1460).unwrap_or(NonZeroU16::MIN);
        for ip in [
            IpOffload::Ipv4 { len: 20, checksum: true },
            IpOffload::Ipv4 { len: 60, checksum: false },
            IpOffload::Ipv6 { len: 511 },
        ] {
            for l4 in [
                L4Offload::Nothing,
                L4Offload::Udp,
                L4Offload::Sctp,
                L4Offload::Tcp { len: 60 },
                L4Offload::TcpSegments { len: 20, payload },
            ] {
                let mut offload = TxOffload { l2_len: 127, ip, l4 };
                let read = TxOffload::from_raw(offload.flags(), offload.lengths());
                if let (IpOffload::Ipv4 { checksum, .. }, L4Offload::TcpSegments { .. }) =
                    (&mut offload.ip, l4)
                {
                    *checksum = true;
                }
                assert_eq!(read, Some(offload));
            }
        }
        assert_eq!(TxOffload::from_raw(0, u64::MAX), None);
    }
}
