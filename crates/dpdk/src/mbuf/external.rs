// SPDX-License-Identifier: BSD-3-Clause
//! Packets that refer to bytes outside of mbufs, without copying them.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, RangeBounds};
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use dpdk_sys::rte_mbuf_ext_shared_info;

use super::{ForeignMemory, HeapBuffer, Mbuf, PartError, ShareError, part};
use crate::fast::share;
use crate::mempool::Mempool;
use crate::port::{PutOff, free_unlocked};

/// The most bytes that a segment has.
const LONGEST: usize = u16::MAX as usize;

/// Bytes that any number of packets carry without copying them (`rte_pktmbuf_attach_extbuf`).
///
/// The bytes are read-only, because this buffer and its packets share them. Their owner (a `Vec`,
/// say) is dropped once, when this buffer and the last packet are gone, on the thread that drops
/// the last of them. That may be in a call of [`TxQueue::send`](crate::TxQueue::send), when a
/// driver frees a packet. So the owner's `drop` should not take long, and a panic in it ends the
/// process. It may call functions of ports: if a driver frees the last packet while its port is
/// being stopped or removed, the owner is dropped right after that.
///
/// ```
/// use dpdk::{Eal, ExternalBuffer, ForeignMemory, Mbuf, Mempool};
///
/// /// A header in an mbuf, and a page of a cache behind it.
/// fn respond<'m>(
///     mut header: Mbuf<'m>,
///     page: &ExternalBuffer<'m>,
///     pool: &Mempool<'m>,
/// ) -> Option<Mbuf<'m>> {
///     header.chain(page.packet(pool, ..1400).ok()?).ok()?;
///     Some(header)
/// }
///
/// # fn cache<'eal>(eal: &'eal Eal) -> Result<ExternalBuffer<'eal>, Box<dyn std::error::Error>> {
/// let page = ExternalBuffer::foreign(ForeignMemory::check(eal)?, vec![0; 4096]);
/// # Ok(page)
/// # }
/// ```
pub struct ExternalBuffer<'m> {
    /// Owned as one of those that are counted in it.
    shared: NonNull<rte_mbuf_ext_shared_info>,
    bytes: NonNull<[u8]>,
    /// The address of the first byte for devices.
    iova: u64,
    life: PhantomData<&'m ()>,
}

// SAFETY: the bytes are only read, owners are counted atomically, and what owns the bytes is `Send`, for the last of
// them drops it; none of them uses it before.
unsafe impl Send for ExternalBuffer<'_> {}
// SAFETY: as above.
unsafe impl Sync for ExternalBuffer<'_> {}

/// The part that the last owner frees. DPDK's part is first, so that a pointer to one is a pointer
/// to the other.
#[repr(C)]
struct Owned<T> {
    shared: rte_mbuf_ext_shared_info,
    link: PutOff,
    owner: T,
}

/// # Safety
/// Called once, by the last owner, with what [`ExternalBuffer::new`] has boxed.
unsafe extern "C" fn free<T>(_bytes: *mut c_void, owned: *mut c_void) {
    // C reads a count of 1 without the ordering that makes other owners' reads come before this.
    fence(Ordering::Acquire);
    // SAFETY: the contract is the caller's. A driver may have come here from a call under the lock of ports.
    unsafe { free_unlocked(&raw mut (*owned.cast::<Owned<T>>()).link, owned) };
}

/// # Safety
/// As [`free`].
unsafe extern "C" fn drop_box<T>(owned: *mut c_void) {
    // SAFETY: the contract is the caller's.
    drop(unsafe { Box::from_raw(owned.cast::<Owned<T>>()) });
}

impl<'m> ExternalBuffer<'m> {
    /// Bytes on DPDK's heap, which every device can send.
    #[must_use]
    pub fn on_heap(buffer: HeapBuffer<'m>) -> Self {
        let iova = buffer.iova();
        Self::new(buffer, |_| iova)
    }

    /// Makes a buffer of memory that is not DPDK's, such as a `Vec<u8>`, a `Box<[u8]>`, an
    /// `Arc<[u8]>` or a `&'static [u8]`. See [`ForeignMemory`] for the devices that can send it.
    #[must_use]
    pub fn foreign<T>(_right: ForeignMemory<'m>, owner: T) -> Self
    where
        T: AsRef<[u8]> + Send + 'static,
    {
        Self::new(owner, |start| start as u64) // devices use virtual addresses
    }

    fn new<T: AsRef<[u8]> + Send>(owner: T, iova: impl FnOnce(usize) -> u64) -> Self {
        let shared = rte_mbuf_ext_shared_info {
            free_cb: Some(free::<T>),
            fcb_opaque: std::ptr::null_mut(),
            refcnt: 1,
        };
        let owned = NonNull::from(Box::leak(Box::new(Owned {
            shared,
            link: PutOff::new(drop_box::<T>),
            owner,
        })));
        // SAFETY: just boxed. What owns the bytes stays where it is and is not touched until it is dropped, so
        // what it lends now it lends until then. (A panic in `as_ref` leaks it.)
        unsafe {
            (*owned.as_ptr()).shared.fcb_opaque = owned.as_ptr().cast();
            let bytes = NonNull::from((*owned.as_ptr()).owner.as_ref());
            let iova = iova(bytes.cast::<u8>().addr().get());
            Self { shared: owned.cast(), bytes, iova, life: PhantomData }
        }
    }

    /// Makes a packet of a range of the bytes, with an mbuf from `pool` for each 65,535 of them.
    ///
    /// # Errors
    /// See [`PartError`]; nothing is left behind. [`ShareError::Exhausted`] also if the range is
    /// longer than a packet can be: 65,535 segments or 4 GiB.
    pub fn packet(
        &self,
        pool: &Mempool<'m>,
        range: impl RangeBounds<usize>,
    ) -> Result<Mbuf<'m>, PartError> {
        let range = part::inside(&range, self.len())?;
        if u32::try_from(range.len()).is_err() {
            return Err(ShareError::Exhausted.into());
        }
        let mut end = range.end;
        let mut packet: Option<Mbuf<'m>> = None;
        // From the back, so that no chain is walked to its end.
        while packet.is_none() || end > range.start {
            let len = match (end - range.start) % LONGEST {
                0 => LONGEST.min(end - range.start),
                rest => rest,
            };
            end -= len;
            let mut piece = self.segment(pool, end, len as u16)?;
            if let Some(tail) = packet.take() {
                piece.chain(tail).map_err(|_| ShareError::Exhausted)?;
            }
            packet = Some(piece);
        }
        Ok(packet.ok_or(ShareError::Exhausted)?)
    }

    /// A packet of the `len` bytes at `offset`, which there are.
    fn segment(&self, pool: &Mempool<'m>, offset: usize, len: u16) -> Result<Mbuf<'m>, ShareError> {
        let mbuf = pool.alloc().ok_or(ShareError::Exhausted)?;
        // SAFETY: the mbuf is fresh and ours alone, the bytes lie there for as long as they have owners, and the
        // one that is added becomes the mbuf's.
        unsafe {
            share::add_external_owner(self.shared.as_ptr())?;
            let bytes = self.bytes.cast::<u8>().as_ptr().add(offset);
            let iova = self.iova + offset as u64;
            share::attach_external(mbuf.as_ptr(), self.shared.as_ptr(), bytes, iova, len);
        }
        Ok(mbuf)
    }
}

impl Deref for ExternalBuffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: what owns the bytes lives while this does, and nobody writes to them.
        unsafe { self.bytes.as_ref() }
    }
}

/// Prints the number of bytes, not the bytes.
impl fmt::Debug for ExternalBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalBuffer").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Drop for ExternalBuffer<'_> {
    fn drop(&mut self) {
        // SAFETY: this owner is counted, and is not any longer; the last one calls the function that was stored
        // with what it is to free.
        unsafe {
            let shared = self.shared.as_ptr();
            if share::drop_external_owner(shared) {
                let (free, owned) = ((*shared).free_cb, (*shared).fcb_opaque);
                if let Some(free) = free {
                    free(self.bytes.as_ptr().cast(), owned);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::port;

    /// Bytes whose owner asks about ports when it is dropped, or would: it takes the lock.
    struct Asks(mpsc::Sender<&'static str>);

    impl AsRef<[u8]> for Asks {
        fn as_ref(&self) -> &[u8] {
            &[1, 2, 3]
        }
    }

    impl Drop for Asks {
        fn drop(&mut self) {
            drop(port::lock());
            let _ = self.0.send("dropped");
        }
    }

    #[test]
    fn what_owns_bytes_is_dropped_when_the_lock_of_ports_is_free() {
        const PATIENCE: Duration = Duration::from_secs(20);
        let (told, tells) = mpsc::channel();
        // A thread of its own, for when it waits for itself.
        std::thread::spawn(move || {
            let buffers = [told.clone(), told.clone(), told.clone()]
                .map(|told| ExternalBuffer::new(Asks(told), |_| 0));
            let alone = port::lock();
            drop(buffers);
            let _ = told.send("unlocking");
            drop(alone);
            drop(ExternalBuffer::new(Asks(told), |_| 0));
        });
        let said: Result<Vec<_>, _> = (0..5).map(|_| tells.recv_timeout(PATIENCE)).collect();
        assert_eq!(
            said.as_deref(),
            Ok(&["unlocking", "dropped", "dropped", "dropped", "dropped"][..])
        );
    }
}
