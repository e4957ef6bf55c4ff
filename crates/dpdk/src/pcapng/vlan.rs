// SPDX-License-Identifier: BSD-3-Clause
//! VLAN tags that are in an mbuf's fields and not among its bytes.

use dpdk_sys::layout;

use super::Direction;
use crate::fast::mbuf::field;
use crate::mbuf::Mbuf;

/// Bytes before a frame's first tag: both addresses.
const ADDRESSES: usize = 12;

/// The tags of a packet, to be written after its MAC addresses, the outer one first.
pub(super) struct Tags {
    bytes: [u8; 8],
    len: usize,
}

impl Tags {
    /// The tags that the device removed from a received packet (`RTE_MBUF_F_RX_VLAN_STRIPPED`,
    /// `_QINQ_STRIPPED`), or is to insert into a sent one (`RTE_MBUF_F_TX_VLAN`; with `_QINQ`
    /// both).
    #[inline]
    pub(super) fn of(packet: &Mbuf<'_>, direction: Direction) -> Self {
        let mut tags = Self { bytes: [0; 8], len: 0 };
        // SAFETY: the mbuf is valid and has these fields.
        let (flags, tci, outer_tci) = unsafe {
            (
                field::<u64>(packet.as_ptr(), layout::MBUF_OL_FLAGS),
                field::<u16>(packet.as_ptr(), layout::MBUF_VLAN_TCI),
                field::<u16>(packet.as_ptr(), layout::MBUF_VLAN_TCI_OUTER),
            )
        };
        let (outer, inner) = match direction {
            // A device may remove the outer tag alone: both are then in the fields, and the inner
            // one also in the bytes.
            Direction::Received => (
                flags & layout::MBUF_F_RX_QINQ_STRIPPED != 0,
                flags & layout::MBUF_F_RX_VLAN_STRIPPED != 0,
            ),
            Direction::Sent => {
                let both = flags & dpdk_sys::RTE_MBUF_F_TX_QINQ != 0;
                (both, both || flags & layout::MBUF_F_TX_VLAN != 0)
            }
        };
        if !(outer || inner) || packet.data().len() < ADDRESSES {
            return tags;
        }
        if outer {
            tags.push(0x88a8, outer_tci);
        }
        if inner {
            tags.push(0x8100, tci);
        }
        tags
    }

    fn push(&mut self, ethertype: u16, tci: u16) {
        let ([a, b], [c, d]) = (ethertype.to_be_bytes(), tci.to_be_bytes());
        self.bytes[self.len..self.len + 4].copy_from_slice(&[a, b, c, d]);
        self.len += 4;
    }

    /// The number of the packet's bytes before the tags; 0 if there are none.
    #[inline]
    pub(super) fn offset(&self) -> usize {
        if self.len > 0 { ADDRESSES } else { 0 }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
