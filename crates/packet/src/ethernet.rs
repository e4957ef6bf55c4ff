// SPDX-License-Identifier: BSD-3-Clause
//! The Ethernet II header: 14 bytes, no VLAN tag.

use crate::MacAddr;

/// Length of the header in bytes.
pub const LEN: usize = 14;
/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;

/// A read-only view of an Ethernet header.
#[derive(Clone, Copy, Debug)]
pub struct Ethernet<'a>(&'a [u8; LEN]);

impl<'a> Ethernet<'a> {
    /// Splits a frame into its header and what follows; `None` when it is shorter than a header.
    #[inline]
    pub fn split(frame: &'a [u8]) -> Option<(Self, &'a [u8])> {
        frame.split_first_chunk().map(|(head, rest)| (Ethernet(head), rest))
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> MacAddr {
        let [a, b, c, d, e, f, ..] = *self.0;
        MacAddr([a, b, c, d, e, f])
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> MacAddr {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.0;
        MacAddr([a, b, c, d, e, f])
    }

    /// EtherType, in host order.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16::from_be_bytes([self.0[12], self.0[13]])
    }
}

/// A writable view of an Ethernet header.
///
/// ```
/// use packet::{MacAddr, ethernet::EthernetMut};
/// let mut frame = [0u8; 60];
/// frame[5] = 2;
/// let (mut ethernet, _) = EthernetMut::split(&mut frame).ok_or("short frame")?;
/// ethernet.swap_addresses();
/// assert_eq!(ethernet.as_view().source(), MacAddr([0, 0, 0, 0, 0, 2]));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct EthernetMut<'a>(&'a mut [u8; LEN]);

impl<'a> EthernetMut<'a> {
    /// Splits a frame into its header and what follows; `None` when it is shorter than a header.
    #[inline]
    pub fn split(frame: &'a mut [u8]) -> Option<(Self, &'a mut [u8])> {
        frame.split_first_chunk_mut().map(|(head, rest)| (EthernetMut(head), rest))
    }

    /// The same header, read-only.
    #[inline]
    pub fn as_view(&self) -> Ethernet<'_> {
        Ethernet(self.0)
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_destination(&mut self, mac: MacAddr) {
        self.0[..6].copy_from_slice(&mac.0);
    }

    /// Sets the source address.
    #[inline]
    pub fn set_source(&mut self, mac: MacAddr) {
        self.0[6..12].copy_from_slice(&mac.0);
    }

    /// Sets both addresses, destination first.
    #[inline]
    pub fn set_addresses(&mut self, destination: MacAddr, source: MacAddr) {
        self.set_destination(destination);
        self.set_source(source);
    }

    /// Swaps destination and source.
    #[inline]
    pub fn swap_addresses(&mut self) {
        let view = self.as_view();
        let (destination, source) = (view.destination(), view.source());
        self.set_addresses(source, destination);
    }

    /// Sets the EtherType, given in host order.
    #[inline]
    pub fn set_ether_type(&mut self, ether_type: u16) {
        self.0[12..].copy_from_slice(&ether_type.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_frame_has_no_header() {
        assert!(Ethernet::split(&[0; 13]).is_none());
        assert!(EthernetMut::split(&mut [0; 13]).is_none());
    }

    #[test]
    fn writes_land_where_reads_look() {
        let mut frame = [0u8; 15];
        frame[14] = 0xaa;
        let (mut header, rest) = EthernetMut::split(&mut frame).unwrap();
        assert_eq!(rest, [0xaa]);
        header.set_addresses(MacAddr::from_u64(1), MacAddr::from_u64(2));
        header.set_ether_type(ETHERTYPE_IPV4);
        header.swap_addresses();
        let (view, _) = Ethernet::split(&frame).unwrap();
        assert_eq!(view.destination().to_u64(), 2);
        assert_eq!(view.source().to_u64(), 1);
        assert_eq!(view.ether_type(), ETHERTYPE_IPV4);
    }
}
