// SPDX-License-Identifier: BSD-3-Clause
//! The loops over packets' bytes. `../c/packets.c` has the same loops in C.

use std::hint::black_box;
use std::net::Ipv4Addr;

use dpdk::{Burst, Mbuf, Mempool};
use packet::ipv4::{self, Ipv4, Ipv4Fields, PROTOCOL_IPIP};
use packet::{checksum, ethernet};

use crate::loops::PACKETS;

/// Ethernet and IPv4, and ports.
const HEADERS: usize = ethernet::LEN + ipv4::LEN + 4;
/// A frame without FCS. The bytes after its headers are 0.
const FRAME: usize = 60;
const HEADER: [u8; HEADERS] = [
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, // Ethernet
    0x45, 0, 0, 46, 0, 7, 0x40, 0, 64, 17, 0x23, 0x45, 192, 0, 2, 1, 198, 51, 100, 1, // IPv4
    0x30, 0x39, 0, 53, // ports
];
const TAG: [u8; 4] = [0x81, 0, 0, 7];
/// Addresses of Ethernet's header.
const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2];

type Packets = Burst<'static, PACKETS>;

/// Packets that are all the same frame; none if the pool has too few.
fn packets(pool: &Mempool<'static>) -> Packets {
    let mut burst = Burst::new();
    let _ = pool.fill(&mut burst, PACKETS);
    for packet in burst.iter_mut() {
        if let Some(bytes) = packet.resize(FRAME) {
            bytes.fill(0);
            bytes[..HEADERS].copy_from_slice(&HEADER);
        }
    }
    burst
}

/// Runs `operation` on each packet of a burst, `rounds` times; returns the sum of the results.
#[inline(always)]
fn each(
    pool: &Mempool<'static>,
    rounds: u64,
    mut operation: impl FnMut(&mut Mbuf<'static>) -> Option<u64>,
) -> u64 {
    let mut burst = packets(pool);
    let mut sum = 0;
    for _ in 0..rounds {
        // The compiler sees that nobody else has the packets: without this it would read their bytes only once.
        for packet in black_box(&mut burst).iter_mut() {
            sum += operation(packet).unwrap_or(0);
        }
    }
    sum
}

#[inline(never)]
pub fn header(pool: &Mempool<'static>, rounds: u64) -> u64 {
    each(pool, rounds, |packet| {
        let header = packet.header::<HEADERS>()?;
        Some(u32::from_be_bytes([header[26], header[27], header[28], header[29]]).into())
    })
}

#[inline(never)]
pub fn prepend_adj(pool: &Mempool<'static>, rounds: u64) -> u64 {
    each(pool, rounds, |packet| {
        packet.prepend(TAG.len())?.copy_from_slice(&TAG);
        let len = packet.packet_len();
        packet.adj(TAG.len()).then_some(len as u64)
    })
}

#[inline(never)]
pub fn append_trim(pool: &Mempool<'static>, rounds: u64) -> u64 {
    each(pool, rounds, |packet| {
        packet.append(TAG.len())?.copy_from_slice(&TAG);
        let len = packet.packet_len();
        packet.trim(TAG.len()).then_some(len as u64)
    })
}

#[inline(never)]
pub fn checksum(pool: &Mempool<'static>, rounds: u64) -> u64 {
    each(pool, rounds, |packet| {
        let header = packet.header::<HEADERS>()?;
        Some(checksum::checksum(&header[ethernet::LEN..ethernet::LEN + ipv4::LEN]).into())
    })
}

/// Into a tunnel and out of it.
#[inline(never)]
pub fn ipip(pool: &Mempool<'static>, rounds: u64) -> u64 {
    const OUTER: usize = ethernet::LEN + ipv4::LEN;
    each(pool, rounds, |packet| {
        let (inner, _) = Ipv4::split(&packet.header::<OUTER>()?[ethernet::LEN..]).ok()?;
        let total_len = inner.total_len().checked_add(ipv4::LEN as u16)?;
        let headers = packet.replace_front::<{ ethernet::LEN }, OUTER>()?;
        headers[..12].copy_from_slice(&ADDRESSES);
        headers[12..14].copy_from_slice(&ethernet::ETHERTYPE_IPV4.to_be_bytes());
        let (_, outer) = headers.split_last_chunk_mut()?;
        let fields = Ipv4Fields {
            total_len,
            protocol: PROTOCOL_IPIP,
            source: Ipv4Addr::new(10, 9, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 1),
            ..Ipv4Fields::default()
        };
        fields.write(outer);
        let checksum = u16::from_be_bytes([outer[10], outer[11]]);
        let header = packet.replace_front::<OUTER, { ethernet::LEN }>()?;
        header[..12].copy_from_slice(&ADDRESSES);
        header[12..14].copy_from_slice(&ethernet::ETHERTYPE_IPV4.to_be_bytes());
        Some(checksum.into())
    })
}
