// SPDX-License-Identifier: BSD-3-Clause
//! What all header views have in common: how bytes become one, and why they may not.
//!
//! A header is a type laid over bytes, as `struct rte_ipv4_hdr` is in C: `&Ipv4` reads, `&mut Ipv4` writes as well,
//! and nothing is copied. There is one way to get either:
//!
//! ```
//! use packet::{ethernet::Ethernet, ipv4::Ipv4, udp::Udp};
//! # let mut frame = [0u8; 60];
//! # frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
//! # frame[16..24].copy_from_slice(&[0, 28, 0, 0, 0, 0, 64, 17]);
//! # frame[38..40].copy_from_slice(&[0, 8]);
//! let (_, packet) = Ethernet::split(&frame)?;
//! let (ip, rest) = Ipv4::split(packet)?;
//! let (udp, rest) = Udp::split(ip.payload(rest)?)?;
//! assert!(udp.payload(rest)?.is_empty());
//! let (ethernet, packet) = Ethernet::split_mut(&mut frame)?;
//! ethernet.swap_addresses();
//! let (ip, _) = Ipv4::split_mut(packet)?;
//! assert_eq!(ip.decrement_ttl(), Some(63));
//! # Ok::<(), packet::Malformed>(())
//! ```
//!
//! - `split` and `split_mut` give the header, with its options where it has some, and all bytes behind it. They look
//!   at the header alone: its length, where it has one, lies within the bytes, or there is no view.
//! - `payload` (and `payload_mut`) of headers that know how long their packet is cut those bytes to that length, so
//!   that padding is gone, or say that it lies. They are apart because the bytes may be the first of several pieces.
//! - Getters and setters have values in host order; the wire has network order.
//! - `set_...` writes a field and nothing else. `update_...` keeps the checksum of the header right as well,
//!   incrementally (RFC 1624), and where others cover the field returns the [`Change`](crate::checksum::Change) to
//!   tell them. `fill_checksum` and `checksum_is_right` are for whole checksums.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The headers that there are views of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are the names of the protocols")]
#[non_exhaustive]
pub enum Layer {
    Ethernet,
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    /// An extension header of IPv6.
    Extension,
    Udp,
    Tcp,
    Icmp,
    Icmpv6,
    Vxlan,
    Gre,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Ethernet => "Ethernet",
            Layer::Vlan => "VLAN tag",
            Layer::Arp => "ARP",
            Layer::Ipv4 => "IPv4",
            Layer::Ipv6 => "IPv6",
            Layer::Extension => "IPv6 extension header",
            Layer::Udp => "UDP",
            Layer::Tcp => "TCP",
            Layer::Icmp => "ICMP",
            Layer::Icmpv6 => "ICMPv6",
            Layer::Vxlan => "VXLAN",
            Layer::Gre => "GRE",
        })
    }
}

/// Why bytes are not the header that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// There are fewer bytes than the header has, by its own length where it has one.
    #[error("{0}: the bytes end within the header; drop the packet, or look at more of its bytes")]
    Short(Layer),
    /// Another version, or another kind of addresses.
    #[error("{0}: another version or kind than there is a view of; look at what came before it")]
    Kind(Layer),
    /// The header's own length is below that of its fixed fields.
    #[error("{0}: the header's own length is less than its fields take; drop the packet")]
    HeaderLen(Layer),
    /// The length of the packet that the header states is below the header's, or above that of the bytes.
    #[error("{0}: header and payload are not as long as the header says; drop the packet")]
    Len(Layer),
    /// An option is longer than what is left of the options, or shorter than its own header.
    #[error("{0}: an option does not fit into the options; drop the packet")]
    Option(Layer),
}

/// The first bytes as a header of fixed length, and the rest.
#[inline(always)]
pub(crate) fn fixed<T: FromBytes + KnownLayout + Immutable>(
    bytes: &[u8],
    layer: Layer,
) -> Result<(&T, &[u8]), Malformed> {
    T::ref_from_prefix(bytes).map_err(|_| Malformed::Short(layer))
}

/// As [`fixed`], to be written.
#[inline(always)]
pub(crate) fn fixed_mut<T: FromBytes + IntoBytes + KnownLayout + Immutable>(
    bytes: &mut [u8],
    layer: Layer,
) -> Result<(&mut T, &mut [u8]), Malformed> {
    T::mut_from_prefix(bytes).map_err(|_| Malformed::Short(layer))
}

/// The first bytes as a header with `options` bytes behind its fixed fields, and the rest.
#[inline(always)]
pub(crate) fn with_options<T>(
    bytes: &[u8],
    options: usize,
    layer: Layer,
) -> Result<(&T, &[u8]), Malformed>
where
    T: FromBytes + KnownLayout<PointerMetadata = usize> + Immutable + ?Sized,
{
    T::ref_from_prefix_with_elems(bytes, options).map_err(|_| Malformed::Short(layer))
}

/// As [`with_options`], to be written.
#[inline(always)]
pub(crate) fn with_options_mut<T>(
    bytes: &mut [u8],
    options: usize,
    layer: Layer,
) -> Result<(&mut T, &mut [u8]), Malformed>
where
    T: FromBytes + IntoBytes + KnownLayout<PointerMetadata = usize> + Immutable + ?Sized,
{
    T::mut_from_prefix_with_elems(bytes, options).map_err(|_| Malformed::Short(layer))
}

/// `split` and `split_mut` of a header that always has the same length.
macro_rules! fixed_header {
    ($header:ident) => {
        impl $header {
            /// Splits bytes into this header, read-only, and all that follows it.
            ///
            /// # Errors
            /// [`Malformed::Short`](crate::Malformed::Short).
            #[inline]
            pub fn split(bytes: &[u8]) -> Result<(&Self, &[u8]), crate::Malformed> {
                crate::view::fixed(bytes, crate::view::Layer::$header)
            }

            /// Splits bytes into this header, to be written, and all that follows it.
            ///
            /// # Errors
            /// [`Malformed::Short`](crate::Malformed::Short).
            #[inline]
            pub fn split_mut(bytes: &mut [u8]) -> Result<(&mut Self, &mut [u8]), crate::Malformed> {
                crate::view::fixed_mut(bytes, crate::view::Layer::$header)
            }
        }
    };
}
pub(crate) use fixed_header;
