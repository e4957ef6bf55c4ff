// SPDX-License-Identifier: BSD-3-Clause
//! Tests of the functions that do not call C, on memory that is laid out like DPDK's. So Miri can
//! run them (`scripts/run-miri`), which detects errors that a CPU does not show: data races,
//! accesses that were ordered only by chance, bytes outside of an allocation.

mod quiescence;
mod rings;
mod shapes;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Zeroes, aligned to a cache line as DPDK's memory is. Used only by pointers, from several
/// threads.
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: its users order their accesses; that is what is tested.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn of(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 64).unwrap();
        // SAFETY: the layout is not of size 0, for no test asks for that.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        Self { start: start.unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    fn at<T>(&self, offset: usize) -> *mut T {
        assert!(offset <= self.layout.size());
        self.start.as_ptr().wrapping_add(offset).cast()
    }

    fn write<T>(&self, offset: usize, value: T) {
        assert!(offset + size_of::<T>() <= self.layout.size());
        // SAFETY: inside, as was just seen; written while it is made, before others see it.
        unsafe { self.at::<T>(offset).write_unaligned(value) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated so.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// The number of repetitions: fewer under Miri, where each step takes a hundred times as long.
fn times(usually: usize, under_miri: usize) -> usize {
    if cfg!(miri) { under_miri } else { usually }
}
