// SPDX-License-Identifier: BSD-3-Clause
//! A part of a packet as a packet of its own, without copying.

use std::ops::{Bound, Range, RangeBounds};
use std::ptr::NonNull;

use super::{Mbuf, ShareError, SharedMbuf};
use crate::fast::share;
use crate::mempool::Mempool;

/// Why a part could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The range is not inside the packet.
    #[error("bytes {start} to {end} are not in the packet, which has {len} bytes")]
    Range {
        /// The first byte of the range.
        start: usize,
        /// The first byte after the range.
        end: usize,
        /// Bytes of the packet.
        len: usize,
    },
    /// The bytes could not be given another owner.
    #[error(transparent)]
    Share(#[from] ShareError),
}

/// A range of `len` bytes, as indexing a slice takes it.
pub(super) fn inside(
    range: &impl RangeBounds<usize>,
    len: usize,
) -> Result<Range<usize>, PartError> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&start) => start.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok(start..end),
        (start, end) => {
            let (start, end) = (start.unwrap_or(usize::MAX), end.unwrap_or(usize::MAX));
            Err(PartError::Range { start, end, len })
        }
    }
}

impl<'m> SharedMbuf<'m> {
    /// Makes a packet of a part of this one, with an mbuf from `pool` for each segment that the
    /// part touches. As with [`clone_into`](Self::clone_into), the bytes are shared, and read-only
    /// for as long as the new packet lives; its other fields (port, type, hash, dynamic ones) are
    /// those of the whole packet.
    ///
    /// Together with headers of its own in front, a part lets a program fragment or encapsulate a
    /// packet without copying it:
    /// ```
    /// use dpdk::{Mbuf, Mempool, PartError, ShareError, SharedMbuf};
    ///
    /// /// Cuts a packet behind its first `headers` bytes: each piece gets a copy of those in front.
    /// fn cut<'m>(
    ///     packet: &SharedMbuf<'m>,
    ///     headers: usize,
    ///     most: usize,
    ///     pool: &Mempool<'m>,
    /// ) -> Result<Vec<Mbuf<'m>>, PartError> {
    ///     let mut pieces = Vec::new();
    ///     for start in (headers..packet.packet_len()).step_by(most) {
    ///         let end = packet.packet_len().min(start + most);
    ///         let mut piece = packet.copy_range_into(pool, ..headers)?;
    ///         let payload = packet.part_into(pool, start..end)?;
    ///         piece.chain(payload).map_err(|_| ShareError::Exhausted)?;
    ///         pieces.push(piece);
    ///     }
    ///     Ok(pieces)
    /// }
    /// ```
    ///
    /// # Errors
    /// See [`PartError`]; nothing is left behind.
    pub fn part_into(
        &self,
        pool: &Mempool<'m>,
        range: impl RangeBounds<usize>,
    ) -> Result<Mbuf<'m>, PartError> {
        // Not the packet's length: if a driver claims more bytes than there are, they would be read
        // past the end.
        let len = self.segment_data().map(<[u8]>::len).sum();
        let range = inside(&range, len)?;
        if range.is_empty() {
            return Ok(pool.alloc().ok_or(ShareError::Exhausted)?);
        }
        // SAFETY: the packet is valid and nobody changes it while it is shared; the pool lives, its mbufs were
        // made with buffers of their own, and the range was just found inside. The part is a new packet.
        unsafe {
            let raw = share::part(self.as_ptr(), pool.as_ptr(), range.start, range.len())
                .map_err(ShareError::from)?;
            Ok(Mbuf::from_raw(NonNull::new_unchecked(raw)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_slices() {
        assert_eq!(inside(&(2..5), 5), Ok(2..5));
        assert_eq!(inside(&(2..=4), 5), Ok(2..5));
        assert_eq!(inside(&(..), 5), Ok(0..5));
        assert_eq!(inside(&(5..), 5), Ok(5..5));
        assert_eq!(inside(&(2..6), 5), Err(PartError::Range { start: 2, end: 6, len: 5 }));
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = inside(&(4..2), 5);
        assert_eq!(reversed, Err(PartError::Range { start: 4, end: 2, len: 5 }));
        assert!(inside(&(..=usize::MAX), 5).is_err());
    }
}
