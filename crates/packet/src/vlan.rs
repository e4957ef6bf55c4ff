// SPDX-License-Identifier: BSD-3-Clause
//! VLAN tags (IEEE 802.1Q, 802.1ad; `rte_vlan_hdr`): 4 bytes behind the Ethernet addresses' EtherType, which says that a tag
//! follows. A stack of tags (QinQ) is one behind the other, the provider's first.

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::view::fixed_header;

/// Length of a tag in bytes.
pub const LEN: usize = 4;
/// EtherType of a customer's tag (802.1Q).
pub const ETHERTYPE_CUSTOMER: u16 = 0x8100;
/// EtherType of a provider's tag (802.1ad, QinQ).
pub const ETHERTYPE_PROVIDER: u16 = 0x88a8;
/// EtherTypes of provider's tags from before 802.1ad, which switches still send.
pub const ETHERTYPES_OLD: [u16; 2] = [0x9100, 0x9200];
/// Largest VLAN id; 0 is no VLAN, only a priority, and 4095 is reserved.
pub const MAX_ID: u16 = 0xfff;

/// Whether a tag follows an EtherType.
#[inline]
pub const fn is_tag(ether_type: u16) -> bool {
    matches!(ether_type, ETHERTYPE_CUSTOMER | ETHERTYPE_PROVIDER)
        || ether_type == ETHERTYPES_OLD[0]
        || ether_type == ETHERTYPES_OLD[1]
}

/// A view of a VLAN tag: what is behind the EtherType that announces it.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Vlan {
    control: U16,
    ether_type: U16,
}

fixed_header!(Vlan);

impl Vlan {
    /// VLAN id, 0 to [`MAX_ID`].
    #[inline]
    pub fn id(&self) -> u16 {
        self.control.get() & MAX_ID
    }

    /// Priority (PCP), 0 to 7.
    #[inline]
    pub fn priority(&self) -> u8 {
        (self.control.get() >> 13) as u8
    }

    /// Whether the frame may be dropped before others (DEI).
    #[inline]
    pub fn drop_eligible(&self) -> bool {
        self.control.get() & 0x1000 != 0
    }

    /// Priority, DEI and id as drivers have them (`vlan_tci` of an mbuf).
    #[inline]
    pub fn control(&self) -> u16 {
        self.control.get()
    }

    /// EtherType of what follows; another tag's in a stack.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        self.ether_type.get()
    }

    /// Sets the VLAN id; bits above [`MAX_ID`] are ignored.
    #[inline]
    pub fn set_id(&mut self, id: u16) {
        self.control.set(self.control.get() & !MAX_ID | id & MAX_ID);
    }

    /// Sets the priority; bits above 7 are ignored.
    #[inline]
    pub fn set_priority(&mut self, priority: u8) {
        self.control.set(self.control.get() & 0x1fff | u16::from(priority) << 13);
    }

    /// Sets whether the frame may be dropped before others.
    #[inline]
    pub fn set_drop_eligible(&mut self, may_be: bool) {
        self.control.set(self.control.get() & !0x1000 | u16::from(may_be) << 12);
    }

    /// Sets priority, DEI and id at once.
    #[inline]
    pub fn set_control(&mut self, control: u16) {
        self.control.set(control);
    }

    /// Sets the EtherType of what follows.
    #[inline]
    pub fn set_ether_type(&mut self, ether_type: u16) {
        self.ether_type.set(ether_type);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut bytes = [0xff, 0xff, 0x08, 0x00, 9];
        let (tag, rest) = Vlan::split_mut(&mut bytes).unwrap();
        assert_eq!(rest, [9]);
        assert_eq!((tag.priority(), tag.drop_eligible(), tag.id()), (7, true, MAX_ID));
        tag.set_id(0xf123);
        assert_eq!((tag.priority(), tag.drop_eligible(), tag.id()), (7, true, 0x123));
        tag.set_drop_eligible(false);
        tag.set_priority(5);
        assert_eq!(tag.control(), 0xa123);
        tag.set_ether_type(ETHERTYPE_PROVIDER);
        assert_eq!(bytes, [0xa1, 0x23, 0x88, 0xa8, 9]);
    }

    #[test]
    fn four_ethertypes_announce_tags() {
        let tags: Vec<u16> = (0..=u16::MAX).filter(|ether_type| is_tag(*ether_type)).collect();
        assert_eq!(tags, [0x8100, 0x88a8, 0x9100, 0x9200]);
    }
}
