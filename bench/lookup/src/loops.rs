// SPDX-License-Identifier: BSD-3-Clause
//! The loops through the safe API. `../c/lookup.c` has the same loops in C.

use std::sync::atomic::{Ordering, compiler_fence};

use dpdk::acl::{Acl, Built};
use dpdk::hash::Hash;
use dpdk::lpm::Lpm;
use dpdk::ring::Ring;
use dpdk::{Burst, Mbuf, Mempool};
use flow::{FlowTable, Found};

/// Keys per lookup call.
pub const BATCH: usize = 64;
/// Packets per call to a pool or a ring.
pub const PACKETS: usize = 32;
/// The value for a missing key.
pub const MISSED: u32 = 0x00ff_ffff;

/// A key of 16 bytes, the size of an IPv4 flow's key.
pub type Key = [u32; 4];
/// The first bytes of a packet after its Ethernet header.
pub type Header = [u8; 64];

/// The lists of [`acl`].
pub type Rules = Acl<'static, Built, 5>;

/// Keeps the compiler from merging the lookups of several batches.
fn barrier() {
    compiler_fence(Ordering::SeqCst);
}

fn sum_of(found: &[u32; BATCH]) -> u64 {
    found.iter().fold(0_u32, |sum, found| sum.wrapping_add(*found)).into()
}

#[inline(never)]
pub fn lpm(table: &Lpm<'_>, addresses: &[u32], rounds: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..rounds {
        for batch in addresses.chunks_exact(BATCH) {
            let mut hops = [0; BATCH];
            // The lengths are equal: it cannot fail.
            let _ = table.lookup_bulk(batch, &mut hops, MISSED);
            sum += sum_of(&hops);
            barrier();
        }
    }
    sum
}

#[inline(never)]
pub fn lpm_x4(table: &Lpm<'_>, addresses: &[u32], rounds: u64) -> u64 {
    let lookups = table.lookups();
    let mut sum = 0;
    for _ in 0..rounds {
        for batch in addresses.chunks_exact(BATCH) {
            let mut hops = [0; BATCH];
            for (hops, four) in hops.chunks_exact_mut(4).zip(batch.chunks_exact(4)) {
                hops.copy_from_slice(
                    &lookups.lookup_x4([four[0], four[1], four[2], four[3]], MISSED),
                );
            }
            sum += sum_of(&hops);
            barrier();
        }
    }
    sum
}

#[inline(never)]
pub fn hash(table: &Hash<'_, Key, u32>, keys: &[Key], rounds: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..rounds {
        for batch in keys.chunks_exact(BATCH) {
            let mut values = [0; BATCH];
            // The lengths are equal: it cannot fail.
            let _ = table.lookup_bulk(batch, &mut values, MISSED);
            sum += sum_of(&values);
            barrier();
        }
    }
    sum
}

/// Does with a table of `crates/flow` what [`hash`] does with librte_hash.
#[inline(never)]
pub fn flows(table: &FlowTable<Key, u32>, keys: &[Key], rounds: u64) -> u64 {
    let mut sum = 0;
    let mut found = [Found::default(); BATCH];
    for _ in 0..rounds {
        for batch in keys.chunks_exact(BATCH) {
            table.find_bulk(batch, &mut found);
            let value = |found: Found| Some(*table.at(found.slot()?)?.1);
            sum += sum_of(&found.map(|found| value(found).unwrap_or(MISSED)));
            barrier();
        }
    }
    sum
}

#[inline(never)]
pub fn acl(rules: &Rules, headers: &[Header], rounds: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..rounds {
        for batch in headers.chunks_exact(BATCH) {
            let mut verdicts = [[None; 1]; BATCH];
            // The lengths are equal, and each header is long enough.
            let _ = rules.classify_slices(batch, &mut verdicts);
            let found = verdicts.map(|[verdict]| verdict.map_or(0, |verdict| verdict.get()));
            sum += sum_of(&found);
            barrier();
        }
    }
    sum
}

#[inline(never)]
pub fn pool(pool: &Mempool<'static>, rounds: u64) -> u64 {
    let mut sum = 0;
    let mut burst = Burst::<PACKETS>::new();
    for _ in 0..rounds {
        if pool.fill(&mut burst, PACKETS).is_ok() {
            sum += burst.len() as u64;
        }
        burst.clear();
        barrier();
    }
    sum
}

#[inline(never)]
pub fn ring<'m>(ring: &Ring<'_, Mbuf<'m>>, burst: &mut Burst<'m, PACKETS>, rounds: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..rounds {
        sum += ring.enqueue_burst(burst);
        sum += ring.dequeue_burst(burst);
        barrier();
    }
    sum as u64
}

#[inline(never)]
pub fn ring_single<'m>(
    ring: &mut Ring<'_, Mbuf<'m>>,
    burst: &mut Burst<'m, PACKETS>,
    rounds: u64,
) -> u64 {
    let (mut producer, mut consumer) = ring.split();
    let mut sum = 0;
    for _ in 0..rounds {
        sum += producer.enqueue_burst(burst);
        sum += consumer.dequeue_burst(burst);
        barrier();
    }
    sum as u64
}
