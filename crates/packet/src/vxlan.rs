// SPDX-License-Identifier: BSD-3-Clause
//! The VXLAN header (RFC 7348; `rte_vxlan_hdr`): 8 bytes between UDP and an Ethernet frame.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::view::fixed_header;

/// Length of the header in bytes.
pub const LEN: usize = 8;
/// UDP's destination port.
pub const PORT: u16 = 4789;
/// Largest network identifier.
pub const MAX_VNI: u32 = 0xff_ffff;

/// The flag that says that there is a network identifier.
const HAS_VNI: u8 = 0x08;

/// A view of a VXLAN header.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Vxlan {
    flags: u8,
    reserved: [u8; 3],
    vni: [u8; 3],
    reserved_too: u8,
}

fixed_header!(Vxlan);

impl Vxlan {
    /// Whether there is a network identifier, without which the packet is to be dropped.
    #[inline]
    pub fn has_vni(&self) -> bool {
        self.flags & HAS_VNI != 0
    }

    /// Network identifier, 0 to [`MAX_VNI`].
    #[inline]
    pub fn vni(&self) -> u32 {
        let [a, b, c] = self.vni;
        u32::from_be_bytes([0, a, b, c])
    }

    /// Sets the network identifier, whose upper eight bits are ignored, and says that it is there.
    #[inline]
    pub fn set_vni(&mut self, vni: u32) {
        let [_, a, b, c] = vni.to_be_bytes();
        self.vni = [a, b, c];
        self.flags |= HAS_VNI;
    }

    /// Makes the header one with this network identifier and zeros, whatever the bytes were.
    #[inline]
    pub fn reset(&mut self, vni: u32) {
        (self.flags, self.reserved, self.reserved_too) = (0, [0; 3], 0);
        self.set_vni(vni);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identifier_has_24_bits() {
        let mut bytes = [0xf7; 9];
        let (vxlan, rest) = Vxlan::split_mut(&mut bytes).unwrap();
        assert!(!vxlan.has_vni());
        assert_eq!((vxlan.vni(), rest.len()), (0xf7_f7f7, 1));
        vxlan.set_vni(0xff12_3456);
        assert!(vxlan.has_vni());
        assert_eq!(vxlan.vni(), 0x12_3456);
        assert_eq!(bytes, [0xff, 0xf7, 0xf7, 0xf7, 0x12, 0x34, 0x56, 0xf7, 0xf7]);
        Vxlan::split_mut(&mut bytes).unwrap().0.reset(7);
        assert_eq!(bytes, [8, 0, 0, 0, 0, 0, 7, 0, 0xf7]);
    }
}
