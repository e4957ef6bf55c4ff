// SPDX-License-Identifier: BSD-3-Clause
//! `rte_pktmbuf_alloc_bulk`, `rte_pktmbuf_free` and the pool's cache: every size of request, with
//! and without a cache, on an lcore and on another thread.

use dpdk::{Burst, Eal, Mbuf, Mempool, PoolConfig};
use dpdk_sys::{layout, rte_mbuf};
use proptest::prelude::*;

use super::raw::{self, Pairs};
use super::support::property::for_all_unshrunk;

/// More than a refill of a cache (512), and more than the pool has.
const MOST: usize = 1400;
const MBUFS: u32 = 1300;

pub fn agree(eal: &Eal) {
    for (cache, names) in
        [(0, ["n0", "c0"]), (1, ["n1", "c1"]), (64, ["n64", "c64"]), (512, ["n512", "c512"])]
    {
        let [native, c] = names.map(|name| {
            let config = PoolConfig { count: MBUFS, cache, ..PoolConfig::named(name) };
            Mempool::packet_pool(eal, &config).unwrap()
        });
        sequences(
            || (raw::cache_len(eal, names[0]), raw::cache_len(eal, names[1])),
            &native,
            &c,
            names[1],
        );
        std::thread::scope(|threads| {
            threads.spawn(|| sequences(|| (0, 0), &native, &c, names[1]));
        });
    }
}

/// Our own pools, whose mbufs are contiguous, have the same mbufs as `rte_pktmbuf_pool_create`
/// makes: equal in everything that does not depend on their address, IO addresses included.
pub fn same_mbufs(eal: &Eal) {
    let config = PoolConfig { count: 255, cache: 0, ..PoolConfig::named("ours") };
    let ours = Mempool::packet_pool(eal, &config).unwrap();
    // SAFETY: EAL runs and DPDK copies the name.
    let made = unsafe {
        dpdk_sys::rte_pktmbuf_pool_create(c"theirs".as_ptr(), 255, 0, 0, config.data_room, -1)
    };
    assert!(!made.is_null());
    let [ours_raw, theirs_raw] = ["ours", "theirs"].map(|name| {
        let mbufs = raw::c_alloc(raw::pool(name), 255).unwrap();
        let shapes: Vec<_> = mbufs.iter().map(|mbuf| shape(*mbuf)).collect();
        raw::c_free(mbufs);
        shapes
    });
    assert_eq!(ours_raw, theirs_raw);
    assert!(ours_raw.iter().all(|shape| *shape == ours_raw[0]));
    assert!(ours.is_full());
}

/// Fields of a fresh mbuf; addresses are relative to its own.
fn shape(mbuf: *mut rte_mbuf) -> [u64; 8] {
    let start = mbuf.addr() as u64;
    let buffer = raw::field::<u64>(mbuf, layout::MBUF_BUF_ADDR);
    let io = match layout::MBUF_IOVA_SIZE {
        8 => raw::field::<u64>(mbuf, layout::MBUF_IOVA).wrapping_sub(buffer),
        _ => 0,
    };
    [
        buffer - start,
        io,
        raw::field::<u16>(mbuf, layout::MBUF_BUF_LEN).into(),
        raw::field::<u16>(mbuf, layout::MBUF_DATA_OFF).into(),
        raw::field::<u16>(mbuf, layout::MBUF_PRIV_SIZE).into(),
        raw::field::<u16>(mbuf, layout::MBUF_NB_SEGS).into(),
        raw::field::<u16>(mbuf, layout::MBUF_PORT).into(),
        raw::field::<u64>(mbuf, layout::MBUF_OL_FLAGS),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(usize),
    Free(usize),
    Scribble(u8),
}

fn sequences(
    cache_lens: impl Fn() -> (u32, u32),
    native_pool: &Mempool<'_>,
    c_pool: &Mempool<'_>,
    c_name: &str,
) {
    let c_raw = raw::pool(c_name) as usize;
    let step = prop_oneof![
        3 => (1..40usize).prop_map(Step::Alloc),
        2 => (1..MOST).prop_map(Step::Alloc),
        2 => (1..40usize).prop_map(Step::Free),
        2 => (1..MOST).prop_map(Step::Free),
        2 => any::<u8>().prop_map(Step::Scribble),
    ];
    let mut burst = Box::new(Burst::<'_, MOST>::new());
    let pairs = &mut Pairs::default();
    let state = std::cell::RefCell::new((&mut burst, pairs));
    for_all_unshrunk(10..=60, &prop::collection::vec(step, 1..40), |steps| {
        let (burst, pairs) = &mut *state.borrow_mut();
        let mut native: Vec<Mbuf<'_>> = Vec::new();
        let mut c: Vec<*mut rte_mbuf> = Vec::new();
        for step in steps {
            match step {
                Step::Alloc(n) => {
                    let filled = native_pool.fill(burst, n).is_ok();
                    let raw = raw::c_alloc(c_raw as *mut _, n);
                    prop_assert_eq!(filled, raw.is_some());
                    native.extend(burst.drain());
                    c.extend(raw.unwrap_or_default());
                }
                Step::Free(n) => {
                    let kept = native.len().saturating_sub(n);
                    // In order, as `drain` frees what was not taken from it.
                    drop(native.drain(kept..));
                    raw::c_free(c.drain(kept..));
                }
                Step::Scribble(seed) => {
                    if let (Some(native), Some(c)) = (native.last(), c.last()) {
                        raw::scribble(raw::pointer(native), seed);
                        raw::scribble(*c, seed);
                    }
                }
            }
            for (native, c) in native.iter().zip(&c) {
                let native = raw::pointer(native);
                prop_assert!(pairs.are_paired(native, *c), "another order");
            }
            if let (Some(native), Some(c)) = (native.last(), c.last()) {
                raw::compare(pairs, raw::pointer(native), *c)?;
            }
            prop_assert_eq!(native.len(), c.len());
            prop_assert_eq!(native_pool.in_use(), c_pool.in_use());
            let (native_cache, c_cache) = cache_lens();
            prop_assert_eq!(native_cache, c_cache);
        }
        drop(native);
        raw::c_free(c);
        prop_assert!(native_pool.is_full() && c_pool.is_full());
        Ok(())
    });
}
