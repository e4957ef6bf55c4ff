// SPDX-License-Identifier: BSD-3-Clause
//! One packet with several owners, for reading.

use std::ops::Deref;
use std::ptr::NonNull;

use super::Mbuf;
use crate::fast::{shape, share};
use crate::mempool::Mempool;

/// A packet that may have several owners, all of which can only read it. Made by [`Mbuf::share`].
///
/// There are two ways to add an owner. [`try_clone`](Self::try_clone) is for another reader of the
/// same packet; it costs an addition per segment. [`clone_into`](Self::clone_into) makes a new
/// packet, an [`Mbuf`] with its own fields and segments, which shares only the *bytes*. It costs an
/// mbuf per segment, and can be sent, shortened, or chained behind a header:
/// ```
/// use dpdk::{Burst, Mbuf, Mempool, ShareError, TxQueue};
///
/// /// Sends one packet to every queue; queues that are full go without.
/// fn flood<'m>(packet: Mbuf<'m>, queues: &mut [TxQueue<'m>], pool: &Mempool<'m>) -> Result<(), ShareError> {
///     let packet = packet.share();
///     for queue in queues {
///         let mut burst = Burst::<1>::new();
///         let _ = burst.push(packet.clone_into(pool)?);
///         queue.send(&mut burst);
///     }
///     Ok(())
/// }
/// ```
///
/// The methods of [`Mbuf`] that only read work here too. There is no way to write to the bytes:
/// ```compile_fail,E0596
/// fn write(packet: dpdk::SharedMbuf<'_>) {
///     let mut packet = packet;
///     packet.data_mut();
/// }
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct SharedMbuf<'m>(Mbuf<'m>);

/// Why a packet got no further owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// The pool has too few mbufs for the clone's segments.
    #[error("the mempool has too few free mbufs for a clone")]
    Exhausted,
    /// DPDK counts owners in 16 bits; half of that is allowed.
    #[error("the packet has 32,767 owners; drop some before adding others")]
    TooManyOwners,
}

impl From<share::Refused> for ShareError {
    fn from(refused: share::Refused) -> Self {
        match refused {
            share::Refused::Exhausted => Self::Exhausted,
            share::Refused::TooManyOwners => Self::TooManyOwners,
        }
    }
}

impl<'m> Mbuf<'m> {
    /// Gives up the right to change the packet, so that it can have more owners.
    #[inline]
    #[must_use]
    pub fn share(self) -> SharedMbuf<'m> {
        SharedMbuf(self)
    }
}

impl<'m> SharedMbuf<'m> {
    /// One more owner of the same packet (`rte_pktmbuf_refcnt_update`).
    ///
    /// # Errors
    /// [`ShareError::TooManyOwners`]. (There is no `Clone` because this can fail.)
    pub fn try_clone(&self) -> Result<Self, ShareError> {
        // SAFETY: the packet is valid, and the reference added is the new owner's.
        unsafe {
            share::add_owner(self.0.as_ptr())?;
            Ok(Self(Mbuf::from_raw(self.0.raw)))
        }
    }

    /// Makes a new packet that shares the bytes (`rte_pktmbuf_clone`), of mbufs from `pool`. Its
    /// bytes are read-only for as long as it lives, even when it is their last owner;
    /// [`copy_into`](Mbuf::copy_into) makes a packet that can be written.
    ///
    /// # Errors
    /// See [`ShareError`]; nothing is left behind.
    pub fn clone_into(&self, pool: &Mempool<'m>) -> Result<Mbuf<'m>, ShareError> {
        // SAFETY: the packet is valid and nobody changes it while it is shared; the pool lives, and
        // its mbufs were made with buffers of their own. The clone is a new packet.
        unsafe {
            let raw = share::clone(self.0.as_ptr(), pool.as_ptr())?;
            Ok(Mbuf::from_raw(NonNull::new_unchecked(raw)))
        }
    }

    /// Returns the packet for changing, if this is its only owner.
    ///
    /// # Errors
    /// Gives it back, still shared, while another owner or a clone of one of its segments lives.
    pub fn unshare(self) -> Result<Mbuf<'m>, Self> {
        let mut segment = self.0.as_ptr();
        while !segment.is_null() {
            // SAFETY: each segment of a valid packet is valid.
            unsafe {
                if !super::is_sole_owner(segment) {
                    return Err(self);
                }
                segment = shape::next(segment);
            }
        }
        Ok(self.0)
    }
}

impl<'m> Deref for SharedMbuf<'m> {
    type Target = Mbuf<'m>;

    #[inline]
    fn deref(&self) -> &Mbuf<'m> {
        &self.0
    }
}
