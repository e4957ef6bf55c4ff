// SPDX-License-Identifier: BSD-3-Clause
//! Address and port translation of IPv6 packets.

use std::net::Ipv6Addr;

use super::{NatError, transport};
use crate::checksum::Change;
use crate::extension::{AUTHENTICATION, Extensions, HIP, MOBILITY, ROUTING};
use crate::icmp::{Icmpv6, NEXT_HEADER_ICMPV6};
use crate::ipv6::Ipv6;
use crate::view::{Layer, Malformed};

/// RFC 5340, RFC 7761 and RFC 9568: over IPv6 their checksums are of a pseudo header, too.
const OSPF: u8 = 89;
const PIM: u8 = 103;
const VRRP: u8 = 112;

/// An end of a connection over IPv6: what it is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint6 {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its port; `None` leaves the one that it has.
    pub port: Option<u16>,
}

/// What an IPv6 packet's ends become; `None` leaves one as it is.
///
/// ```
/// use packet::{ipv6::Ipv6, nat::{Endpoint6, Translation6}};
/// # let mut packet = [0u8; 48];
/// # (packet[0], packet[5], packet[6], packet[45]) = (0x60, 8, 17, 8);
/// let inwards = Translation6 {
///     source: None,
///     destination: Some(Endpoint6 { address: "2001:db8::7".parse()?, port: Some(8080) }),
/// };
/// inwards.apply(&mut packet)?;
/// assert_eq!(Ipv6::split(&packet)?.0.destination().to_string(), "2001:db8::7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Translation6 {
    /// What the source becomes.
    pub source: Option<Endpoint6>,
    /// What the destination becomes.
    pub destination: Option<Endpoint6>,
}

impl Translation6 {
    /// Translates a packet that begins with its IPv6 header. Of the packet only headers need to be there. ICMPv6 follows; its errors
    /// carry a part of the packet that they are about, which stays as it is.
    ///
    /// # Errors
    /// See [`NatError`]. A packet with a routing, authentication, mobility or HIP header, and one of OSPF, PIM or VRRP, is
    /// [`Protected`](NatError::Protected): its checksums are about other addresses, or follow no rule known here.
    #[inline]
    pub fn apply(&self, packet: &mut [u8]) -> Result<(), NatError> {
        let (ip, rest) = Ipv6::split_mut(packet)?;
        let len = usize::from(ip.payload_len()).min(rest.len());
        let rest = &mut rest[..len];
        let mut chain = Extensions::new(ip.next_header(), rest);
        for extension in chain.by_ref() {
            let (number, _) = extension?;
            if matches!(number, AUTHENTICATION | ROUTING | MOBILITY | HIP) {
                return Err(NatError::Protected(number));
            }
        }
        let protocol = chain.next_header();
        let later = chain.fragment().is_some_and(|fragment| fragment.offset() > 0);
        let at = rest.len() - chain.rest().len();
        let message = rest.get_mut(at..).ok_or(Malformed::Len(Layer::Ipv6))?;
        if protocol == NEXT_HEADER_ICMPV6 && !later && self.ports() == [None, None] {
            // Unlike ICMP's, its checksum covers the addresses.
            let (icmp, _) = Icmpv6::split_mut(message)?;
            icmp.update_checksum(self.addresses(ip));
            return Ok(());
        }
        // Their checksums cover the addresses.
        if matches!(protocol, OSPF | PIM | VRRP) {
            return Err(NatError::Protected(protocol));
        }
        transport(protocol, later, self.ports(), message, || self.addresses(ip))
    }

    #[inline]
    fn ports(&self) -> [Option<u16>; 2] {
        [self.source, self.destination].map(|end| end.and_then(|end| end.port))
    }

    #[inline]
    fn addresses(&self, ip: &mut Ipv6) -> Change {
        let source = self.source.map_or(Change::NONE, |end| ip.update_source(end.address));
        let destination =
            self.destination.map_or(Change::NONE, |end| ip.update_destination(end.address));
        source.and(destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::{DESTINATION_OPTIONS, FRAGMENT};
    use crate::layers::Layers;
    use crate::udp::Udp;
    use proptest::prelude::*;

    /// A packet with this next header, and these bytes behind the IPv6 header.
    fn packet(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet.extend_from_slice(rest);
        packet[0] = 0x60;
        let (ip, _) = Ipv6::split_mut(&mut packet).unwrap();
        ip.set_payload_len(rest.len() as u16);
        ip.set_next_header(next);
        packet
    }

    fn to(port: Option<u16>) -> Translation6 {
        let end = Endpoint6 { address: "2001:db8::1".parse().unwrap(), port };
        Translation6 { source: None, destination: Some(end) }
    }

    #[track_caller]
    fn refused(packet: &[u8], port: Option<u16>, wanted: NatError) {
        let mut bytes = packet.to_vec();
        assert_eq!(to(port).apply(&mut bytes), Err(wanted));
        assert_eq!(bytes, packet, "nothing half-done");
    }

    #[test]
    fn what_cannot_be_translated_stays_as_it_was() {
        refused(&packet(58, &[0; 8]), Some(5), NatError::NoPorts(58));
        for number in [ROUTING, AUTHENTICATION, MOBILITY, HIP] {
            refused(
                &packet(number, &[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                None,
                NatError::Protected(number),
            );
        }
        for protocol in [33, 89, 103, 112, 136] {
            refused(&packet(protocol, &[0; 8]), None, NatError::Protected(protocol));
        }
        refused(&packet(17, &[0; 7]), None, Malformed::Short(Layer::Udp).into());
        refused(&packet(6, &[0; 20]), None, Malformed::HeaderLen(Layer::Tcp).into());
        refused(&packet(58, &[0; 7]), None, Malformed::Short(Layer::Icmpv6).into());
        refused(&[0x60; 39], None, Malformed::Short(Layer::Ipv6).into());
        refused(
            &packet(DESTINATION_OPTIONS, &[17, 9]),
            None,
            Malformed::Short(Layer::Extension).into(),
        );
        refused(
            &packet(FRAGMENT, &[17, 0, 0, 8, 0, 0, 0, 0, 1, 2]),
            Some(1),
            NatError::LaterFragment,
        );
        // Padding behind a packet that ends before its ports.
        let mut padded = packet(17, &[0; 20]);
        Ipv6::split_mut(&mut padded).unwrap().0.set_payload_len(7);
        refused(&padded, Some(1), Malformed::Short(Layer::Udp).into());
    }

    #[test]
    fn of_later_fragments_only_the_address_changes() {
        let rest = [17, 0, 0, 8, 0, 0, 0, 0, 1, 2];
        let mut bytes = packet(FRAGMENT, &rest);
        to(None).apply(&mut bytes).unwrap();
        let (ip, behind) = Ipv6::split(&bytes).unwrap();
        assert_eq!((ip.destination(), behind), ("2001:db8::1".parse().unwrap(), &rest[..]));
    }

    proptest! {
        #[test]
        fn translated_packets_are_right(
            message in prop::collection::vec(any::<u8>(), 20..100), protocol in 0usize..3, options: bool,
            source: Option<(u128, Option<u16>)>, destination: Option<(u128, Option<u16>)>,
        ) {
            let protocol = [6, 17, 58][protocol];
            let mut rest = if options { vec![protocol, 0, 1, 4, 0, 0, 0, 0] } else { Vec::new() };
            let at = rest.len();
            rest.extend_from_slice(&message);
            match protocol {
                6 => rest[at + 12] = 0x50,
                17 => Udp::split_mut(&mut rest[at..]).unwrap().0.set_length(message.len() as u16),
                _ => (),
            }
            let mut bytes = packet(if options { DESTINATION_OPTIONS } else { protocol }, &rest);
            let layers = Layers::of_packet(&bytes).unwrap();
            layers.fill_checksum(&mut bytes).unwrap();
            let before = bytes.clone();
            let end = |end: Option<(u128, Option<u16>)>| {
                let port = |port: Option<u16>| port.filter(|_| protocol != 58);
                end.map(|(address, given)| Endpoint6 { address: address.into(), port: port(given) })
            };
            let translation = Translation6 { source: end(source), destination: end(destination) };
            translation.apply(&mut bytes).unwrap();
            prop_assert_eq!(Layers::of_packet(&bytes), Ok(layers));
            prop_assert_eq!(layers.checksum_is_right(&bytes), Some(true));
            let (ip, _) = Ipv6::split(&bytes).unwrap();
            let (old, old_rest) = Ipv6::split(&before).unwrap();
            prop_assert_eq!(ip.source(), translation.source.map_or(old.source(), |end| end.address));
            prop_assert_eq!(ip.destination(), translation.destination.map_or(old.destination(), |end| end.address));
            // Written back, all is as it was: so nothing else was touched.
            let old_ports = |range: std::ops::Range<usize>| {
                let bytes = old_rest[at..][range].try_into().unwrap();
                (protocol != 58).then(|| u16::from_be_bytes(bytes))
            };
            let back = Translation6 {
                source: Some(Endpoint6 { address: old.source(), port: old_ports(0..2) }),
                destination: Some(Endpoint6 { address: old.destination(), port: old_ports(2..4) }),
            };
            back.apply(&mut bytes).unwrap();
            prop_assert_eq!(bytes, before);
        }
    }
}
