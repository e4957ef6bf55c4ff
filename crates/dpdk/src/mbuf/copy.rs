// SPDX-License-Identifier: BSD-3-Clause
//! A packet's bytes and fields in mbufs of their own.

use super::Mbuf;
use crate::fast::share;
use crate::mempool::{Exhausted, Mempool};

impl Mbuf<'_> {
    /// An unshared copy of the whole packet, of as many segments as `pool`'s buffers make of it
    /// (`rte_pktmbuf_copy`, which would read on where a driver claims more bytes than a buffer has).
    ///
    /// # Errors
    /// [`Exhausted`] when the pool has too few mbufs; nothing is left behind.
    pub fn copy_into<'p>(&self, pool: &Mempool<'p>) -> Result<Mbuf<'p>, Exhausted> {
        let mut copy = pool.alloc().ok_or(Exhausted)?;
        // SAFETY: both mbufs are valid, and the copy is ours alone and has no data yet.
        unsafe { share::copy_metadata(copy.as_ptr(), self.as_ptr()) };
        // Filled one after the other and chained from the back, so that each is walked to once.
        let mut full: Vec<Mbuf<'p>> = Vec::new();
        for mut bytes in self.segment_data() {
            while !bytes.is_empty() {
                let room = copy.tailroom();
                if room == 0 {
                    full.push(std::mem::replace(&mut copy, pool.alloc().ok_or(Exhausted)?));
                    continue;
                }
                let (now, later) = bytes.split_at(bytes.len().min(room));
                if let Some(to) = copy.append(now.len()) {
                    to.copy_from_slice(now);
                }
                bytes = later;
            }
        }
        while let Some(mut before) = full.pop() {
            // Refused beyond 65,535 segments, more than a copy of a packet needs in any pool that has
            // buffers for packets.
            before.chain(copy).map_err(drop).map_err(|()| Exhausted)?;
            copy = before;
        }
        Ok(copy)
    }
}
