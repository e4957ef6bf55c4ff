// SPDX-License-Identifier: BSD-3-Clause
//! Bytes on DPDK's heap, which devices can reach.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::eal::Eal;
use crate::numa::{UnknownNode, socket_id};

/// The least size of a page.
const PAGE: usize = 4096;
/// `RTE_BAD_IOVA`.
const BAD_IOVA: u64 = u64::MAX;

/// Why memory could not be allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeapError {
    /// The requested length is 0.
    #[error("a buffer of 0 bytes: ask for one at least")]
    Empty,
    /// DPDK's heap has too little left.
    #[error(
        "DPDK's heap has no {0} bytes in one piece: give EAL more memory (-m, --socket-mem), or leave --no-huge out"
    )]
    Exhausted(usize),
    /// The bytes are not contiguous for devices, or devices have no address for them.
    #[error(
        "{0} bytes are not contiguous for devices: start EAL with --iova-mode=va, or ask for less than a page"
    )]
    Scattered(usize),
    /// The machine has no such NUMA node.
    #[error(transparent)]
    Node(#[from] UnknownNode),
}

/// Bytes on DPDK's heap (`rte_zmalloc_socket`), zero at first. Every device that EAL knows can reach them.
/// [`ExternalBuffer::on_heap`](super::ExternalBuffer::on_heap) makes packets of them.
pub struct HeapBuffer<'eal> {
    start: NonNull<u8>,
    len: usize,
    iova: u64,
    eal: PhantomData<&'eal Eal>,
}

// SAFETY: memory that this owns alone; DPDK's heap has a lock.
unsafe impl Send for HeapBuffer<'_> {}
// SAFETY: shared, it is only read.
unsafe impl Sync for HeapBuffer<'_> {}

impl<'eal> HeapBuffer<'eal> {
    /// Allocates `len` bytes on a NUMA node; `None` for that of the caller.
    ///
    /// # Errors
    /// See [`HeapError`].
    pub fn zeroed(_eal: &'eal Eal, len: usize, socket: Option<u32>) -> Result<Self, HeapError> {
        if len == 0 {
            return Err(HeapError::Empty);
        }
        // No slice is longer, and DPDK rounds sizes up, in 64 bits: it need not get to do so near their end.
        if isize::try_from(len).is_err() {
            return Err(HeapError::Exhausted(len));
        }
        let socket = socket_id(socket)?;
        // SAFETY: EAL runs (there is an Eal); DPDK takes null for no name and 0 for its usual alignment.
        let start = unsafe { dpdk_sys::rte_zmalloc_socket(std::ptr::null(), len, 0, socket) };
        let start = NonNull::new(start.cast::<u8>()).ok_or(HeapError::Exhausted(len))?;
        // SAFETY: just allocated there.
        let iova = unsafe { dpdk_sys::rte_malloc_virt2iova(start.as_ptr().cast()) };
        let buffer = Self { start, len, iova, eal: PhantomData };
        match buffer.is_contiguous() {
            true => Ok(buffer),
            false => Err(HeapError::Scattered(len)),
        }
    }

    /// Returns true if the bytes are contiguous for devices, as they are for the CPU.
    fn is_contiguous(&self) -> bool {
        let start = self.start.addr().get();
        let mut pages =
            (start / PAGE + 1..=(start + self.len - 1) / PAGE).map(|page| page * PAGE - start);
        self.iova != BAD_IOVA
            && pages.all(|offset| {
                // SAFETY: asks where an address inside the allocation is.
                let iova = unsafe {
                    dpdk_sys::rte_mem_virt2iova(self.start.as_ptr().wrapping_add(offset).cast())
                };
                iova == self.iova + offset as u64
            })
    }

    /// The address of the first byte for devices.
    pub(super) fn iova(&self) -> u64 {
        self.iova
    }
}

impl Deref for HeapBuffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes were allocated there, and zeroed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for HeapBuffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for HeapBuffer<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Prints the number of bytes, not the bytes.
impl fmt::Debug for HeapBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapBuffer").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Drop for HeapBuffer<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated by DPDK, and given back once.
        unsafe { dpdk_sys::rte_free(self.start.as_ptr().cast()) };
    }
}
