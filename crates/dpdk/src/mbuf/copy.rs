// SPDX-License-Identifier: BSD-3-Clause
//! Copies of a packet's bytes and fields in new mbufs.

use std::ops::RangeBounds;

use super::{Mbuf, PartError, ShareError, part};
use crate::fast::share;
use crate::mempool::{Exhausted, Mempool};

impl Mbuf<'_> {
    /// Makes an unshared copy of the whole packet, in as many segments as it needs of `pool`'s
    /// buffers. Unlike `rte_pktmbuf_copy` it does not read past the end of a buffer if a driver
    /// claims more bytes than there are.
    ///
    /// # Errors
    /// [`Exhausted`] when the pool has too few mbufs; nothing is left behind.
    pub fn copy_into<'p>(&self, pool: &Mempool<'p>) -> Result<Mbuf<'p>, Exhausted> {
        self.copied(pool, 0, usize::MAX)
    }

    /// Makes an unshared copy of a range of the packet's bytes, with the other fields of the whole
    /// packet, as [`copy_into`](Self::copy_into) does of all bytes. (`rte_pktmbuf_copy` with an
    /// offset and a length copies less when there is less.)
    ///
    /// # Errors
    /// [`PartError::Range`] if the range is not inside the packet, [`ShareError::Exhausted`] if the
    /// pool has too few mbufs; nothing is left behind.
    pub fn copy_range_into<'p>(
        &self,
        pool: &Mempool<'p>,
        range: impl RangeBounds<usize>,
    ) -> Result<Mbuf<'p>, PartError> {
        let range = part::inside(&range, self.segment_data().map(<[u8]>::len).sum())?;
        let copy = self.copied(pool, range.start, range.len());
        copy.map_err(|Exhausted| ShareError::Exhausted.into())
    }

    /// A copy of `most` bytes after the first `skip`.
    fn copied<'p>(
        &self,
        pool: &Mempool<'p>,
        mut skip: usize,
        mut most: usize,
    ) -> Result<Mbuf<'p>, Exhausted> {
        let mut copy = pool.alloc().ok_or(Exhausted)?;
        // SAFETY: both mbufs are valid, and the copy is ours alone and has no data yet.
        unsafe { share::copy_metadata(copy.as_ptr(), self.as_ptr()) };
        // Segments that are full. A copy has few, unless the pool's buffers are tiny: each is walked to.
        let mut head: Option<Mbuf<'p>> = None;
        for bytes in self.segment_data() {
            let (skipped, bytes) = bytes.split_at(bytes.len().min(skip));
            skip -= skipped.len();
            let (mut bytes, _) = bytes.split_at(bytes.len().min(most));
            most -= bytes.len();
            while !bytes.is_empty() {
                let room = copy.tailroom();
                if room == 0 {
                    let fresh = pool.alloc().ok_or(Exhausted)?;
                    head = Some(appended(head, std::mem::replace(&mut copy, fresh))?);
                    continue;
                }
                let (now, later) = bytes.split_at(bytes.len().min(room));
                if let Some(to) = copy.append(now.len()) {
                    to.copy_from_slice(now);
                }
                bytes = later;
            }
        }
        appended(head, copy)
    }
}

/// Joins both into one packet. Refused beyond 65,535 segments, more than a copy of a packet needs
/// in any pool of packet buffers.
fn appended<'p>(head: Option<Mbuf<'p>>, tail: Mbuf<'p>) -> Result<Mbuf<'p>, Exhausted> {
    let Some(mut head) = head else { return Ok(tail) };
    head.chain(tail).map_err(|_| Exhausted)?;
    Ok(head)
}
