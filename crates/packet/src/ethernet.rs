// SPDX-License-Identifier: BSD-3-Clause
//! The Ethernet II header (`rte_ether_hdr`): 14 bytes; VLAN tags follow it ([`crate::vlan`]).

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::MacAddr;
use crate::view::fixed_header;

/// Length of the header in bytes.
pub const LEN: usize = 14;
/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of an Ethernet frame in a tunnel ("Transparent Ethernet Bridging").
pub const ETHERTYPE_BRIDGING: u16 = 0x6558;

/// A view of an Ethernet header.
///
/// ```
/// use packet::{MacAddr, ethernet::Ethernet};
/// let mut frame = [0u8; 60];
/// frame[5] = 2;
/// let (ethernet, _) = Ethernet::split_mut(&mut frame)?;
/// ethernet.swap_addresses();
/// assert_eq!(ethernet.source(), MacAddr([0, 0, 0, 0, 0, 2]));
/// # Ok::<(), packet::Malformed>(())
/// ```
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ethernet {
    destination: MacAddr,
    source: MacAddr,
    ether_type: U16,
}

fixed_header!(Ethernet);

impl Ethernet {
    /// Destination address.
    #[inline]
    pub fn destination(&self) -> MacAddr {
        self.destination
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> MacAddr {
        self.source
    }

    /// EtherType of what follows; below 0x0600 the length of an 802.3 frame.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        self.ether_type.get()
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_destination(&mut self, mac: MacAddr) {
        self.destination = mac;
    }

    /// Sets the source address.
    #[inline]
    pub fn set_source(&mut self, mac: MacAddr) {
        self.source = mac;
    }

    /// Sets both addresses, destination first.
    #[inline]
    pub fn set_addresses(&mut self, destination: MacAddr, source: MacAddr) {
        (self.destination, self.source) = (destination, source);
    }

    /// Swaps destination and source.
    #[inline]
    pub fn swap_addresses(&mut self) {
        self.set_addresses(self.source, self.destination);
    }

    /// Sets the EtherType.
    #[inline]
    pub fn set_ether_type(&mut self, ether_type: u16) {
        self.ether_type.set(ether_type);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layer, Malformed};

    #[test]
    fn a_short_frame_has_no_header() {
        let short = Malformed::Short(Layer::Ethernet);
        assert_eq!(Ethernet::split(&[0; 13]).unwrap_err(), short);
        assert_eq!(Ethernet::split_mut(&mut [0; 13]).unwrap_err(), short);
        assert!(short.to_string().starts_with("Ethernet: the bytes end within the header; "));
    }

    #[test]
    fn writes_land_where_reads_look() {
        let mut frame = [0u8; 15];
        frame[14] = 0xaa;
        let (header, rest) = Ethernet::split_mut(&mut frame).unwrap();
        assert_eq!(rest, [0xaa]);
        header.set_addresses(MacAddr::from_u64(1), MacAddr::from_u64(2));
        header.set_ether_type(ETHERTYPE_IPV4);
        header.swap_addresses();
        assert_eq!(frame, [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 8, 0, 0xaa]);
        let (view, _) = Ethernet::split(&frame).unwrap();
        assert_eq!(view.destination().to_u64(), 2);
        assert_eq!(view.source().to_u64(), 1);
        assert_eq!(view.ether_type(), ETHERTYPE_IPV4);
    }
}
