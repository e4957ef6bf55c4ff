// SPDX-License-Identifier: BSD-3-Clause
//! What an mbuf carries besides its own bytes: dynamic fields, information from a device, requests
//! to a device, external bytes.
//!
//! One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod dynfields;
mod external;
mod offload;
mod parts;
mod pools;
mod prepare;
mod received;
#[path = "../support/mod.rs"]
mod support;

use dpdk::{Eal, Mbuf, Mempool, PoolConfig};
use dpdk_sys::rte_mbuf;

#[test]
fn mbufs_carry_more_than_bytes() {
    let eal = support::eal(&["net_ring0"]);
    dynfields::check(&eal);
    received::check(&eal);
    offload::check(&eal);
    prepare::check(&eal);
    external::check(&eal);
    parts::check(&eal);
    pools::check(&eal);
}

/// A pool of 255 mbufs with `room` bytes after the headroom.
fn pool<'eal>(eal: &'eal Eal, name: &str, room: u16) -> Mempool<'eal> {
    let config =
        PoolConfig { count: 255, cache: 16, data_room: 128 + room, ..PoolConfig::named(name) };
    Mempool::packet_pool(eal, &config).unwrap()
}

/// A packet of `len` bytes, in which neighbours always differ.
fn packet<'m>(pool: &Mempool<'m>, len: usize) -> Mbuf<'m> {
    let mut mbuf = pool.alloc().unwrap();
    mbuf.append(len).unwrap().copy_from_slice(&bytes(len));
    mbuf
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + index / 256) as u8).collect()
}

/// All bytes of a packet.
fn content(mbuf: &Mbuf<'_>) -> Vec<u8> {
    mbuf.segment_data().flatten().copied().collect()
}

/// The pointer inside an [`Mbuf`], which is transparent over it.
fn pointer(mbuf: &Mbuf<'_>) -> *mut rte_mbuf {
    // SAFETY: both are one pointer.
    unsafe { std::mem::transmute_copy(mbuf) }
}

/// Writes a field as a device would.
fn write<T>(mbuf: &mut Mbuf<'_>, offset: usize, value: T) {
    // SAFETY: the tests name fields of an mbuf that they own, by the offsets that C gives.
    unsafe { pointer(mbuf).cast::<u8>().add(offset).cast::<T>().write(value) }
}

fn read<T: Copy>(mbuf: &Mbuf<'_>, offset: usize) -> T {
    // SAFETY: as above.
    unsafe { pointer(mbuf).cast::<u8>().add(offset).cast::<T>().read() }
}
