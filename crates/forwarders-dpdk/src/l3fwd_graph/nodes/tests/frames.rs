// SPDX-License-Identifier: BSD-3-Clause
//! Frames of all kinds, correct and incorrect ones.

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::checksum::checksum;

/// The addresses of received frames.
const FRONT: [u8; 12] = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];

/// An IPv4 frame before it is complete.
#[derive(Clone)]
pub struct Ip4 {
    pub destination: Ipv4Addr,
    pub ttl: u8,
    pub protocol: u8,
    /// The UDP header, or what replaces it.
    pub ports: (u16, u16),
    /// Options: words of 4 bytes after the header.
    pub options: Vec<[u8; 4]>,
    /// The version field, usually 4.
    pub version: u8,
    /// Flags and fragment offset, in units of eight bytes.
    pub fragment: u16,
}

impl Ip4 {
    pub fn to(destination: [u8; 4]) -> Self {
        Self {
            destination: destination.into(),
            ttl: 64,
            protocol: 17,
            ports: (1000, 2000),
            options: Vec::new(),
            version: 4,
            fragment: 0,
        }
    }

    pub fn ttl(self, ttl: u8) -> Self {
        Self { ttl, ..self }
    }

    pub fn ports(self, from: u16, to: u16) -> Self {
        Self { ports: (from, to), ..self }
    }

    pub fn options(self, options: &[[u8; 4]]) -> Self {
        Self { options: options.to_vec(), ..self }
    }

    pub fn version(self, version: u8) -> Self {
        Self { version, ..self }
    }

    pub fn fragment(self, fragment: u16) -> Self {
        Self { fragment, ..self }
    }

    /// The frame with a correct checksum, padded to 60 bytes.
    pub fn frame(&self) -> Vec<u8> {
        let words = 5 + self.options.len() as u8;
        let [high, low] = self.fragment.to_be_bytes();
        let mut header = vec![self.version << 4 | words, 0, 0, 46, 0, 1, high, low, self.ttl];
        header.extend([self.protocol, 0, 0, 10, 0, 0, 1]);
        header.extend(self.destination.octets());
        header.extend(self.options.iter().flatten());
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut frame = ethernet(0x0800, &header);
        frame.extend(self.ports.0.to_be_bytes());
        frame.extend(self.ports.1.to_be_bytes());
        frame.resize(frame.len().max(60), 0x5a);
        frame
    }
}

/// A frame whose destination ends with this number.
pub fn numbered(number: usize) -> Vec<u8> {
    Ip4::to([198, 18, (number >> 8) as u8, number as u8]).frame()
}

/// An IPv6 frame of 80 bytes.
pub fn ip6(destination: &str, hops: u8) -> Vec<u8> {
    ip6_behind(destination, hops, 17, &[])
}

/// The same with extension headers, of which the first has this number.
pub fn ip6_behind(destination: &str, hops: u8, next: u8, extensions: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0, 0, 26, next, hops];
    header.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets());
    header.extend(destination.parse::<Ipv6Addr>().unwrap().octets());
    header.extend(extensions);
    header.extend([0x03, 0xe8, 0x07, 0xd0]);
    let mut frame = ethernet(0x86dd, &header);
    frame.resize(80, 0x5a);
    frame
}

/// A frame with this EtherType.
pub fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&FRONT[..], &kind.to_be_bytes(), payload].concat()
}

/// The first bytes of a frame.
pub fn cut(mut frame: Vec<u8>, len: usize) -> Vec<u8> {
    assert!(len < frame.len());
    frame.truncate(len);
    frame
}
