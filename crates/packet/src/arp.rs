// SPDX-License-Identifier: BSD-3-Clause
//! ARP for IPv4 over Ethernet (RFC 826; `rte_arp_hdr`): 28 bytes.

use std::net::Ipv4Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::MacAddr;
use crate::view::{Layer, Malformed, fixed, fixed_mut};

/// Length of a message in bytes.
pub const LEN: usize = 28;
/// Operation: who has this address?
pub const REQUEST: u16 = 1;
/// Operation: I have.
pub const REPLY: u16 = 2;

/// Hardware type Ethernet, protocol IPv4, and the lengths of their addresses.
const KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// A view of an ARP message.
///
/// ```
/// use packet::{MacAddr, arp::{self, Arp}};
/// let mut bytes = [0u8; arp::LEN];
/// bytes[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
/// let (message, _) = Arp::split_mut(&mut bytes)?;
/// if message.operation() == arp::REQUEST {
///     message.make_reply(MacAddr([2, 0, 0, 0, 0, 1]));
/// }
/// assert_eq!(message.operation(), arp::REPLY);
/// # Ok::<(), packet::Malformed>(())
/// ```
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Arp {
    kind: [u8; 6],
    operation: U16,
    sender_mac: MacAddr,
    sender_ip: [u8; 4],
    target_mac: MacAddr,
    target_ip: [u8; 4],
}

impl Arp {
    /// Splits bytes into a message, read-only, and what follows it.
    ///
    /// # Errors
    /// [`Malformed::Short`]; [`Malformed::Kind`] when it is not about IPv4 on Ethernet.
    #[inline]
    pub fn split(bytes: &[u8]) -> Result<(&Self, &[u8]), Malformed> {
        let (message, rest) = fixed::<Self>(bytes, Layer::Arp)?;
        if message.kind == KIND { Ok((message, rest)) } else { Err(Malformed::Kind(Layer::Arp)) }
    }

    /// Splits bytes into a message, to be written, and what follows it.
    ///
    /// # Errors
    /// As [`Arp::split`].
    #[inline]
    pub fn split_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Malformed> {
        let (message, rest) = fixed_mut::<Self>(bytes, Layer::Arp)?;
        if message.kind == KIND { Ok((message, rest)) } else { Err(Malformed::Kind(Layer::Arp)) }
    }

    /// What is asked or said: [`REQUEST`], [`REPLY`], or another operation.
    #[inline]
    pub fn operation(&self) -> u16 {
        self.operation.get()
    }

    /// The sender's Ethernet address.
    #[inline]
    pub fn sender_mac(&self) -> MacAddr {
        self.sender_mac
    }

    /// The sender's IPv4 address.
    #[inline]
    pub fn sender_ip(&self) -> Ipv4Addr {
        self.sender_ip.into()
    }

    /// The target's Ethernet address; of a request it means nothing.
    #[inline]
    pub fn target_mac(&self) -> MacAddr {
        self.target_mac
    }

    /// The target's IPv4 address.
    #[inline]
    pub fn target_ip(&self) -> Ipv4Addr {
        self.target_ip.into()
    }

    /// Sets the operation.
    #[inline]
    pub fn set_operation(&mut self, operation: u16) {
        self.operation.set(operation);
    }

    /// Sets the sender's addresses.
    #[inline]
    pub fn set_sender(&mut self, mac: MacAddr, ip: Ipv4Addr) {
        (self.sender_mac, self.sender_ip) = (mac, ip.octets());
    }

    /// Sets the target's addresses.
    #[inline]
    pub fn set_target(&mut self, mac: MacAddr, ip: Ipv4Addr) {
        (self.target_mac, self.target_ip) = (mac, ip.octets());
    }

    /// Makes a request the reply of the one with this Ethernet address, who has the IPv4 address that was asked for.
    pub fn make_reply(&mut self, mac: MacAddr) {
        let (asked, from) = (self.target_ip(), (self.sender_mac, self.sender_ip()));
        self.set_operation(REPLY);
        self.set_sender(mac, asked);
        self.set_target(from.0, from.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_becomes_its_reply() {
        let mut bytes = [0u8; LEN + 18];
        bytes[..6].copy_from_slice(&KIND);
        let (arp, padding) = Arp::split_mut(&mut bytes).unwrap();
        assert_eq!(padding.len(), 18);
        let (asks, has) =
            (MacAddr::from_u64(0x0200_0000_0001), MacAddr::from_u64(0x0200_0000_0002));
        arp.set_operation(REQUEST);
        arp.set_sender(asks, [10, 0, 0, 1].into());
        arp.set_target(MacAddr::default(), [10, 0, 0, 2].into());
        arp.make_reply(has);
        let wanted =
            [0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1];
        assert_eq!(bytes[..LEN], wanted);
        let (arp, _) = Arp::split(&bytes).unwrap();
        assert_eq!((arp.sender_mac(), arp.sender_ip()), (has, [10, 0, 0, 2].into()));
        assert_eq!((arp.target_mac(), arp.target_ip()), (asks, [10, 0, 0, 1].into()));
    }

    #[test]
    fn other_addresses_are_another_kind() {
        for (at, value) in KIND.iter().enumerate() {
            let mut bytes = [0u8; LEN];
            bytes[..6].copy_from_slice(&KIND);
            assert!(Arp::split(&bytes).is_ok());
            bytes[at] = value + 1;
            assert_eq!(Arp::split(&bytes).unwrap_err(), Malformed::Kind(Layer::Arp));
            assert_eq!(Arp::split_mut(&mut bytes).unwrap_err(), Malformed::Kind(Layer::Arp));
        }
        assert_eq!(Arp::split(&[0; 27]).unwrap_err(), Malformed::Short(Layer::Arp));
    }
}
