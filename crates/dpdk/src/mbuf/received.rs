// SPDX-License-Identifier: BSD-3-Clause
//! What the device reports about a packet besides its type: checksums, hash, mark, VLAN tags.
//!
//! A device reports only what its port was configured for. In a packet that was allocated,
//! everything is `None` or unknown. The values stay with a packet that goes through a
//! [`SharedMbuf`](crate::SharedMbuf), a clone or a copy.

use dpdk_sys::layout;

use super::Mbuf;
use crate::fast::mbuf::field;

/// The device's result for a checksum of a received packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Checksum {
    /// The device did not check it.
    Unknown,
    /// It is right.
    Good,
    /// It is wrong.
    Bad,
    /// The checksum in the packet is not correct, but the packet is intact: for example, a virtual
    /// machine leaves checksums to the device that sends.
    Absent,
}

impl Checksum {
    #[inline]
    fn of(flags: u64, good: u64, bad: u64) -> Self {
        match (flags & good != 0, flags & bad != 0) {
            (false, false) => Self::Unknown,
            (true, false) => Self::Good,
            (false, true) => Self::Bad,
            (true, true) => Self::Absent,
        }
    }
}

impl Mbuf<'_> {
    #[inline]
    fn flags(&self) -> u64 {
        // SAFETY: the mbuf is valid.
        unsafe { field(self.as_ptr(), layout::MBUF_OL_FLAGS) }
    }

    /// State of the IPv4 header's checksum; of the inner header's in a tunnel that the device knows.
    #[inline]
    #[must_use]
    pub fn ip_checksum(&self) -> Checksum {
        let (good, bad) = (layout::MBUF_F_RX_IP_CKSUM_GOOD, layout::MBUF_F_RX_IP_CKSUM_BAD);
        Checksum::of(self.flags(), good, bad)
    }

    /// The result for TCP, UDP or SCTP; for the inner packet in a tunnel that the device knows.
    #[inline]
    #[must_use]
    pub fn l4_checksum(&self) -> Checksum {
        let (good, bad) = (layout::MBUF_F_RX_L4_CKSUM_GOOD, layout::MBUF_F_RX_L4_CKSUM_BAD);
        Checksum::of(self.flags(), good, bad)
    }

    /// Returns true if the device has found the checksum of the outer IPv4 header wrong. Devices
    /// report no more than that.
    #[inline]
    #[must_use]
    pub fn outer_ip_checksum_is_bad(&self) -> bool {
        self.flags() & layout::MBUF_F_RX_OUTER_IP_CKSUM_BAD != 0
    }

    /// State of the checksum of a tunnel's outer UDP header; [`Checksum::Absent`] where there is none to check
    /// (`RTE_MBUF_F_RX_OUTER_L4_CKSUM_INVALID`).
    #[inline]
    #[must_use]
    pub fn outer_l4_checksum(&self) -> Checksum {
        let flags = (layout::MBUF_F_RX_OUTER_L4_CKSUM_GOOD, layout::MBUF_F_RX_OUTER_L4_CKSUM_BAD);
        Checksum::of(self.flags(), flags.0, flags.1)
    }

    /// The RSS hash, by which the device has chosen the queue: equal for all packets of a
    /// connection.
    #[inline]
    #[must_use]
    pub fn rss_hash(&self) -> Option<u32> {
        let known = self.flags() & layout::MBUF_F_RX_RSS_HASH != 0;
        // SAFETY: the mbuf is valid.
        known.then(|| unsafe { field(self.as_ptr(), layout::MBUF_HASH_RSS) })
    }

    /// The mark of the flow rule that matched the packet (`rte_flow`'s `MARK`).
    #[inline]
    #[must_use]
    pub fn mark(&self) -> Option<u32> {
        let both = layout::MBUF_F_RX_FDIR | layout::MBUF_F_RX_FDIR_ID;
        let known = self.flags() & both == both;
        // SAFETY: the mbuf is valid.
        known.then(|| unsafe { field(self.as_ptr(), layout::MBUF_HASH_FDIR_HI) })
    }

    /// Returns true if the packet matched a flow rule that marks (see [`mark`](Self::mark)) or
    /// flags.
    #[inline]
    #[must_use]
    pub fn is_flagged(&self) -> bool {
        self.flags() & layout::MBUF_F_RX_FDIR != 0
    }

    /// The VLAN tag that the device has read, in CPU byte order: the priority in the three
    /// uppermost bits, the VLAN ID in the lowest twelve. If there are two tags, it is the inner
    /// one.
    #[inline]
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        let known = self.flags() & layout::MBUF_F_RX_VLAN != 0;
        // SAFETY: the mbuf is valid.
        known.then(|| unsafe { field(self.as_ptr(), layout::MBUF_VLAN_TCI) })
    }

    /// The outer one of two VLAN tags (QinQ).
    #[inline]
    #[must_use]
    pub fn outer_vlan(&self) -> Option<u16> {
        let known = self.flags() & layout::MBUF_F_RX_QINQ != 0;
        // SAFETY: the mbuf is valid.
        known.then(|| unsafe { field(self.as_ptr(), layout::MBUF_VLAN_TCI_OUTER) })
    }

    /// The number of VLAN tags that the device has removed from the packet's bytes: 0, 1 or 2. If
    /// it removed one of two tags, it is the outer one.
    #[inline]
    #[must_use]
    pub fn stripped_vlans(&self) -> usize {
        let flags = self.flags();
        let vlan = flags & layout::MBUF_F_RX_VLAN_STRIPPED != 0;
        let qinq = flags & layout::MBUF_F_RX_QINQ_STRIPPED != 0;
        usize::from(vlan) + usize::from(qinq)
    }

    /// Bytes of TCP payload in each of the segments that the device has merged into this packet
    /// (LRO); `None` for a packet that was not merged.
    #[inline]
    #[must_use]
    pub fn coalesced_segment_size(&self) -> Option<u16> {
        let known = self.flags() & layout::MBUF_F_RX_LRO != 0;
        // SAFETY: the mbuf is valid.
        let lengths: u64 = unsafe { field(self.as_ptr(), layout::MBUF_TX_OFFLOAD) };
        known.then_some((lengths >> layout::MBUF_TSO_SEGSZ_SHIFT) as u16)
    }
}
