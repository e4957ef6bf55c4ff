// SPDX-License-Identifier: BSD-3-Clause
//! `TxQueue::prepare`: a driver's refusals, packet by packet. Rings refuse nothing, so a function
//! of the test replaces the driver's.

use std::ffi::c_void;

use dpdk::{Burst, Eal, TxQueue};
use dpdk_sys::{layout, rte_mbuf};

type Prepare = unsafe extern "C" fn(*mut c_void, *mut *mut rte_mbuf, u16) -> u16;

/// `ENOENT`, which a lookup of a missing pool leaves in `rte_errno`.
const REASON: i32 = 2;

/// Accepts packets of even lengths, and marks them by writing into them.
unsafe extern "C" fn even(_queue: *mut c_void, mbufs: *mut *mut rte_mbuf, n: u16) -> u16 {
    for index in 0..n {
        // SAFETY: the queue passes this many packets.
        unsafe {
            let mbuf = *mbufs.add(index.into());
            let len = mbuf.cast::<u8>().add(layout::MBUF_PKT_LEN).cast::<u32>().read();
            if len % 2 == 1 {
                dpdk_sys::rte_mempool_lookup(c"no such pool".as_ptr());
                return index;
            }
            mbuf.cast::<u8>().add(layout::MBUF_PORT).cast::<u16>().write(77);
        }
    }
    n
}

pub fn check(eal: &Eal) {
    let pool = super::pool(eal, "prepared", 200);
    let mut port = super::support::started(eal, &pool, "net_ring0");
    let mut queues = port.queues();
    let tx = &mut queues.tx[0];
    // The ring driver's own function, which depends on the release.
    assert_eq!(prepared(tx, &pool, &[1, 2, 3]), (vec![1, 2, 3], vec![]));

    // SAFETY: the entry of a port that only this test uses, and a function of the right type.
    let slot = unsafe {
        (&raw mut dpdk_sys::rte_eth_fp_ops)
            .cast::<u8>()
            .add(usize::from(tx.port().index()) * layout::FP_OPS_SIZE + layout::FP_TX_PKT_PREPARE)
            .cast::<Option<Prepare>>()
    };
    // SAFETY: as above.
    let own = unsafe { slot.replace(Some(even)) };
    for lengths in
        [&[][..], &[2, 4], &[1], &[1, 3, 5], &[2, 1, 4, 6, 3], &[1, 2, 3, 4, 5, 6], &[2, 2, 3]]
    {
        let (taken, refused) = prepared(tx, &pool, lengths);
        let (even, odd): (Vec<_>, Vec<_>) = lengths.iter().partition(|&len| len % 2 == 0);
        assert_eq!((taken, refused), (even, odd), "in their order");
        // C's function stops at the first refused one.
        let mut mbufs: Vec<_> = lengths.iter().map(|&len| super::packet(&pool, len)).collect();
        // SAFETY: packets of the test, one pointer each.
        let first = unsafe {
            dpdk_sys::lr_eth_tx_prepare(
                tx.port().index(),
                0,
                mbufs.as_mut_ptr().cast(),
                mbufs.len() as u16,
            )
        };
        let expected = lengths.iter().position(|len| len % 2 == 1).unwrap_or(lengths.len());
        assert_eq!(usize::from(first), expected);
    }
    // SAFETY: as above.
    unsafe { slot.write(own) };
    drop(queues);
    port.stop().unwrap();
    assert!(pool.is_full());
}

/// The lengths of accepted packets, and of refused ones.
fn prepared<'m>(
    tx: &mut TxQueue<'_>,
    pool: &dpdk::Mempool<'m>,
    lengths: &[usize],
) -> (Vec<usize>, Vec<usize>) {
    let mut burst = Burst::<8>::new();
    for &len in lengths {
        assert!(burst.push(super::packet(pool, len)).is_ok());
    }
    let mut refused = Vec::new();
    let count = tx.prepare(&mut burst, |mbuf, reason| {
        assert_eq!(reason.0, REASON);
        assert_eq!(super::content(&mbuf), super::bytes(mbuf.packet_len()));
        refused.push(mbuf.packet_len());
    });
    assert_eq!(count, refused.len());
    for mbuf in burst.iter() {
        assert_eq!(super::content(mbuf), super::bytes(mbuf.packet_len()));
    }
    (burst.iter().map(|mbuf| mbuf.packet_len()).collect(), refused)
}
