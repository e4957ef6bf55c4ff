// SPDX-License-Identifier: BSD-3-Clause
//! The hash by which devices spread frames, computed in software to predict queues.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

/// The hashed fields of a packet: addresses, and ports if the hash type has them, in the order of
/// Microsoft's specification. At most 36 bytes.
///
/// ```
/// use dpdk::{FlowTuple, Rss, toeplitz};
/// // An example of the specification.
/// let tuple = FlowTuple::v4_ports("66.9.149.187:2794".parse()?, "161.142.100.80:1766".parse()?);
/// assert_eq!(toeplitz(&Rss::MICROSOFT_KEY, tuple.bytes()), Some(0x51cc_c178));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowTuple {
    bytes: [u8; 36],
    len: usize,
}

impl FlowTuple {
    /// IPv4 without ports: hash types `IPV4`, `FRAG_IPV4` and `IPV4_OTHER`.
    #[must_use]
    pub fn v4(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self::of(&[&source.octets(), &destination.octets()])
    }

    /// TCP, UDP or SCTP over IPv4.
    #[must_use]
    pub fn v4_ports(source: SocketAddrV4, destination: SocketAddrV4) -> Self {
        Self::of(&[
            &source.ip().octets(),
            &destination.ip().octets(),
            &source.port().to_be_bytes(),
            &destination.port().to_be_bytes(),
        ])
    }

    /// IPv6 without ports: hash types `IPV6`, `FRAG_IPV6` and `IPV6_OTHER`.
    #[must_use]
    pub fn v6(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self::of(&[&source.octets(), &destination.octets()])
    }

    /// TCP, UDP or SCTP over IPv6.
    #[must_use]
    pub fn v6_ports(source: SocketAddrV6, destination: SocketAddrV6) -> Self {
        Self::of(&[
            &source.ip().octets(),
            &destination.ip().octets(),
            &source.port().to_be_bytes(),
            &destination.port().to_be_bytes(),
        ])
    }

    /// The bytes to be hashed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn of(parts: &[&[u8]]) -> Self {
        let mut tuple = Self { bytes: [0; 36], len: 0 };
        for byte in parts.iter().copied().flatten() {
            tuple.bytes[tuple.len] = *byte;
            tuple.len += 1;
        }
        tuple
    }
}

/// The Toeplitz hash of `bytes` with `key`, as devices compute it, and `rte_softrss` of 32-bit
/// words in host byte order. `None` if the key is too short: it needs four bytes more than are
/// hashed.
///
/// The queue of a frame is `reta[hash as usize % reta.len()]`, with the table of
/// [`PortControl::reta`](super::PortControl::reta), on devices that hash as the specification says.
#[must_use]
pub fn toeplitz(key: &[u8], bytes: &[u8]) -> Option<u32> {
    let (first, rest) = key.split_first_chunk::<4>()?;
    let mut window = u32::from_be_bytes(*first);
    if rest.len() < bytes.len() {
        return None;
    }
    let mut hash = 0;
    for (byte, next) in bytes.iter().zip(rest) {
        for bit in (0..8).rev() {
            if byte >> bit & 1 != 0 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test may.

    use super::*;
    use crate::Rss;

    /// Destination, source, hash of the addresses, hash with ports: "Verifying the RSS Hash Calculation" in
    /// Microsoft's driver documentation.
    const V4: [(&str, &str, u32, u32); 5] = [
        ("161.142.100.80:1766", "66.9.149.187:2794", 0x323e_8fc2, 0x51cc_c178),
        ("65.69.140.83:4739", "199.92.111.2:14230", 0xd718_262a, 0xc626_b0ea),
        ("12.22.207.184:38024", "24.19.198.95:12898", 0xd2d0_a5de, 0x5c2b_394a),
        ("209.142.163.6:2217", "38.27.205.30:48228", 0x8298_9176, 0xafc7_327f),
        ("202.188.127.2:1303", "153.39.163.191:44251", 0x5d18_09c5, 0x10e8_28a2),
    ];
    const V6: [(&str, &str, u32, u32); 3] = [
        ("[3ffe:2501:200:3::1]:1766", "[3ffe:2501:200:1fff::7]:2794", 0x2cc1_8cd5, 0x4020_7d3d),
        ("[ff02::1]:4739", "[3ffe:501:8::260:97ff:fe40:efab]:14230", 0x0f0c_461c, 0xdde5_1bbf),
        (
            "[fe80::200:f8ff:fe21:67cf]:38024",
            "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    #[test]
    fn the_vectors_of_the_specification() {
        let key = &Rss::MICROSOFT_KEY;
        for (destination, source, addresses, ports) in V4 {
            let (from, to): (SocketAddrV4, SocketAddrV4) =
                (source.parse().unwrap(), destination.parse().unwrap());
            let tuple = FlowTuple::v4(*from.ip(), *to.ip());
            assert_eq!(toeplitz(key, tuple.bytes()), Some(addresses), "{source}");
            assert_eq!(toeplitz(key, FlowTuple::v4_ports(from, to).bytes()), Some(ports));
        }
        for (destination, source, addresses, ports) in V6 {
            let (from, to): (SocketAddrV6, SocketAddrV6) =
                (source.parse().unwrap(), destination.parse().unwrap());
            let tuple = FlowTuple::v6(*from.ip(), *to.ip());
            assert_eq!(toeplitz(key, tuple.bytes()), Some(addresses), "{source}");
            assert_eq!(toeplitz(key, FlowTuple::v6_ports(from, to).bytes()), Some(ports));
        }
    }

    #[test]
    fn the_symmetric_key_hashes_answers_alike() {
        for (destination, source, ..) in V4 {
            let (a, b) = (source.parse().unwrap(), destination.parse().unwrap());
            let hash = |from, to| {
                toeplitz(&Rss::SYMMETRIC_KEY, FlowTuple::v4_ports(from, to).bytes()).unwrap()
            };
            assert_eq!(hash(a, b), hash(b, a));
        }
    }

    #[test]
    fn a_key_that_is_too_short_gives_no_hash() {
        assert_eq!(toeplitz(&[1, 2, 3], &[]), None);
        assert_eq!(toeplitz(&[1, 2, 3, 4], &[]), Some(0));
        assert_eq!(toeplitz(&[1, 2, 3, 4], &[0]), None);
        assert_eq!(toeplitz(&Rss::MICROSOFT_KEY, &[0xff; 37]), None);
        assert_eq!(toeplitz(&[0x80, 0, 0, 0, 0x80], &[1]), Some(1 << 6));
    }
}
