// SPDX-License-Identifier: BSD-3-Clause
//! Frames, and what a router makes of them.

use graph::{Ip4NextHop, Ip4Route};
use proptest::prelude::*;

pub const FIRST: Ip4NextHop =
    Ip4NextHop { port: 0, destination: [2, 0, 0, 0, 0, 10], source: [2, 0, 0, 0, 0, 11] };
pub const SECOND: Ip4NextHop =
    Ip4NextHop { port: 1, destination: [2, 0, 0, 0, 0, 20], source: [2, 0, 0, 0, 0, 21] };

pub fn routes() -> [Ip4Route; 3] {
    [
        Ip4Route { address: [198, 18, 0, 0].into(), length: 16, next_hop: FIRST },
        Ip4Route { address: [198, 19, 0, 0].into(), length: 16, next_hop: SECOND },
        Ip4Route { address: [198, 19, 7, 0].into(), length: 24, next_hop: FIRST },
    ]
}

/// What a frame is, and where it goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// To this address.
    To([u8; 4]),
    Denied,
    Ipv6,
    Short,
    /// Bytes that the test sees too.
    Shared,
}

impl Kind {
    pub fn next_hop(self) -> Option<Ip4NextHop> {
        match self {
            Self::To([198, 18, ..] | [198, 19, 7, _]) => Some(FIRST),
            Self::To([198, 19, ..]) => Some(SECOND),
            _ => None,
        }
    }

    pub fn frame(self, number: u16) -> Vec<u8> {
        let mut frame = vec![0u8; 14];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
        frame[12..].copy_from_slice(if self == Self::Ipv6 { &[0x86, 0xdd] } else { &[8, 0] });
        let address = if let Self::To(address) = self { address } else { [198, 18, 0, 1] };
        let mut header = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0];
        header[4..6].copy_from_slice(&number.to_be_bytes());
        header[16..].copy_from_slice(&address);
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        frame.extend(header);
        let port = if self == Self::Denied { 53u16 } else { 9 };
        frame.extend([0x10, 0x01]);
        frame.extend(port.to_be_bytes());
        frame.extend((0..22).map(|byte| byte ^ number as u8));
        frame.truncate(if self == Self::Short { 33 } else { 60 });
        frame
    }
}

/// The checksum of an IPv4 header whose own checksum is 0.
pub fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The frame as a router sends it.
pub fn routed(mut frame: Vec<u8>, hop: Ip4NextHop) -> Vec<u8> {
    frame[..6].copy_from_slice(&hop.destination);
    frame[6..12].copy_from_slice(&hop.source);
    frame[22] -= 1;
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// A kind, more often one that is routed.
pub fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => (18..20u8, 0..9u8, any::<u8>()).prop_map(|(b, c, d)| Kind::To([198, b, c, d])),
        1 => any::<[u8; 4]>().prop_map(Kind::To),
        1 => prop::sample::select(vec![Kind::Denied, Kind::Ipv6, Kind::Short, Kind::Shared]),
    ]
}

/// Runs of kinds.
pub fn random_kinds() -> impl Strategy<Value = Vec<Kind>> {
    prop::collection::vec((kind(), prop_oneof![Just(1), 1..20usize]), 1..40).prop_map(|runs| {
        let kinds = runs.into_iter().flat_map(|(kind, count)| vec![kind; count]);
        kinds.take(300).collect()
    })
}

/// Some of each kind, in runs and alternating.
pub fn mixed(count: usize) -> Vec<Kind> {
    let all = [
        Kind::To([198, 18, 3, 4]),
        Kind::To([198, 19, 3, 4]),
        Kind::To([198, 19, 7, 4]),
        Kind::To([203, 0, 113, 1]),
        Kind::Denied,
        Kind::Ipv6,
        Kind::Short,
        Kind::Shared,
    ];
    (0..count).map(|n| all[if n < count / 2 { n % 8 } else { n / 5 % 8 }]).collect()
}
