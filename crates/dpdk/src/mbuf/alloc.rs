// SPDX-License-Identifier: BSD-3-Clause
//! Packets from a pool, one or a few at a time. [`Mempool::fill`] fills a burst.

use std::ptr::NonNull;

use super::Mbuf;
use crate::fast;
use crate::mempool::Mempool;

impl<'eal> Mempool<'eal> {
    /// One empty mbuf, or `None` when the pool is exhausted (`rte_pktmbuf_alloc`).
    #[inline]
    #[must_use]
    pub fn alloc(&self) -> Option<Mbuf<'eal>> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pool lives (it lives as long as 'eal), and there is room for one pointer.
        let ok = unsafe { fast::mbuf::alloc_bulk(self.as_ptr(), &raw mut raw, 1) };
        // SAFETY: on success `raw` is a fresh mbuf that nobody else has.
        ok.then(|| unsafe { Mbuf::from_raw(NonNull::new_unchecked(raw)) })
    }

    /// `N` empty mbufs, or `None` when the pool has fewer (`rte_pktmbuf_alloc_bulk`).
    ///
    /// ```
    /// fn request_and_response<'m>(pool: &dpdk::Mempool<'m>) -> Option<[dpdk::Mbuf<'m>; 2]> {
    ///     pool.alloc_array()
    /// }
    /// ```
    #[inline]
    #[must_use]
    pub fn alloc_array<const N: usize>(&self) -> Option<[Mbuf<'eal>; N]> {
        let mut raw = [std::ptr::null_mut::<dpdk_sys::rte_mbuf>(); N];
        // SAFETY: the pool lives, and there is room for N pointers.
        if !unsafe { fast::mbuf::alloc_bulk(self.as_ptr(), raw.as_mut_ptr(), N) } {
            return None;
        }
        // SAFETY: fresh mbufs, which nobody else has.
        Some(raw.map(|raw| unsafe { Mbuf::from_raw(NonNull::new_unchecked(raw)) }))
    }
}
