// SPDX-License-Identifier: BSD-3-Clause
//! Address and port translation of IPv4 ([`Translation`]) and IPv6 packets ([`Translation6`]) in place, with every checksum kept
//! right incrementally.
//!
//! No byte of the payload is looked at. That is the whole of it for UDP and TCP and most other protocols; ICMP errors
//! carry a part of the packet that they are about, which stays as it is here.

mod v6;

use std::net::Ipv4Addr;

use crate::checksum::Change;
use crate::extension::AUTHENTICATION;
use crate::ipv4::{Ipv4, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::view::{Layer, Malformed};

pub use v6::{Endpoint6, Translation6};

const PROTOCOL_DCCP: u8 = 33;
const PROTOCOL_UDP_LITE: u8 = 136;

/// An end of a connection: what it is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its port; `None` leaves the one that it has.
    pub port: Option<u16>,
}

/// What a packet's ends become; `None` leaves one as it is.
///
/// ```
/// use packet::{ipv4::Ipv4, nat::{Endpoint, Translation}};
/// # let mut packet = [0u8; 28];
/// # (packet[0], packet[3], packet[9], packet[25]) = (0x45, 28, 17, 8);
/// # Ipv4::split_mut(&mut packet)?.0.fill_checksum();
/// let inwards = Translation {
///     source: None,
///     destination: Some(Endpoint { address: [192, 168, 0, 7].into(), port: Some(8080) }),
/// };
/// inwards.apply(&mut packet)?;
/// let (ip, _) = Ipv4::split(&packet)?;
/// assert_eq!(ip.destination().to_string(), "192.168.0.7");
/// assert!(ip.checksum_is_right());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Translation {
    /// What the source becomes.
    pub source: Option<Endpoint>,
    /// What the destination becomes.
    pub destination: Option<Endpoint>,
}

/// Why a packet was not translated. It is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NatError {
    /// A header is cut short or lies.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A port was to change, but the protocol has none that are known here.
    #[error(
        "IP protocol {0} has no ports to translate; leave `port` at `None`, or drop the packet"
    )]
    NoPorts(u8),
    /// A port was to change, but the fragment has no transport header.
    #[error(
        "a later fragment has no ports to translate; put packets together first, or leave `port` at `None`"
    )]
    LaterFragment,
    /// The protocol protects the addresses by what cannot be kept right here.
    #[error("IP protocol {0} cannot be translated: it protects its addresses; drop the packet")]
    Protected(u8),
}

impl Translation {
    /// Translates a packet that begins with its IPv4 header. Of the packet only headers need to be there.
    ///
    /// # Errors
    /// See [`NatError`].
    #[inline]
    pub fn apply(&self, packet: &mut [u8]) -> Result<(), NatError> {
        let (ip, rest) = Ipv4::split_mut(packet)?;
        // What is behind the packet, as a short frame's padding, is none of its headers.
        let len = ip.payload_len().ok_or(Malformed::Len(Layer::Ipv4))?.min(rest.len());
        let rest = &mut rest[..len];
        let (protocol, later, ports) = (ip.protocol(), ip.fragment_offset() > 0, self.ports());
        transport(protocol, later, ports, rest, || self.addresses(ip))
    }

    #[inline]
    fn ports(&self) -> [Option<u16>; 2] {
        [self.source, self.destination].map(|end| end.and_then(|end| end.port))
    }

    #[inline]
    fn addresses(&self, ip: &mut Ipv4) -> Change {
        let source = self.source.map_or(Change::NONE, |end| ip.update_source(end.address));
        let destination =
            self.destination.map_or(Change::NONE, |end| ip.update_destination(end.address));
        source.and(destination)
    }
}

/// Translates the ports of a message, and lets its checksum follow. `later`: it is a part of a message, from a fragment other than
/// the first. `addresses` changes the addresses; it is called only if nothing is wrong with the message.
#[inline(always)]
fn transport(
    protocol: u8,
    later: bool,
    ports: [Option<u16>; 2],
    message: &mut [u8],
    addresses: impl FnOnce() -> Change,
) -> Result<(), NatError> {
    let [source, destination] = ports;
    // The transport header is only in the first fragment, and its checksum is told there.
    match protocol {
        _ if later => match ports {
            [None, None] => drop_change(addresses()),
            _ => return Err(NatError::LaterFragment),
        },
        PROTOCOL_UDP => {
            let (udp, _) = Udp::split_mut(message)?;
            let source = source.unwrap_or(udp.source());
            let change = addresses().and(Change::of_word(udp.source(), source));
            udp.set_source(source);
            udp.translate_destination(change, destination.unwrap_or(udp.destination()));
        }
        PROTOCOL_TCP => {
            let (tcp, _) = Tcp::split_mut(message)?;
            let source = source.unwrap_or(tcp.source());
            let change = addresses().and(Change::of_word(tcp.source(), source));
            tcp.set_source(source);
            tcp.translate_destination(change, destination.unwrap_or(tcp.destination()));
        }
        AUTHENTICATION | PROTOCOL_DCCP | PROTOCOL_UDP_LITE => {
            return Err(NatError::Protected(protocol));
        }
        _ if ports != [None, None] => return Err(NatError::NoPorts(protocol)),
        _ => drop_change(addresses()),
    }
    Ok(())
}

/// Where no checksum but the IPv4 header's covers the addresses.
#[inline]
fn drop_change(_: Change) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::Layers;
    use proptest::prelude::*;

    fn packet(protocol: u8, len: usize) -> Vec<u8> {
        let mut packet = vec![0u8; len];
        let (ip, _) = Ipv4::split_mut(fill(&mut packet)).unwrap();
        ip.set_total_len(len as u16);
        ip.set_protocol(protocol);
        ip.fill_checksum();
        packet
    }

    fn fill(packet: &mut [u8]) -> &mut [u8] {
        packet[0] = 0x45;
        packet
    }

    fn to(port: Option<u16>) -> Translation {
        let end = Endpoint { address: [192, 0, 2, 1].into(), port };
        Translation { source: None, destination: Some(end) }
    }

    #[track_caller]
    fn refused(packet: &[u8], port: Option<u16>, wanted: NatError) {
        let mut bytes = packet.to_vec();
        assert_eq!(to(port).apply(&mut bytes), Err(wanted));
        assert_eq!(bytes, packet, "nothing half-done");
    }

    #[test]
    fn what_cannot_be_translated_stays_as_it_was() {
        refused(&packet(1, 28), Some(5), NatError::NoPorts(1));
        for protocol in [33, 51, 136] {
            refused(&packet(protocol, 60), None, NatError::Protected(protocol));
        }
        refused(&packet(17, 27), None, Malformed::Short(Layer::Udp).into());
        refused(&packet(6, 40), None, Malformed::HeaderLen(Layer::Tcp).into());
        refused(&packet(6, 30), None, Malformed::Short(Layer::Tcp).into());
        refused(&[0x45; 19], None, Malformed::Short(Layer::Ipv4).into());
        let mut later = packet(17, 28);
        assert!(Ipv4::split_mut(&mut later).unwrap().0.set_fragment(8, false));
        refused(&later, Some(1), NatError::LaterFragment);
        // Padding behind a packet that ends before its ports.
        for (len, error) in [
            (19, Malformed::Len(Layer::Ipv4)),
            (20, Malformed::Short(Layer::Udp)),
            (27, Malformed::Short(Layer::Udp)),
        ] {
            let mut padded = packet(17, 40);
            Ipv4::split_mut(&mut padded).unwrap().0.set_total_len(len);
            refused(&padded, Some(1), NatError::Malformed(error));
        }
    }

    #[test]
    fn of_other_protocols_and_later_fragments_only_the_address_changes() {
        let mut later = packet(17, 24);
        let (ip, _) = Ipv4::split_mut(&mut later).unwrap();
        assert!(ip.set_fragment(8, false));
        ip.fill_checksum();
        for mut bytes in [packet(1, 28), later] {
            let before = bytes.clone();
            to(None).apply(&mut bytes).unwrap();
            let (ip, rest) = Ipv4::split(&bytes).unwrap();
            assert_eq!(ip.destination(), Ipv4Addr::from([192, 0, 2, 1]));
            assert!(ip.checksum_is_right());
            assert_eq!(rest, &before[20..]);
        }
    }

    proptest! {
        #[test]
        fn translated_packets_are_right(
            mut bytes in prop::collection::vec(any::<u8>(), 68..200), words in 5u8..12, tcp: bool,
            source: Option<(u32, Option<u16>)>, destination: Option<(u32, Option<u16>)>, none: bool,
        ) {
            let len = bytes.len();
            bytes[0] = 0x40 | words;
            let (ip, rest) = Ipv4::split_mut(&mut bytes).unwrap();
            ip.set_total_len(len as u16);
            assert!(ip.set_fragment(0, false));
            ip.set_protocol(if tcp { PROTOCOL_TCP } else { PROTOCOL_UDP });
            ip.fill_checksum();
            let message = rest.len() as u16;
            if tcp {
                rest[12] = 0x50;
            } else {
                Udp::split_mut(rest).unwrap().0.set_length(message);
            }
            let layers = Layers::of_packet(&bytes).unwrap();
            prop_assume!(layers.has_pseudo_header()); // or its options are a source route
            layers.fill_checksum(&mut bytes).unwrap();
            let none = none && !tcp;
            if none {
                Udp::split_mut(&mut bytes[layers.l4()..]).unwrap().0.set_checksum(0);
            }
            let before = bytes.clone();
            let end = |end: Option<(u32, Option<u16>)>| {
                end.map(|(address, port)| Endpoint { address: address.into(), port })
            };
            Translation { source: end(source), destination: end(destination) }.apply(&mut bytes).unwrap();
            let (ip, rest) = Ipv4::split(&bytes).unwrap();
            prop_assert!(ip.checksum_is_right());
            prop_assert_eq!(Layers::of_packet(&bytes), Ok(layers));
            prop_assert_eq!(layers.checksum_is_right(&bytes), Some(true));
            let (udp, _) = Udp::split(rest).unwrap();
            prop_assert!(!none || udp.checksum() == 0);
            // Written back, all is as it was: so nothing else was touched.
            let (old, old_rest) = Ipv4::split(&before).unwrap();
            let (old_udp, _) = Udp::split(old_rest).unwrap();
            if let Some((address, port)) = source {
                prop_assert_eq!((ip.source(), udp.source()), (address.into(), port.unwrap_or(old_udp.source())));
            }
            if let Some((address, port)) = destination {
                prop_assert_eq!((ip.destination(), udp.destination()), (address.into(), port.unwrap_or(old_udp.destination())));
            }
            let back = Translation {
                source: Some(Endpoint { address: old.source(), port: Some(old_udp.source()) }),
                destination: Some(Endpoint { address: old.destination(), port: Some(old_udp.destination()) }),
            };
            back.apply(&mut bytes).unwrap();
            prop_assert_eq!(bytes, before);
        }
    }
}
