// SPDX-License-Identifier: BSD-3-Clause
//! Mutable headers of several packets at once: granted if and only if C reports each packet as long
//! enough, not shared, and with its own bytes.

use dpdk::{Eal, Mbuf, Mempool, PoolConfig};
use dpdk_sys::{layout, rte_mbuf};
use proptest::prelude::*;

use super::raw;
use super::support::property::for_all_unshrunk;

const HEADER: usize = 12;
/// Packets of this length or longer may be refused when several are checked at once.
const TOO_LONG: u16 = 1 << 15;

/// The fields that decide, as a driver or another owner may have left them. Mostly harmless, so
/// that most groups are refused because of one packet.
#[derive(Clone, Copy, Debug)]
struct State {
    len: u16,
    owners: u16,
    flags: u64,
}

fn state() -> impl Strategy<Value = State> {
    let len = prop_oneof![
        20 => HEADER as u16..TOO_LONG,
        1 => 0..HEADER as u16,
        1 => Just(HEADER as u16 - 1),
        1 => Just(HEADER as u16),
        1 => TOO_LONG - 1..,
    ];
    let owners = prop_oneof![20 => Just(1u16), 1 => 2u16.., 1 => Just(0x0101)];
    // Any other bit may be set; the two that matter rarely are.
    let counts = layout::MBUF_F_INDIRECT | layout::MBUF_F_EXTERNAL;
    let flags =
        prop_oneof![20 => any::<u64>().prop_map(move |bits| bits & !counts), 1 => any::<u64>()];
    (len, owners, flags).prop_map(|(len, owners, flags)| State { len, owners, flags })
}

pub fn agree(eal: &Eal) {
    let pool = Mempool::packet_pool(
        eal,
        &PoolConfig { count: 63, cache: 0, ..PoolConfig::named("headers") },
    )
    .unwrap();
    group::<1>(&pool);
    group::<3>(&pool);
    group::<4>(&pool);
    group::<8>(&pool);
    assert!(pool.is_full());
}

fn group<const K: usize>(pool: &Mempool<'_>) {
    for_all_unshrunk(10..=2000, &prop::collection::vec((state(), any::<u8>()), K), |states| {
        let mut mbufs: [Mbuf<'_>; K] = std::array::from_fn(|_| pool.alloc().unwrap());
        let expected: Vec<bool> = mbufs
            .iter()
            .zip(&states)
            .map(|(mbuf, (state, seed))| {
                raw::scribble(raw::pointer(mbuf), *seed);
                put(raw::pointer(mbuf), *state);
                c_says_own(raw::pointer(mbuf))
            })
            .collect();
        let one_by_one: Vec<bool> =
            mbufs.iter_mut().map(|mbuf| mbuf.header_mut::<HEADER>().is_some()).collect();
        let starts: Vec<*const u8> = mbufs.iter().map(|mbuf| mbuf.data().as_ptr()).collect();
        let short = states.iter().all(|(state, _)| state.len < TOO_LONG);
        let headers: Option<Vec<*const u8>> = Mbuf::headers_mut::<HEADER, K>(&mut mbufs)
            .map(|headers| headers.map(|header| header.as_ptr()).collect());
        for mbuf in &mbufs {
            // As it came, to be freed once.
            put(raw::pointer(mbuf), State { len: 0, owners: 1, flags: 0 });
        }
        prop_assert_eq!(&one_by_one, &expected);
        let all = expected.iter().all(|own| *own);
        prop_assert!(headers.is_some() == all || !short && headers.is_none());
        prop_assert!(headers.is_none_or(|headers| headers == starts));
        Ok(())
    });
}

fn put(mbuf: *mut rte_mbuf, state: State) {
    let field = |offset| mbuf.cast::<u8>().wrapping_add(offset);
    // SAFETY: fields of the test's own mbuf, at C's offsets. Nothing relies on their values before
    // they are restored.
    unsafe {
        field(layout::MBUF_DATA_LEN).cast::<u16>().write(state.len);
        field(layout::MBUF_REFCNT).cast::<u16>().write(state.owners);
        field(layout::MBUF_OL_FLAGS).cast::<u64>().write(state.flags);
    }
}

fn c_says_own(mbuf: *mut rte_mbuf) -> bool {
    let len: u16 = raw::field(mbuf, layout::MBUF_DATA_LEN);
    let flags: u64 = raw::field(mbuf, layout::MBUF_OL_FLAGS);
    // SAFETY: a valid mbuf.
    let alone = unsafe { dpdk_sys::lr_mbuf_refcnt_read(mbuf) == 1 };
    alone
        && usize::from(len) >= HEADER
        && flags & (layout::MBUF_F_INDIRECT | layout::MBUF_F_EXTERNAL) == 0
}
