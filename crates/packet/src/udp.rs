// SPDX-License-Identifier: BSD-3-Clause
//! The UDP header (RFC 768; `rte_udp_hdr`): 8 bytes.
//!
//! A checksum of 0 says that the sender made none: it stays 0 whatever changes, and one that comes out as 0 is
//! written as 0xffff. Over IPv6 only tunnels may do without (RFC 6935).

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Change;
use crate::ports::ports;
use crate::pseudo::PseudoHeader;
use crate::view::{Layer, Malformed, fixed_header};

/// Length of the header in bytes.
pub const LEN: usize = 8;

/// A view of a UDP header.
///
/// ```
/// use packet::{ipv4::Ipv4, udp::Udp};
/// # let mut packet = [0u8; 30];
/// # (packet[0], packet[3], packet[9]) = (0x45, 30, 17);
/// # packet[25] = 10;
/// // What a NAT does: another address and port, and all checksums right without a look at the payload.
/// let (ip, rest) = Ipv4::split_mut(&mut packet)?;
/// let (udp, _) = Udp::split_mut(rest)?;
/// let change = ip.update_destination([10, 0, 0, 2].into());
/// udp.translate_destination(change, 53);
/// # Ok::<(), packet::Malformed>(())
/// ```
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Udp {
    source: U16,
    destination: U16,
    length: U16,
    checksum: U16,
}

fixed_header!(Udp);
ports!(Udp);

impl Udp {
    /// Of all that follows the header, what belongs to the datagram.
    ///
    /// # Errors
    /// [`Malformed::Len`] when the length is less than the header's, or more than there is.
    #[inline]
    pub fn payload<'a>(&self, rest: &'a [u8]) -> Result<&'a [u8], Malformed> {
        self.payload_len().and_then(|len| rest.get(..len)).ok_or(Malformed::Len(Layer::Udp))
    }

    /// As [`Udp::payload`], to be written.
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn payload_mut<'a>(&self, rest: &'a mut [u8]) -> Result<&'a mut [u8], Malformed> {
        self.payload_len().and_then(|len| rest.get_mut(..len)).ok_or(Malformed::Len(Layer::Udp))
    }

    /// Length of the payload in bytes, by the header; `None` when that is less than the header's own.
    #[inline]
    pub fn payload_len(&self) -> Option<usize> {
        usize::from(self.length()).checked_sub(LEN)
    }

    /// Length of header and payload, in bytes, as the header says.
    #[inline]
    pub fn length(&self) -> u16 {
        self.length.get()
    }

    /// The checksum as it stands in the header; 0 means that the sender made none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Whether the checksum is right, or there is none (`rte_ipv4_udptcp_cksum_verify`). `payload` is what [`Udp::payload`] gives.
    #[inline]
    pub fn checksum_is_right(&self, pseudo: PseudoHeader, payload: &[u8]) -> bool {
        self.checksum() == 0 || pseudo.is_right(self.as_bytes(), payload)
    }

    /// Makes the checksum anew (`rte_ipv4_udptcp_cksum`). `payload` is what [`Udp::payload`] gives: without padding, for the length is in
    /// `pseudo` too.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo: PseudoHeader, payload: &[u8]) {
        let checksum = pseudo.checksum(self.as_bytes(), payload, self.checksum());
        self.set_checksum(never_none(checksum));
    }

    /// Tells the checksum of a change in what it covers, the IP addresses or the payload; one that there is not
    /// stays so.
    #[inline]
    pub fn update_checksum(&mut self, change: Change) {
        if self.checksum() != 0 {
            self.set_checksum(never_none(change.applied_to(self.checksum())));
        }
    }

    /// Sets the length of header and payload, in bytes.
    #[inline]
    pub fn set_length(&mut self, length: u16) {
        self.length.set(length);
    }

    /// Sets the checksum; 0 for none.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

/// The other zero, for a checksum that is 0.
#[inline]
const fn never_none(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::Ipv4;
    use proptest::prelude::*;

    const IP: [u8; 20] = [0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];

    #[test]
    fn a_known_datagram() {
        // 10.0.0.1:1 -> 10.0.0.2:2, payload "hi": checksum worked out by hand.
        let (ip, _) = Ipv4::split(&IP).unwrap();
        let pseudo = ip.pseudo_header(10);
        let mut datagram = [0, 1, 0, 2, 0, 10, 0, 0, b'h', b'i'];
        let (udp, payload) = Udp::split_mut(&mut datagram).unwrap();
        assert!(udp.checksum_is_right(pseudo, payload), "no checksum is right");
        // 0a00+0001+0a00+0002+0011+000a + 0001+0002+000a+6869 = 7c94; complement 836b.
        udp.set_checksum(0x7c94);
        assert!(!udp.checksum_is_right(pseudo, payload));
        udp.fill_checksum(pseudo, payload);
        assert_eq!(udp.checksum(), 0x836b);
        assert!(udp.checksum_is_right(pseudo, payload));
        payload[1] ^= 1;
        assert!(!udp.checksum_is_right(pseudo, payload));
        assert_eq!((udp.source(), udp.destination(), udp.length()), (1, 2, 10));
    }

    #[test]
    fn lengths_that_lie_are_named() {
        let mut bytes = [0u8; 12];
        let (udp, rest) = Udp::split_mut(&mut bytes).unwrap();
        for (length, wanted) in [(8, Some(0)), (12, Some(4)), (0, None), (7, None), (13, None)] {
            udp.set_length(length);
            assert_eq!(udp.payload(rest).ok().map(<[u8]>::len), wanted, "{length}");
            assert_eq!(udp.payload_mut(rest).ok().map(|p| p.len()), wanted, "{length}");
        }
        assert_eq!(udp.payload(rest), Err(Malformed::Len(Layer::Udp)));
        assert_eq!(Udp::split(&[0; 7]).unwrap_err(), Malformed::Short(Layer::Udp));
    }

    #[test]
    fn none_stays_none_and_zero_is_written_as_ones() {
        let (ip, _) = Ipv4::split(&IP).unwrap();
        let pseudo = ip.pseudo_header(8);
        let mut bytes = [0, 1, 0, 2, 0, 8, 0, 0];
        let (udp, payload) = Udp::split_mut(&mut bytes).unwrap();
        udp.update_source(9);
        assert_eq!((udp.source(), udp.checksum()), (9, 0));
        // A port for which the sum is all ones.
        udp.set_source(0);
        udp.fill_checksum(pseudo, payload);
        let port = udp.checksum();
        udp.update_source(port);
        assert_eq!((udp.checksum(), udp.source()), (0xffff, port));
        assert!(udp.checksum_is_right(pseudo, payload));
        udp.fill_checksum(pseudo, payload);
        assert_eq!(udp.checksum(), 0xffff);
    }

    proptest! {
        #[test]
        fn updates_are_whole_checksums(mut bytes in prop::collection::vec(any::<u8>(), 8..80), addresses: [u32; 4], ports: [u16; 2]) {
            let mut ip = IP;
            let (ip, _) = Ipv4::split_mut(&mut ip).unwrap();
            ip.set_source(addresses[0].into());
            ip.set_destination(addresses[1].into());
            let len = bytes.len();
            let (udp, payload) = Udp::split_mut(&mut bytes).unwrap();
            udp.fill_checksum(ip.pseudo_header(len), payload);
            let change = ip.update_source(addresses[2].into());
            udp.update_checksum(change.and(ip.update_destination(addresses[3].into())));
            udp.update_source(ports[0]);
            udp.update_destination(ports[1]);
            let updated = udp.checksum();
            prop_assert!(udp.checksum_is_right(ip.pseudo_header(len), payload));
            udp.fill_checksum(ip.pseudo_header(len), payload);
            prop_assert_eq!(updated, udp.checksum());
            prop_assert_eq!([udp.source(), udp.destination()], ports);
        }
    }
}
